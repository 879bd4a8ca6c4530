//! Connects to the hub's `/ws/gateway` and exposes the socket as a [`FrameChannel`]. Other clients of a hub open
//! their sockets with [`open`].
//!
//! One task reads and writes; it ends when either side closes or the hub sends nothing for `IDLE_TIMEOUT`.

use super::sign_in::{ConnectError, SignIn};
use super::trust::{self, Trust};
use crate::FrameChannel;
use futures_util::{SinkExt, StreamExt};
use parlor_model::GatewayId;
use parlor_wire::agentim::gateway::host::egress;
use parlor_wire::agentim::gateway::host::ingress::{Instruction, LIMITS, read};
use parlor_wire::agentim::gateway::ingress::{Auth, Device, GatewayMessage};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, interval, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};
use tokio_util::task::AbortOnDropHandle;
use url::Url;

/// Timeout for opening a socket, and for each authentication attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Interval between two pings to the hub.
const PING_INTERVAL: Duration = Duration::from_secs(15);
/// Maximum time without a frame from the hub before the connection counts as lost.
const IDLE_TIMEOUT: Duration = Duration::from_secs(40);
/// Capacity of the queue of outgoing frames. It is small, so that text that arrives while the socket is
/// busy is merged into larger chunks.
const WRITE_QUEUE_CAPACITY: usize = 4;
/// Capacity of the queue of received frames.
const READ_QUEUE_CAPACITY: usize = 256;

pub struct Connection {
    pub link: FrameChannel,
    /// Task of the connection; returns the reason why the connection ended.
    pub over: AbortOnDropHandle<String>,
}

/// A TCP or TLS stream.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

pub type Socket = WebSocketStream<Box<dyn Stream>>;

pub async fn connect(
    server: &Url,
    gateway: &GatewayId,
    sign_in: &mut SignIn,
) -> Result<Connection, ConnectError> {
    let token = sign_in.token(false).await?;
    let limits =
        WebSocketConfig::default().max_message_size(Some(LIMITS.bytes)).max_frame_size(Some(LIMITS.bytes));
    let mut socket = open(server, "ws/gateway", sign_in.trust(), limits).await?;
    if !timeout(CONNECT_TIMEOUT, authenticate(&mut socket, gateway, token)).await.map_err(timed_out)?? {
        // The token may have expired; a new one is tried on the same socket.
        let token = sign_in.token(true).await?;
        if !timeout(CONNECT_TIMEOUT, authenticate(&mut socket, gateway, token)).await.map_err(timed_out)?? {
            return Err(ConnectError::Wrong("the hub does not accept this sign-in".into()));
        }
    }
    let (gateway_end, socket_end) = channels();
    let over = AbortOnDropHandle::new(tokio::spawn(pump(socket, socket_end)));
    Ok(Connection { link: gateway_end, over })
}

fn channels() -> (FrameChannel, FrameChannel) {
    let (to_hub, from_gateway) = mpsc::channel(WRITE_QUEUE_CAPACITY);
    let (to_gateway, from_hub) = mpsc::channel(READ_QUEUE_CAPACITY);
    (
        FrameChannel { incoming: from_hub, outgoing: to_hub },
        FrameChannel { incoming: from_gateway, outgoing: to_gateway },
    )
}

/// Opens a WebSocket at a path of the hub, such as `ws/gateway`.
pub async fn open(
    server: &Url,
    path: &str,
    trust: &Trust,
    limits: WebSocketConfig,
) -> Result<Socket, ConnectError> {
    timeout(CONNECT_TIMEOUT, open_socket(server, path, trust, limits)).await.map_err(timed_out)?
}

fn timed_out(_: Elapsed) -> ConnectError {
    ConnectError::NotNow("the hub does not answer".into())
}

async fn open_socket(
    server: &Url,
    path: &str,
    trust: &Trust,
    limits: WebSocketConfig,
) -> Result<Socket, ConnectError> {
    let failed = |error: std::io::Error| trust::failed("the hub cannot be reached", &error);
    let secure = matches!(server.scheme(), "https" | "wss");
    let host = server.host_str().ok_or(ConnectError::Wrong("the server's address has no host".into()))?;
    let port = server.port().unwrap_or(if secure { 443 } else { 80 });
    let address = host.trim_start_matches('[').trim_end_matches(']');
    let stream = TcpStream::connect((address, port)).await.map_err(failed)?;
    // Frames are written whole, so Nagle's algorithm would only add latency.
    let _ = stream.set_nodelay(true);
    let stream: Box<dyn Stream> = if secure {
        let name = ServerName::try_from(address.to_owned());
        let name =
            name.map_err(|_| ConnectError::Wrong("the server's address has no valid host name".into()))?;
        Box::new(TlsConnector::from(trust.config().clone()).connect(name, stream).await.map_err(failed)?)
    } else {
        Box::new(stream)
    };
    let mut url = server.join(path).map_err(|error| ConnectError::Wrong(error.to_string()))?;
    let _ = url.set_scheme(if secure { "wss" } else { "ws" });
    let opened = client_async_with_config(url.as_str(), stream, Some(limits)).await;
    let (socket, _) =
        opened.map_err(|error| ConnectError::NotNow(format!("this is not a Parlor hub: {error}")))?;
    Ok(socket)
}

/// Authenticates and returns whether the hub accepted the token.
async fn authenticate(socket: &mut Socket, gateway: &GatewayId, token: String) -> Result<bool, ConnectError> {
    let auth = auth(gateway, &token);
    let lost = |error: Error| ConnectError::NotNow(format!("the hub closed the connection: {error}"));
    socket.send(Message::text(auth)).await.map_err(lost)?;
    loop {
        let Some(message) = socket.next().await else {
            return Err(ConnectError::NotNow("the hub closed the connection".into()));
        };
        let Message::Text(text) = message.map_err(lost)? else { continue };
        match read(&text) {
            Ok(Some(Instruction::Welcome)) => return Ok(true),
            Ok(Some(Instruction::AuthFailed { error })) => match &*error {
                "Authentication failed" => return Ok(false),
                other => return Err(ConnectError::NotNow(other.to_owned())),
            },
            Ok(Some(Instruction::Refused { message, .. })) => {
                return Err(ConnectError::Wrong(message.into()));
            }
            _ => {}
        }
    }
}

pub fn auth(gateway: &GatewayId, token: &str) -> String {
    let name = rustix::system::uname();
    egress::write(&GatewayMessage::Auth(Auth {
        token: token.into(),
        gateway: Some(gateway.clone()),
        version: Some("1".into()),
        device: Device {
            hostname: name.nodename().to_string_lossy().into(),
            platform: std::env::consts::OS.into(),
            arch: std::env::consts::ARCH.into(),
            node_version: concat!("parlor ", env!("CARGO_PKG_VERSION")).into(),
        },
        ephemeral: false,
        by_room: true,
    }))
}

/// Forwards frames in both directions until either side closes, and returns the reason.
async fn pump(socket: Socket, channel: FrameChannel) -> String {
    let FrameChannel { mut incoming, outgoing } = channel;
    let (mut sink, mut stream) = socket.split();
    let writing = async {
        let mut pings = interval(PING_INTERVAL);
        pings.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let frame = tokio::select! {
                frame = incoming.recv() => frame,
                _ = pings.tick() => {
                    let ts = serde_json::Number::from(std::time::UNIX_EPOCH.elapsed().map_or(0, |t| t.as_secs()));
                    Some(egress::write(&GatewayMessage::Ping { ts }))
                }
            };
            let Some(frame) = frame else {
                let _ = sink.close().await;
                return "the gateway closed the connection".to_owned();
            };
            if let Err(error) = sink.send(Message::text(frame)).await {
                return error.to_string();
            }
        }
    };
    let reading = async {
        let mut last_received = Instant::now();
        loop {
            let message = match tokio::time::timeout_at(last_received + IDLE_TIMEOUT, stream.next()).await {
                Ok(Some(Ok(message))) => message,
                Ok(Some(Err(error))) => return error.to_string(),
                Ok(None) => return "the hub closed the connection".to_owned(),
                Err(_) => return "the hub sent nothing for too long".to_owned(),
            };
            last_received = Instant::now();
            match message {
                Message::Text(text) if outgoing.send(text.as_str().to_owned()).await.is_err() => {
                    return "the gateway closed the connection".to_owned();
                }
                Message::Close(Some(close)) if !close.reason.is_empty() => return close.reason.to_string(),
                Message::Close(_) => return "the hub closed the connection".to_owned(),
                _ => {}
            }
        }
    };
    tokio::select! {
        reason = reading => reason,
        reason = writing => reason,
    }
}
