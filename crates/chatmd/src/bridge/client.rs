//! A broker client over any WebSocket: numbers its requests, reads while it writes, and notices a dead
//! connection.
//!
//! Owns: the socket and the queue of frames to send. The caller bounds the queue: it has few requests open at
//! a time. Frames are read only when the caller asks for the next one.

use super::ConnectFailure;
use super::room::{RoomConnection, TooLarge};
use futures_util::{Sink, Stream};
use parlor_wire::broker::client::{self as frames, Answer, HubFrame, MAX_REQUEST_BYTES, Relay};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep_until};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

/// Interval between two pings to the hub.
const PING_INTERVAL: Duration = Duration::from_secs(15);
/// Maximum time without a frame from the hub before the connection counts as lost.
const IDLE_TIMEOUT: Duration = Duration::from_secs(40);
/// Maximum time for the answer to `auth`.
const AUTH_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum size of a frame from the hub. The text of a message may have 10 MB, which JSON can multiply by six.
const MAX_FRAME_BYTES: usize = 64 * 1024 * 1024;

/// Limits of the WebSocket for a connection that is passed to the bridge.
pub fn websocket_config() -> WebSocketConfig {
    WebSocketConfig::default().max_message_size(Some(MAX_FRAME_BYTES)).max_frame_size(Some(MAX_FRAME_BYTES))
}

/// Authenticates a new connection with a token or an API key.
pub async fn authenticate<S: AsyncRead + AsyncWrite + Unpin + Send>(
    socket: WebSocketStream<S>,
    token: &str,
) -> Result<Client<S>, ConnectFailure> {
    let mut client = Client::new(socket);
    let request = client.request(|request| frames::auth(token, request));
    let answered = async {
        loop {
            match client.next().await? {
                HubFrame::Answer { request: answered, outcome } if answered == request => {
                    return Ok(outcome);
                }
                _ => {}
            }
        }
    };
    let outcome = tokio::time::timeout(AUTH_TIMEOUT, answered).await;
    let outcome = outcome.unwrap_or_else(|_| Err("the hub does not answer".into()));
    match outcome.map_err(ConnectFailure::Temporary)? {
        Ok(Answer::Authenticated) => Ok(client),
        Err(sentence) if &*sentence == "Invalid token" => {
            Err(ConnectFailure::Permanent("the hub does not accept this key: was it revoked?".into()))
        }
        Err(sentence) => Err(ConnectFailure::Temporary(sentence.into())),
        Ok(_) => Err(ConnectFailure::Temporary(UNEXPECTED.into())),
    }
}

const UNEXPECTED: &str = "the hub sent an unexpected frame";

pub struct Client<S> {
    socket: WebSocketStream<S>,
    outgoing: VecDeque<String>,
    last_request: u64,
    last_received: Instant,
    next_ping: Instant,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Client<S> {
    pub fn new(socket: WebSocketStream<S>) -> Self {
        let now = Instant::now();
        Self {
            socket,
            outgoing: VecDeque::new(),
            last_request: 0,
            last_received: now,
            next_ping: now + PING_INTERVAL,
        }
    }

    /// Queues a request and returns its number. [`Client::next`] sends it.
    fn request(&mut self, encode: impl FnOnce(u64) -> String) -> u64 {
        self.last_request += 1;
        self.outgoing.push_back(encode(self.last_request));
        self.last_request
    }

    fn poll_io(&mut self, context: &mut Context<'_>) -> Poll<Result<Message, String>> {
        if let Poll::Ready(Err(error)) = self.poll_send(context) {
            return Poll::Ready(Err(error));
        }
        let received = ready!(Pin::new(&mut self.socket).poll_next(context));
        Poll::Ready(match received {
            Some(Ok(message)) => Ok(message),
            Some(Err(error)) => Err(error.to_string()),
            None => Err(CLOSED.into()),
        })
    }

    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<Result<(), String>> {
        let mut socket = Pin::new(&mut self.socket);
        let failed = |error: tokio_tungstenite::tungstenite::Error| error.to_string();
        while !self.outgoing.is_empty() {
            ready!(socket.as_mut().poll_ready(context)).map_err(failed)?;
            if let Some(frame) = self.outgoing.pop_front() {
                socket.as_mut().start_send(Message::text(frame)).map_err(failed)?;
            }
        }
        socket.poll_flush(context).map_err(failed)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> RoomConnection for Client<S> {
    fn listen(&mut self, room: &str) -> u64 {
        self.request(|request| frames::listen(room, request))
    }

    fn members(&mut self, room: &str) -> u64 {
        self.request(|request| frames::members(room, request))
    }

    fn history(&mut self, room: &str, after: Option<parlor_model::Position>, limit: usize) -> u64 {
        self.request(|request| frames::history(room, after, limit, request))
    }

    fn relay(&mut self, relay: &Relay<'_>) -> Result<u64, TooLarge> {
        let frame = frames::relay(relay, self.last_request + 1);
        match frame.len() {
            0..=MAX_REQUEST_BYTES => Ok(self.request(|_| frame)),
            _ => Err(TooLarge),
        }
    }

    /// Sends queued frames and returns the next frame from the hub.
    async fn next(&mut self) -> Result<HubFrame, String> {
        loop {
            let (idle_at, ping_at) = (self.last_received + IDLE_TIMEOUT, self.next_ping);
            let received = tokio::select! {
                received = poll_fn(|context| self.poll_io(context)) => received?,
                () = sleep_until(ping_at) => {
                    self.outgoing.push_back(frames::ping());
                    self.next_ping = Instant::now() + PING_INTERVAL;
                    continue;
                }
                () = sleep_until(idle_at) => return Err("the hub sent nothing for too long".into()),
            };
            self.last_received = Instant::now();
            match received {
                Message::Text(text) => {
                    return match frames::read(&text) {
                        Some(HubFrame::Failure(reason)) => Err(reason.into()),
                        Some(frame) => Ok(frame),
                        None => Err(UNEXPECTED.into()),
                    };
                }
                Message::Close(Some(close)) if !close.reason.is_empty() => {
                    return Err(close.reason.to_string());
                }
                Message::Close(_) => return Err(CLOSED.into()),
                _ => {}
            }
        }
    }

    async fn close(&mut self) {
        let _ = self.socket.close(None).await;
    }
}

const CLOSED: &str = "the hub closed the connection";

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::{SinkExt, StreamExt};
    use serde_json::{Value, json};
    use tokio::io::DuplexStream;
    use tokio_tungstenite::tungstenite::protocol::Role;

    async fn pair(buffer: usize) -> (WebSocketStream<DuplexStream>, WebSocketStream<DuplexStream>) {
        let (near, far) = tokio::io::duplex(buffer);
        let client = WebSocketStream::from_raw_socket(near, Role::Client, Some(websocket_config()));
        let hub = WebSocketStream::from_raw_socket(far, Role::Server, Some(websocket_config()));
        tokio::join!(client, hub)
    }

    async fn received(hub: &mut WebSocketStream<DuplexStream>) -> Value {
        let message = hub.next().await.unwrap().unwrap();
        serde_json::from_str(message.to_text().unwrap()).unwrap()
    }

    async fn send(hub: &mut WebSocketStream<DuplexStream>, frame: Value) {
        hub.send(Message::text(frame.to_string())).await.unwrap();
    }

    #[tokio::test]
    async fn the_client_reads_while_the_hub_does_not() {
        let (client, mut hub) = pair(1024).await;
        let mut client = Client::new(client);
        let text = "x".repeat(100_000);
        let relay = Relay {
            room_id: "r",
            author: "a",
            recipient: None,
            observers: &[],
            text: &text,
            continues: None,
            source: "chatmd",
            external_id: "g:0",
        };
        let Ok(request) = client.relay(&relay) else { panic!("the frame is not too large") };
        // The hub sends before it reads the request, which does not fit into the buffer.
        let hub_side = tokio::spawn(async move {
            send(
                &mut hub,
                json!({ "type": "msg.room.changed", "roomId": "r", "filler": "y".repeat(100_000) }),
            )
            .await;
            assert_eq!(received(&mut hub).await["text"].as_str().unwrap().len(), 100_000);
            let answer = json!({ "type": "msg.relay.error", "reqId": request, "error": "no" });
            send(&mut hub, answer).await;
            hub
        });
        assert_eq!(client.next().await.unwrap(), HubFrame::MembersChanged { room: "r".into() });
        let answer = HubFrame::Answer { request, outcome: Err("no".into()) };
        assert_eq!(client.next().await.unwrap(), answer);
        drop(hub_side.await.unwrap());
        client.next().await.unwrap_err();
    }

    #[tokio::test]
    async fn a_rejected_key_is_permanent_and_a_busy_hub_is_not() {
        for (error, permanent) in [("Invalid token", true), ("Too many connections", false)] {
            let (client, mut hub) = pair(1024).await;
            let hub_side = tokio::spawn(async move {
                let auth = received(&mut hub).await;
                assert_eq!(auth["token"], "key");
                send(&mut hub, json!({ "type": "auth.error", "reqId": auth["reqId"], "error": error })).await;
            });
            let failure = authenticate(client, "key").await.err().unwrap();
            assert_eq!(matches!(failure, ConnectFailure::Permanent(_)), permanent, "{failure:?}");
            hub_side.await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_hub_is_pinged_and_then_given_up() {
        let (client, mut hub) = pair(1024).await;
        let mut client = Client::new(client);
        let reading = tokio::spawn(async move {
            let ping = received(&mut hub).await;
            (ping, hub)
        });
        assert_eq!(client.next().await.unwrap_err(), "the hub sent nothing for too long");
        assert_eq!(reading.await.unwrap().0, json!({ "type": "ping" }));
    }
}
