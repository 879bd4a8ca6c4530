//! A realtime connection: its state, and the frames of its client.

use super::attach::Attached;
use super::credentials::AblyCaller;
use super::encoder::{AblyEncoder, OwnEncoders, disconnected, encode};
use super::handshake::Handshake;
use super::jaibber::{ConnectionFacts, ProjectChannels};
use super::openings::Openings;
use super::{HEARTBEAT, MAX_IDLE, STATE_TTL};
use crate::App;
use crate::connection::fixed_window::FixedWindow;
use crate::connection::peer::Peer;
use crate::connection::protocol::{Protocol, Reply};
use crate::connection::{SocketMessage, frame};
use crate::encoders::{ABLY_JSON, ABLY_MSGPACK, ConnectionEncoder, Encoders};
use bytes::Bytes;
use parlor_engine::feed::{Codec, Encoding, PresenceGuard};
use parlor_model::{Caller, UserId};
use parlor_wire::ably::codes::{self, ErrorInfo};
use parlor_wire::ably::frames::{Action, ConnectionDetails, Format, Frame};
use parlor_wire::ably::serial::ConnectionId;
use serde::Deserialize;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Time before the expiry of a token at which the hub requests a new token.
const RENEWAL_NOTICE: Duration = Duration::from_secs(30);
/// Maximum bytes of a frame in addition to its messages, for names, ids and encoding.
const FRAME_OVERHEAD: usize = 64 * 1024;

/// Maximum bytes of a frame: twice the messages, whose data may be escaped or base64, and the overhead.
pub(super) fn max_frame_bytes(app: &App) -> usize {
    2 * app.config.ably.message_bytes + FRAME_OVERHEAD
}

pub struct AblyConnection {
    format: Format,
    echo: bool,
    heartbeats: bool,
    pub(super) own: Arc<OwnEncoders>,
    /// `None` until the client has authenticated. Boxed, because it is unused while the handshake is checked.
    pub(super) connected: Option<Box<Connected>>,
}

/// State of an authenticated connection.
pub struct Connected {
    pub id: ConnectionId,
    /// Distinguishes the sockets of a resumed connection.
    pub generation: u64,
    pub format: Format,
    pub echo: bool,
    pub own: Arc<OwnEncoders>,
    pub address: IpAddr,
    pub caller: AblyCaller,
    pub username: Box<str>,
    pub presence: PresenceGuard,
    pub projects: ProjectChannels,
    /// Channels by the name that the client uses.
    pub channels: HashMap<Box<str>, Attached>,
    /// Channels of `channels` whose feeds are not open yet.
    pub openings: Openings,
    pub expiry: Option<Expiry>,
    /// Whether the client has closed the connection, so that it cannot be resumed.
    pub is_closed: bool,
}

impl Connected {
    /// The project channels, and the facts with which publications in them must agree.
    pub fn projects<'a>(
        &'a mut self,
        caller: &'a Caller,
        user: &'a UserId,
    ) -> (&'a mut ProjectChannels, ConnectionFacts<'a>) {
        let facts = ConnectionFacts { id: self.id.as_str(), caller, user, username: &self.username };
        (&mut self.projects, facts)
    }
}

/// End of a token, and whether the client has been asked to renew it.
#[derive(Clone, Copy)]
pub struct Expiry {
    at: Instant,
    is_announced: bool,
}

impl Expiry {
    pub fn of(caller: &AblyCaller, app: &App) -> Option<Self> {
        let left = caller.expires_at?.0.saturating_sub(app.hub.now().0);
        let left = Duration::from_micros(u64::try_from(left).unwrap_or_default());
        Some(Self { at: Instant::now() + left, is_announced: left <= RENEWAL_NOTICE })
    }

    fn deadline(self) -> Instant {
        if self.is_announced { self.at } else { self.at - RENEWAL_NOTICE }
    }
}

/// A frame of the client, or the handshake of its connection.
pub enum ConnectionRequest {
    Connect(Box<Handshake>),
    Frame(Box<Frame<'static>>),
}

/// A message that cannot be decoded as a frame, and the readable fields for its error.
pub struct Unreadable {
    error: ErrorInfo,
    fields: Fields,
}

/// Fields that are readable although the rest of the frame is not.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Fields {
    action: Option<u64>,
    msg_serial: Option<u64>,
    channel: Option<String>,
}

impl AblyConnection {
    pub fn new(app: &App, handshake: &Handshake) -> Self {
        let Handshake { format, echo, heartbeats, .. } = *handshake;
        let own = Arc::new(OwnEncoders::new(
            AblyEncoder { format, epoch: app.hub.epoch(), names: app.hub.names() },
            echo,
        ));
        Self { format, echo, heartbeats, own, connected: None }
    }

    pub fn echo(&self) -> bool {
        self.echo
    }

    pub fn format(&self) -> Format {
        self.format
    }

    fn reply(&self, frame: &Frame<'_>) -> Reply {
        Reply::Frames(encode(frame, self.format))
    }

    /// Sends the error and closes the connection; see [`rejection`].
    pub fn reject(&self, peer: &Peer, error: ErrorInfo) {
        peer.outbox.close(rejection(error, self.format));
    }
}

/// Last frames of a rejected connection. After ERROR a client gives up, unless the error concerns its token; after
/// DISCONNECTED it tries again.
pub fn rejection(error: ErrorInfo, format: Format) -> Bytes {
    if error.status_code >= 500 || error.status_code == 429 {
        return disconnected(error, 1013, format);
    }
    let reason = error.message.clone();
    frame::concat(&[encode(&Frame::error(None, error), format), frame::close(1008, &reason)])
}

/// Details of a CONNECTED frame.
pub(super) fn details<'a>(app: &App, caller: &'a AblyCaller, key: String) -> ConnectionDetails<'a> {
    let rate = app.config.ably.frames.map(|frames| {
        let window = app.config.client_window.as_secs().max(1);
        (u64::from(frames) / window).max(1)
    });
    ConnectionDetails {
        client_id: caller.identity.announced().map(Into::into),
        connection_key: key.into(),
        max_message_size: Some(app.config.ably.message_bytes as u64),
        max_inbound_rate: rate,
        max_outbound_rate: None,
        max_frame_size: Some(max_frame_bytes(app) as u64),
        connection_state_ttl: Some(STATE_TTL.as_millis() as u64),
        max_idle_interval: Some(MAX_IDLE.as_millis() as u64),
        server_id: Some(format!("parlor-{}", app.hub.epoch()).into()),
    }
}

impl Protocol for AblyConnection {
    type Request = ConnectionRequest;
    type ParseError = Box<Unreadable>;
    const COUNTS_AS_PRESENCE: bool = true;
    const ENTERS_PLACES: bool = true;

    fn encoding(&self) -> Encoding {
        let shared = encoding(self.format);
        // A connection with `echo=false` has only feeds with the private encoding.
        if self.echo { shared } else { Encoding { codec: Codec::PRIVATE, ..shared } }
    }

    fn encoder(&self, encoders: &Arc<Encoders>) -> ConnectionEncoder {
        ConnectionEncoder::private(encoders, self.own.all())
    }

    fn max_message_bytes(app: &App) -> usize {
        max_frame_bytes(app)
    }

    fn rate_limit(app: &App) -> FixedWindow {
        FixedWindow::new(app.config.client_window, app.config.ably.frames)
    }

    fn heartbeat(&self, app: &App) -> (Duration, Bytes) {
        // The WebSocket library of every client answers the ping; some clients see only the HEARTBEAT frame.
        let frames = if self.heartbeats {
            frame::concat(&[encode(&Frame::new(Action::Heartbeat), self.format), frame::ping()])
        } else {
            frame::ping()
        };
        (app.config.heartbeat.min(HEARTBEAT), frames)
    }

    fn parse(&self, _: &App, message: &SocketMessage) -> Result<ConnectionRequest, Box<Unreadable>> {
        let (bytes, format): (&[u8], _) = match message {
            SocketMessage::Text(text) => (text.as_bytes(), Format::Json),
            SocketMessage::Binary(bytes) => (bytes, Format::Msgpack),
        };
        if format != self.format {
            let error =
                ErrorInfo::new(codes::BAD_REQUEST, "The frame has another format than the connection");
            return Err(Box::new(Unreadable { error, fields: Fields::default() }));
        }
        match Frame::decode(bytes, format) {
            Ok(frame) => Ok(ConnectionRequest::Frame(Box::new(frame))),
            Err(error) => {
                let fields = format.decode::<Fields>(bytes).unwrap_or_default();
                Err(Box::new(Unreadable { error, fields }))
            }
        }
    }

    fn is_pipelined(request: &ConnectionRequest) -> bool {
        match request {
            ConnectionRequest::Frame(frame) => matches!(frame.action, Action::Message | Action::Heartbeat),
            ConnectionRequest::Connect(_) => false,
        }
    }

    fn is_rate_limited(request: &ConnectionRequest) -> bool {
        match request {
            ConnectionRequest::Frame(frame) => {
                matches!(frame.action, Action::Message | Action::Presence | Action::Attach | Action::Sync)
            }
            ConnectionRequest::Connect(_) => false,
        }
    }

    async fn handle(&mut self, peer: &mut Peer, request: ConnectionRequest) -> Reply {
        let frame = match request {
            ConnectionRequest::Connect(handshake) => {
                self.connect(peer, *handshake).await;
                return Reply::None;
            }
            ConnectionRequest::Frame(frame) => *frame,
        };
        let Some(connected) = &mut self.connected else { return Reply::None };
        for failed in connected.openings.failed() {
            connected.close_channel(peer, &failed);
        }
        match frame.action {
            Action::Heartbeat => {
                let answer = Frame { id: frame.id, ..Frame::new(Action::Heartbeat) };
                self.reply(&answer)
            }
            Action::Attach => connected.attach(peer, frame).await,
            Action::Detach => connected.detach(peer, frame).await,
            Action::Message => connected.publish(peer, frame).await,
            Action::Presence => connected.change_presence(peer, frame).await,
            Action::Sync => connected.send_presence(peer, &frame).await,
            Action::Auth => {
                if let Err(error) = connected.reauthorise(peer, frame).await {
                    self.reject(peer, error);
                }
                Reply::None
            }
            Action::Close => {
                connected.is_closed = true;
                let closed = encode(&Frame::new(Action::Closed), self.format);
                peer.outbox.close(frame::concat(&[closed, frame::close(1000, "Closed")]));
                Reply::None
            }
            Action::Disconnect => {
                peer.close(1000, "Disconnected");
                Reply::None
            }
            // A client has no reason to send these frames, so the hub ignores them.
            Action::Ack
            | Action::Nack
            | Action::Connect
            | Action::Connected
            | Action::Disconnected
            | Action::Closed
            | Action::Error
            | Action::Attached
            | Action::Detached => Reply::None,
        }
    }

    fn unreadable(&self, unreadable: Box<Unreadable>) -> Bytes {
        let Unreadable { error, fields } = *unreadable;
        let frame = match (&fields.msg_serial, &fields.channel) {
            // 17 is AUTH and 10 is ATTACH, which have no acknowledgement.
            (Some(serial), _) if !matches!(fields.action, Some(10 | 17)) => Frame::nack(*serial, error),
            (_, channel) => Frame::error(channel.as_deref(), error),
        };
        encode(&frame, self.format)
    }

    fn too_large(&self) -> Option<Bytes> {
        let error = ErrorInfo::new(codes::TOO_LARGE, "Frame exceeds the maximum size");
        Some(encode(&Frame::error(None, error), self.format))
    }

    fn rate_limited(&self, request: Option<&ConnectionRequest>) -> Option<Bytes> {
        let error = ErrorInfo::new(codes::RATE_LIMITED, "Rate limit exceeded");
        let Some(ConnectionRequest::Frame(frame)) = request else { return None };
        let frame = match (frame.msg_serial, frame.channel.as_deref()) {
            (Some(serial), _) => Frame::nack(serial, error),
            (None, Some(channel)) => Frame::error(Some(channel), error),
            (None, None) => return None,
        };
        Some(encode(&frame, self.format))
    }

    fn deadline(&self) -> Option<Instant> {
        self.connected.as_ref()?.expiry.map(Expiry::deadline)
    }

    fn reach_deadline(&mut self, peer: &Peer) {
        let Some(expiry) = self.connected.as_mut().and_then(|connected| connected.expiry.as_mut()) else {
            return;
        };
        if expiry.is_announced {
            let error = ErrorInfo::new(codes::TOKEN_EXPIRED, "Token has expired");
            peer.outbox.close(disconnected(error, 1008, self.format));
        } else {
            expiry.is_announced = true;
            peer.outbox.push(encode(&Frame::new(Action::Auth), self.format));
        }
    }

    async fn end(self, peer: &Peer) {
        let Some(connected) = self.connected else { return };
        let Connected { id, generation, is_closed, presence, projects, openings, .. } = *connected;
        openings.end().await;
        peer.app.ably_connections.end(&id, generation, is_closed, peer.app.hub.now());
        if is_closed {
            presence.close();
        }
        projects.end().await;
    }
}

/// Encoding of the items that all connections with this format share.
pub fn encoding(format: Format) -> Encoding {
    match format {
        Format::Json => ABLY_JSON,
        Format::Msgpack => ABLY_MSGPACK,
    }
}
