//! A WebSocket client for tests: JSON frames with timeouts, other frames, raw bytes, and disconnects within a
//! frame.

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures_util::{SinkExt, StreamExt};
use serde::Serialize;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{self, Message};

/// Default timeout of tests. It is long enough for a slow machine under load; passing tests never wait for
/// it.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(20);

pub struct Socket {
    stream: WebSocketStream<Box<dyn Wire>>,
    /// Frames that arrived while another frame was awaited, in order.
    skipped: VecDeque<Value>,
    /// Check that every received frame must pass.
    check: FrameCheck,
}

/// A transport for a socket: a plain or a TLS connection.
pub trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// A check that every frame of a protocol must pass. The error describes the violation.
pub type FrameCheck = fn(&Value) -> Result<()>;

/// The next event on the socket.
#[derive(Debug, PartialEq)]
pub enum SocketEvent {
    Frame(Value),
    /// Close code: 1006 if the connection ended without a close frame, 1005 if the close frame had no code.
    Closed(u16),
}

/// HTTP status of a rejected upgrade request.
#[derive(Debug)]
pub struct NotUpgraded(pub u16);

impl std::fmt::Display for NotUpgraded {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "the upgrade was answered with {}", self.0)
    }
}

impl std::error::Error for NotUpgraded {}

impl Socket {
    /// Opens `path` of the hub at `url` (`http://…`) with extra headers. A `Host` header given here replaces
    /// the default.
    pub async fn open(url: &str, path: &str, headers: &[(&'static str, &str)]) -> Result<Self> {
        let address = url.strip_prefix("http://").context("the URL must start with http://")?;
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Self::upgrade(stream, address, path, headers).await
    }

    /// Upgrades a connection that the test has prepared, for example with a small receive buffer.
    pub async fn upgrade(
        stream: impl Wire + 'static,
        address: &str,
        path: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<Self> {
        let mut request = format!("ws://{address}{path}").into_client_request()?;
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse()?);
        }
        match tokio_tungstenite::client_async(request, Box::new(stream) as Box<dyn Wire>).await {
            Ok((stream, _)) => Ok(Self { stream, skipped: VecDeque::new(), check: |_| Ok(()) }),
            Err(tungstenite::Error::Http(answer)) => bail!(NotUpgraded(answer.status().as_u16())),
            Err(error) => Err(error.into()),
        }
    }

    /// Applies a check to every received frame from now on. Receiving a frame that violates it returns an
    /// error.
    pub fn hold_to(mut self, check: FrameCheck) -> Self {
        self.check = check;
        self
    }

    pub async fn send(&mut self, frame: &impl Serialize) -> Result<()> {
        self.send_message(Message::text(serde_json::to_string(frame)?)).await
    }

    /// Sends text that need not be JSON, or a binary, ping or close frame.
    pub async fn send_message(&mut self, message: Message) -> Result<()> {
        Ok(self.stream.send(message).await?)
    }

    /// Queues a frame without waiting for the socket; [`Socket::flush`] sends the queued frames.
    pub async fn feed(&mut self, frame: &Value) -> Result<()> {
        Ok(self.stream.feed(Message::text(frame.to_string())).await?)
    }

    pub async fn flush(&mut self) -> Result<()> {
        Ok(SinkExt::<Message>::flush(&mut self.stream).await?)
    }

    /// Writes raw bytes below the WebSocket layer: a malformed frame (see [`masked_frame`]), or a part of
    /// one.
    pub async fn send_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.flush().await?;
        let stream = self.stream.get_mut();
        stream.write_all(bytes).await?;
        Ok(stream.flush().await?)
    }

    /// Sends the first part of a frame and drops the connection without a close frame.
    pub async fn cut_in_mid_frame(mut self, frame: &Value) -> Result<()> {
        let bytes = masked_frame(TEXT, frame.to_string().as_bytes());
        self.send_bytes(&bytes[..bytes.len() / 2]).await
    }

    /// Returns the next frame, or the close of the connection.
    pub async fn next(&mut self, timeout: Duration) -> Result<SocketEvent> {
        match self.skipped.pop_front() {
            Some(frame) => Ok(SocketEvent::Frame(frame)),
            None => self.receive(Instant::now() + timeout).await,
        }
    }

    /// Returns the next frame; it is an error if the connection ends instead.
    pub async fn frame(&mut self, timeout: Duration) -> Result<Value> {
        match self.next(timeout).await? {
            SocketEvent::Frame(frame) => Ok(frame),
            SocketEvent::Closed(code) => bail!("closed with {code} while a frame was awaited"),
        }
    }

    /// Returns the next frame that matches. Other frames are kept for later calls, in order.
    pub async fn wait_for(&mut self, timeout: Duration, matches: impl Fn(&Value) -> bool) -> Result<Value> {
        if let Some(position) = self.skipped.iter().position(&matches) {
            return Ok(self.skipped.remove(position).expect("the position was just found"));
        }
        let deadline = Instant::now() + timeout;
        loop {
            match self.receive(deadline).await.with_context(|| format!("skipped {:?}", self.skipped))? {
                SocketEvent::Frame(frame) if matches(&frame) => return Ok(frame),
                SocketEvent::Frame(frame) => self.skipped.push_back(frame),
                SocketEvent::Closed(code) => bail!("closed with {code}; skipped {:?}", self.skipped),
            }
        }
    }

    /// Waits for a ping of the hub, which the library answers.
    pub async fn ping(&mut self) -> Result<()> {
        loop {
            match timeout_at(Instant::now() + TEST_TIMEOUT, self.stream.next())
                .await
                .context("no ping arrived")?
            {
                Some(Ok(Message::Ping(_))) => return Ok(()),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.into()),
                None => bail!("the connection ended"),
            }
        }
    }

    pub async fn wait_for_type(&mut self, kind: &str) -> Result<Value> {
        let found = self.wait_for(TEST_TIMEOUT, |frame| frame["type"] == kind).await;
        found.with_context(|| format!("no {kind}"))
    }

    /// Reads until the connection is closed and returns the close code. Frames before it are dropped.
    pub async fn closed(&mut self, timeout: Duration) -> Result<u16> {
        let deadline = Instant::now() + timeout;
        loop {
            if let SocketEvent::Closed(code) = self.receive(deadline).await? {
                return Ok(code);
            }
        }
    }

    async fn receive(&mut self, deadline: Instant) -> Result<SocketEvent> {
        loop {
            let message =
                timeout_at(deadline, self.stream.next()).await.context("no frame arrived in time")?;
            match message {
                Some(Ok(Message::Text(text))) => {
                    let frame = serde_json::from_str(&text)?;
                    (self.check)(&frame).with_context(|| format!("an invalid frame: {frame}"))?;
                    return Ok(SocketEvent::Frame(frame));
                }
                Some(Ok(Message::Close(frame))) => {
                    // Reading to the end sends the reply to the close frame.
                    while let Ok(Some(Ok(_))) = timeout_at(deadline, self.stream.next()).await {}
                    return Ok(SocketEvent::Closed(frame.map_or(1005, |frame| frame.code.into())));
                }
                Some(Ok(Message::Binary(bytes))) => bail!("a binary frame of {} bytes arrived", bytes.len()),
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                Some(Err(tungstenite::Error::Utf8(_) | tungstenite::Error::Capacity(_))) => {
                    bail!("an unreadable frame arrived")
                }
                Some(Err(_)) | None => return Ok(SocketEvent::Closed(1006)),
            }
        }
    }
}

pub const TEXT: u8 = 0x1;

/// Encodes one final client frame with any opcode and payload.
pub fn masked_frame(opcode: u8, payload: &[u8]) -> Vec<u8> {
    const MASK: [u8; 4] = [0x5A, 0xC3, 0x0F, 0x96];
    let mut bytes = vec![0x80 | opcode];
    match payload.len() {
        len @ 0..126 => bytes.push(0x80 | len as u8),
        len @ 126..=0xFFFF => {
            bytes.push(0x80 | 126);
            bytes.extend((len as u16).to_be_bytes());
        }
        len => {
            bytes.push(0x80 | 127);
            bytes.extend((len as u64).to_be_bytes());
        }
    }
    bytes.extend(MASK);
    bytes.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tokio::net::TcpListener;
    use tokio::task::JoinHandle;
    use tokio_tungstenite::tungstenite::protocol::CloseFrame;

    #[tokio::test]
    async fn frames_written_as_bytes_are_received_and_skipped_frames_stay_in_order() {
        let (mut socket, server) = echo().await;
        for n in 0..3 {
            let frame = json!({ "n": n, "filler": "x".repeat(n * 70_000) });
            socket.send_bytes(&masked_frame(TEXT, frame.to_string().as_bytes())).await.unwrap();
        }
        let last = socket.wait_for(TEST_TIMEOUT, |frame| frame["n"] == 2).await.unwrap();
        assert_eq!(last["filler"].as_str().unwrap().len(), 140_000);
        assert_eq!(socket.frame(TEST_TIMEOUT).await.unwrap()["n"], 0);
        assert_eq!(socket.frame(TEST_TIMEOUT).await.unwrap()["n"], 1);
        socket.send(&json!("close")).await.unwrap();
        assert_eq!(socket.closed(TEST_TIMEOUT).await.unwrap(), 4001);
        server.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_disconnect_within_a_frame_drops_that_frame() {
        let (socket, server) = echo().await;
        socket.cut_in_mid_frame(&json!("close")).await.unwrap();
        let error = server.await.unwrap().unwrap_err();
        assert!(matches!(error, tungstenite::Error::Protocol(_)), "{error}");
    }

    async fn echo() -> (Socket, JoinHandle<tungstenite::Result<()>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = tokio::spawn(async move {
            let mut stream = tokio_tungstenite::accept_async(listener.accept().await.unwrap().0).await?;
            while let Some(message) = stream.next().await {
                match message? {
                    Message::Text(text) if text == "\"close\"" => {
                        stream.close(Some(CloseFrame { code: 4001.into(), reason: "".into() })).await?;
                    }
                    Message::Text(text) => stream.send(Message::Text(text)).await?,
                    _ => {}
                }
            }
            Ok(())
        });
        (Socket::open(&url, "/", &[]).await.unwrap(), server)
    }
}
