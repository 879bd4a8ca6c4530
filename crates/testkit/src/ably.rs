//! A client of the Ably protocol for tests, on the typed frames of `parlor_wire`, in JSON or msgpack.
//!
//! It sends exactly the frames of the test: it neither reconnects nor attaches again by itself. Tests of the
//! behaviour of real clients use the `ably` package (`web/ably`).

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use futures_util::{SinkExt, StreamExt};
use parlor_wire::ably::codes::ErrorInfo;
use parlor_wire::ably::data::Data;
use parlor_wire::ably::frames::{Action, AuthDetails, Format, Frame, Message, PresenceMessage};
use parlor_wire::ably::presence::PresenceAction;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{self, client::IntoClientRequest};

use crate::socket::{NotUpgraded, TEST_TIMEOUT};

pub struct Ably {
    stream: WebSocketStream<TcpStream>,
    format: Format,
    /// Frames that arrived while another frame was awaited, in order.
    skipped: VecDeque<Frame<'static>>,
    next_serial: u64,
    pings: u64,
    /// Id and key from the CONNECTED frame; empty before it.
    pub connection_id: String,
    pub connection_key: String,
}

/// The next event on the socket.
#[derive(Debug)]
pub enum AblyEvent {
    Frame(Box<Frame<'static>>),
    /// Close code: 1006 if the connection ended without a close frame, 1005 if the close frame had no code.
    Closed(u16),
}

impl Ably {
    /// Opens a connection with these parameters, and waits for the CONNECTED frame.
    pub async fn connect(url: &str, format: Format, query: &[(&str, &str)]) -> Result<Self> {
        let mut client = Self::open(url, format, query).await?;
        client.connected().await?;
        Ok(client)
    }

    /// Opens a connection, on which the hub sends the first frame. Adds `format`, and `v` if it is absent, to the
    /// parameters.
    pub async fn open(url: &str, format: Format, query: &[(&str, &str)]) -> Result<Self> {
        let address = url.strip_prefix("http://").context("the URL must start with http://")?;
        let mut target = reqwest::Url::parse(url)?;
        let name = match format {
            Format::Json => "json",
            Format::Msgpack => "msgpack",
        };
        target.query_pairs_mut().append_pair("format", name).extend_pairs(query);
        if query.iter().all(|(name, _)| *name != "v") {
            target.query_pairs_mut().append_pair("v", "6");
        }
        let path = format!("{}?{}", target.path(), target.query().unwrap_or_default());
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let request = format!("ws://{address}{path}").into_client_request()?;
        let stream = match tokio_tungstenite::client_async(request, stream).await {
            Ok((stream, _)) => stream,
            Err(tungstenite::Error::Http(answer)) => bail!(NotUpgraded(answer.status().as_u16())),
            Err(error) => return Err(error.into()),
        };
        Ok(Self {
            stream,
            format,
            skipped: VecDeque::new(),
            next_serial: 0,
            pings: 0,
            connection_id: String::new(),
            connection_key: String::new(),
        })
    }

    /// Waits for CONNECTED and stores the id and the key of the connection.
    pub async fn connected(&mut self) -> Result<Frame<'static>> {
        let frame = self.frame().await?;
        ensure!(frame.action == Action::Connected, "not connected: {frame:?}");
        let details = frame.connection_details.as_ref().context("connectionDetails")?;
        self.connection_key = details.connection_key.to_string();
        self.connection_id = frame.connection_id.as_deref().context("connectionId")?.to_owned();
        Ok(frame)
    }

    pub fn format(&self) -> Format {
        self.format
    }

    pub async fn send(&mut self, frame: &Frame<'_>) -> Result<()> {
        self.send_bytes(self.format.encode(frame)).await
    }

    /// Sends a WebSocket frame of this connection's kind with any content.
    pub async fn send_bytes(&mut self, bytes: Vec<u8>) -> Result<()> {
        let message = match self.format {
            Format::Json => tungstenite::Message::text(String::from_utf8(bytes)?),
            Format::Msgpack => tungstenite::Message::binary(bytes),
        };
        self.send_message(message).await
    }

    /// Sends any WebSocket message, for example text on a msgpack connection.
    pub async fn send_message(&mut self, message: tungstenite::Message) -> Result<()> {
        Ok(self.stream.send(message).await?)
    }

    /// Queues a frame without waiting for the socket; [`Ably::flush`] sends the queued frames.
    pub async fn feed(&mut self, frame: &Frame<'_>) -> Result<()> {
        let bytes = self.format.encode(frame);
        Ok(self
            .stream
            .feed(match self.format {
                Format::Json => tungstenite::Message::text(String::from_utf8(bytes)?),
                Format::Msgpack => tungstenite::Message::binary(bytes),
            })
            .await?)
    }

    pub async fn flush(&mut self) -> Result<()> {
        Ok(self.stream.flush().await?)
    }

    /// Ends the TCP connection without CLOSE and without a WebSocket close frame.
    pub async fn kill(mut self) -> Result<()> {
        Ok(self.stream.get_mut().shutdown().await?)
    }

    /// Sends CLOSE and waits for CLOSED.
    pub async fn close(mut self) -> Result<()> {
        self.send(&Frame::new(Action::Close)).await?;
        self.wait(Action::Closed).await.map(drop)
    }

    /// Returns the next frame or the end of the connection.
    pub async fn next(&mut self) -> Result<AblyEvent> {
        match self.skipped.pop_front() {
            Some(frame) => Ok(AblyEvent::Frame(Box::new(frame))),
            None => self.receive(Instant::now() + TEST_TIMEOUT).await,
        }
    }

    /// Returns the next frame; it is an error if the connection ends instead.
    pub async fn frame(&mut self) -> Result<Frame<'static>> {
        match self.next().await? {
            AblyEvent::Frame(frame) => Ok(*frame),
            AblyEvent::Closed(code) => bail!("closed with {code} while a frame was awaited"),
        }
    }

    /// Returns the next frame that matches. Other frames are kept for later calls, in order.
    pub async fn wait_for(&mut self, matches: impl Fn(&Frame<'_>) -> bool) -> Result<Frame<'static>> {
        if let Some(position) = self.skipped.iter().position(&matches) {
            return Ok(self.skipped.remove(position).expect("the position was just found"));
        }
        let deadline = Instant::now() + TEST_TIMEOUT;
        loop {
            let event = self.receive(deadline).await;
            match event.with_context(|| format!("skipped {:?}", self.skipped))? {
                AblyEvent::Frame(frame) if matches(&frame) => return Ok(*frame),
                AblyEvent::Frame(frame) => self.skipped.push_back(*frame),
                AblyEvent::Closed(code) => bail!("closed with {code}; skipped {:?}", self.skipped),
            }
        }
    }

    /// Returns the next frame with this action.
    pub async fn wait(&mut self, action: Action) -> Result<Frame<'static>> {
        self.wait_for(|frame| frame.action == action).await.with_context(|| format!("no {action:?}"))
    }

    /// Returns the next frame with this action and channel.
    pub async fn wait_on(&mut self, action: Action, channel: &str) -> Result<Frame<'static>> {
        self.wait_for(|frame| frame.action == action && frame.channel.as_deref() == Some(channel))
            .await
            .with_context(|| format!("no {action:?} of {channel}"))
    }

    /// Returns the error of the next ERROR, DISCONNECTED or NACK frame.
    pub async fn error(&mut self) -> Result<ErrorInfo> {
        let actions = [Action::Error, Action::Disconnected, Action::Nack];
        let frame = self.wait_for(|frame| actions.contains(&frame.action)).await?;
        frame.error.context("error")
    }

    /// Reads until the connection is closed and returns the close code. Frames before it are dropped.
    pub async fn closed(&mut self) -> Result<u16> {
        let deadline = Instant::now() + TEST_TIMEOUT;
        loop {
            if let AblyEvent::Closed(code) = self.receive(deadline).await? {
                return Ok(code);
            }
        }
    }

    /// Attaches with all modes and returns ATTACHED; an ERROR of the channel is an error.
    pub async fn attach(&mut self, channel: &str) -> Result<Frame<'static>> {
        self.attach_with(Frame::of_channel(Action::Attach, channel)).await
    }

    /// Sends an ATTACH frame with parameters, flags or a serial, and returns ATTACHED.
    pub async fn attach_with(&mut self, attach: Frame<'_>) -> Result<Frame<'static>> {
        let channel = attach.channel.clone().context("channel")?.into_owned();
        self.send(&attach).await?;
        let answers = [Action::Attached, Action::Error];
        let of_channel =
            |frame: &Frame<'_>| frame.channel.as_deref() == Some(&channel) && answers.contains(&frame.action);
        let answer = self.wait_for(of_channel).await?;
        ensure!(answer.action == Action::Attached, "not attached: {answer:?}");
        Ok(answer)
    }

    /// Sends messages in one frame and returns its `msgSerial`, without waiting for the answer.
    pub async fn publish(&mut self, channel: &str, messages: Vec<Message<'_>>) -> Result<u64> {
        let serial = self.take_serial();
        let frame = Frame {
            msg_serial: Some(serial),
            messages: Some(messages),
            ..Frame::of_channel(Action::Message, channel)
        };
        self.send(&frame).await?;
        Ok(serial)
    }

    /// Publishes one message and returns its serial; a NACK is an error.
    pub async fn say(&mut self, channel: &str, name: &str, data: &str) -> Result<String> {
        let serial = self.publish(channel, vec![text(name, data)]).await?;
        let mut serials = self.acknowledged(serial).await?;
        ensure!(serials.len() == 1, "{} serials for one message", serials.len());
        Ok(serials.remove(0))
    }

    /// Publishes an object and returns the serial of the message; a NACK is an error.
    pub async fn say_json(&mut self, channel: &str, name: &str, data: &serde_json::Value) -> Result<String> {
        let serial = self.publish(channel, vec![json(name, data)]).await?;
        let mut serials = self.acknowledged(serial).await?;
        ensure!(serials.len() == 1, "{} serials for one message", serials.len());
        Ok(serials.remove(0))
    }

    /// Waits for the ACK of this frame and returns its serials; a NACK is an error.
    pub async fn acknowledged(&mut self, serial: u64) -> Result<Vec<String>> {
        match self.outcome(serial).await? {
            Ok(serials) => Ok(serials),
            Err(error) => bail!("refused: {error:?}"),
        }
    }

    /// Waits for the NACK of this frame and returns its error; an ACK is an error.
    pub async fn refused(&mut self, serial: u64) -> Result<ErrorInfo> {
        match self.outcome(serial).await? {
            Ok(serials) => bail!("acknowledged: {serials:?}"),
            Err(error) => Ok(error),
        }
    }

    /// Waits for the answer to this frame. An ACK may cover several frames and stays for the others.
    pub async fn outcome(&mut self, serial: u64) -> Result<Result<Vec<String>, ErrorInfo>> {
        let covers = |frame: &Frame<'_>| {
            let (Some(first), Some(count)) = (frame.msg_serial, frame.count) else { return false };
            [Action::Ack, Action::Nack].contains(&frame.action) && (first..first + count).contains(&serial)
        };
        let frame = self.wait_for(covers).await?;
        let (first, count) = (frame.msg_serial.context("msgSerial")?, frame.count.context("count")?);
        if let Some(error) = frame.error {
            return Ok(Err(error));
        }
        let results = frame.res.clone().unwrap_or_default();
        if count > 1 {
            // The other covered frames are awaited on their own.
            for (other, result) in (first..first + count).zip(results.iter()) {
                if other != serial {
                    self.skipped.push_back(Frame::ack(other, vec![result.clone()]));
                }
            }
        }
        let index = usize::try_from(serial - first)?;
        Ok(Ok(results.get(index).map(|result| result.serials.clone()).unwrap_or_default()))
    }

    /// Sends a change of the own presence and waits for the ACK.
    pub async fn present(
        &mut self,
        channel: &str,
        action: PresenceAction,
        client_id: Option<&str>,
        data: Option<&str>,
    ) -> Result<()> {
        let serial = self.send_presence(channel, action, client_id, data).await?;
        self.acknowledged(serial).await.map(drop)
    }

    /// Sends a change of the own presence and returns its `msgSerial`.
    pub async fn send_presence(
        &mut self,
        channel: &str,
        action: PresenceAction,
        client_id: Option<&str>,
        data: Option<&str>,
    ) -> Result<u64> {
        let serial = self.take_serial();
        let change = PresenceMessage {
            client_id: client_id.map(Into::into),
            data: data.map(|data| Data::Text(data.into())),
            encoding: data.filter(|data| data.starts_with('{')).map(|_| "json".into()),
            ..presence(action)
        };
        let frame = Frame {
            msg_serial: Some(serial),
            presence: Some(vec![change]),
            ..Frame::of_channel(Action::Presence, channel)
        };
        self.send(&frame).await?;
        Ok(serial)
    }

    /// Sends AUTH with a new token, without waiting for the answer.
    pub async fn authorize(&mut self, token: &str) -> Result<()> {
        let auth = Some(AuthDetails { access_token: token.into() });
        self.send(&Frame { auth, ..Frame::new(Action::Auth) }).await
    }

    /// Collects this number of messages of a channel, in the order of arrival.
    pub async fn messages(&mut self, channel: &str, count: usize) -> Result<Vec<Message<'static>>> {
        let mut messages = Vec::new();
        while messages.len() < count {
            let frame = self.wait_on(Action::Message, channel).await;
            let frame = frame.with_context(|| format!("{} of {count} messages arrived", messages.len()))?;
            messages.extend(completed(frame));
        }
        ensure!(messages.len() == count, "{} messages instead of {count}", messages.len());
        Ok(messages)
    }

    /// Returns all frames that the hub has queued for this client: those that arrive before the answer to a
    /// HEARTBEAT, except frames that the test has awaited.
    pub async fn so_far(&mut self) -> Result<Vec<Frame<'static>>> {
        self.pings += 1;
        let id = format!("so-far-{}", self.pings);
        self.send(&Frame { id: Some(id.clone().into()), ..Frame::new(Action::Heartbeat) }).await?;
        let mut frames = Vec::new();
        loop {
            let frame = self.frame().await?;
            if frame.action == Action::Heartbeat && frame.id.as_deref() == Some(&id) {
                return Ok(frames);
            }
            frames.push(frame);
        }
    }

    /// Sets the `msgSerial` of the next frame, for a resumed connection or a hostile client.
    pub fn set_serial(&mut self, next: u64) {
        self.next_serial = next;
    }

    pub fn take_serial(&mut self) -> u64 {
        self.next_serial += 1;
        self.next_serial - 1
    }

    async fn receive(&mut self, deadline: Instant) -> Result<AblyEvent> {
        loop {
            let message =
                timeout_at(deadline, self.stream.next()).await.context("no frame arrived in time")?;
            let bytes = match (message, self.format) {
                (Some(Ok(tungstenite::Message::Text(text))), Format::Json) => text.as_bytes().to_vec(),
                (Some(Ok(tungstenite::Message::Binary(bytes))), Format::Msgpack) => bytes.to_vec(),
                (Some(Ok(tungstenite::Message::Close(frame))), _) => {
                    // Reading to the end sends the reply to the close frame.
                    while let Ok(Some(Ok(_))) = timeout_at(deadline, self.stream.next()).await {}
                    return Ok(AblyEvent::Closed(frame.map_or(1005, |frame| frame.code.into())));
                }
                (Some(Ok(tungstenite::Message::Ping(_) | tungstenite::Message::Pong(_))), _) => continue,
                (Some(Ok(message)), format) => bail!("{message:?} arrived on a connection in {format:?}"),
                (Some(Err(_)) | None, _) => return Ok(AblyEvent::Closed(1006)),
            };
            let frame = Frame::decode(&bytes, self.format);
            let frame = frame.map_err(|error| {
                anyhow::anyhow!("{error:?} in a frame of the hub: {}", String::from_utf8_lossy(&bytes))
            })?;
            return Ok(AblyEvent::Frame(Box::new(frame)));
        }
    }
}

/// Grace period after which the members of a connection that was lost without CLOSE leave the presence sets.
pub const PRESENCE_GRACE: Duration = Duration::from_secs(15);

/// Messages of a frame with the fields that the frame has for all of them.
pub fn completed(frame: Frame<'static>) -> Vec<Message<'static>> {
    let Frame { connection_id, timestamp, messages, .. } = frame;
    let complete = |message: Message<'static>| Message {
        connection_id: message.connection_id.or_else(|| connection_id.clone()),
        timestamp: message.timestamp.or(timestamp),
        ..message
    };
    messages.unwrap_or_default().into_iter().map(complete).collect()
}

/// A message with text as data.
pub fn text(name: &str, data: &str) -> Message<'static> {
    Message {
        name: Some(name.to_owned().into()),
        data: Some(Data::Text(data.to_owned().into())),
        ..Message::default()
    }
}

/// A message with an object as data.
pub fn json(name: &str, data: &serde_json::Value) -> Message<'static> {
    Message { encoding: Some("json".into()), ..text(name, &data.to_string()) }
}

/// A change of presence without data.
pub fn presence(action: PresenceAction) -> PresenceMessage<'static> {
    PresenceMessage {
        id: None,
        client_id: None,
        connection_id: None,
        timestamp: None,
        encoding: None,
        data: None,
        extras: None,
        action,
    }
}

/// Text of a message; empty for other data.
pub fn text_of<'a>(message: &'a Message<'_>) -> &'a str {
    match &message.data {
        Some(Data::Text(text)) => text,
        _ => "",
    }
}

/// Object of a message with the encoding `json`; null for other data.
pub fn object_of(message: &Message<'_>) -> serde_json::Value {
    serde_json::from_str(text_of(message)).unwrap_or_default()
}
