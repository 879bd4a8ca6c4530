//! AgentIM protocol for users: the WebSocket connections of `/ws/client`.
//!
//! Translates requests to calls of the hub, and limits typing signals.

mod agent_actions;
pub mod closing;
pub mod page;

use crate::App;
use crate::auth;
use crate::connection::fixed_window::FixedWindow;
use crate::connection::peer::Peer;
use crate::connection::protocol::{Answer, DecidedReply, Protocol, Reply};
use crate::connection::upgrade::upgrade;
use crate::connection::{SocketMessage, frame, session_loop};
use crate::encoders::{CLIENT, EVENT_FRAMES, Encoder, PAGE};
use crate::events;
use crate::http::problem::Problem;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use futures_util::FutureExt;
use parlor_engine::PendingReceipt;
use parlor_engine::feed::{DisconnectReason, Encoding, Interest, LiveFrame, Open, RoomFilter, Since};
use parlor_model::command::Posted;
use parlor_model::{EntityKind, Epoch, Field, LoggedEvent, Position, Refusal, RoomId, Signal, SignalStamp};
use parlor_wire::agentim::egress;
use parlor_wire::agentim::ingress::{self, ClientRequest, Draft, FrameError};
use parlor_wire::events::egress as events_egress;
use parlor_wire::events::frames::StreamFormat;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum bytes of a message, raised to `frames.bytes` if that is larger. A longer message ends the
/// connection; one that only exceeds `frames.bytes` is rejected.
const MAX_MESSAGE_BYTES: usize = 1024 * 1024;
/// Minimum interval between typing signals of a connection in one room.
const TYPING_INTERVAL: Duration = Duration::from_secs(1);

pub struct ClientEncoder {
    pub epoch: Epoch,
}

impl Encoder for ClientEncoder {
    fn event(&self, logged_event: &LoggedEvent, _: Option<&str>) -> Option<Bytes> {
        egress::event(logged_event, self.epoch).map(|text| frame::text(&text))
    }

    fn room_lost(&self, room: &RoomId, _: &LoggedEvent, _: Option<&str>) -> Option<Bytes> {
        Some(frame::text(&egress::room_removed(room)))
    }

    fn signal(&self, signal: &Signal, _: SignalStamp, _: Option<&str>) -> Option<Bytes> {
        egress::signal(signal).map(|text| frame::text(&text))
    }

    fn disconnect(&self, reason: DisconnectReason) -> Bytes {
        closing::disconnect_frame(reason, closing::CLIENT_TOO_SLOW)
    }
}

pub async fn mount(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let shared = app.clone();
    upgrade(&app, request, move |upgraded| session_loop::run(shared, upgraded, Client::default(), None))
}

/// State of one client connection.
#[derive(Default)]
struct Client {
    username: Box<str>,
    last_typing: HashMap<RoomId, Instant>,
}

impl Protocol for Client {
    type Request = ClientRequest;
    type ParseError = FrameError;
    const COUNTS_AS_PRESENCE: bool = true;

    fn encoding(&self) -> Encoding {
        CLIENT
    }

    fn max_message_bytes(app: &App) -> usize {
        MAX_MESSAGE_BYTES.max(app.config.frames.bytes)
    }

    fn rate_limit(app: &App) -> FixedWindow {
        FixedWindow::new(app.config.client_window, app.config.client_max)
    }

    fn parse(&self, app: &App, message: &SocketMessage) -> Result<ClientRequest, FrameError> {
        match message {
            SocketMessage::Text(text) => ingress::read(text, &app.config.frames),
            SocketMessage::Binary(_) => Err(FrameError::Unknown),
        }
    }

    fn is_pipelined(request: &ClientRequest) -> bool {
        matches!(request, ClientRequest::Send { .. })
    }

    fn is_rate_limited(request: &ClientRequest) -> bool {
        !matches!(request, ClientRequest::Auth { .. } | ClientRequest::Ping { .. })
    }

    async fn handle(&mut self, peer: &mut Peer, request: ClientRequest) -> Reply {
        let result = match request {
            ClientRequest::Ping { ts } => return Reply::text(&egress::pong(&ts)),
            ClientRequest::Auth { token, version } => {
                self.authenticate(peer, &token, version.as_deref()).await;
                return Reply::None;
            }
            ClientRequest::Send { room, post } => return send(peer, room, post).await,
            _ if peer.identity.is_none() => Err(Refusal::NotSignedIn),
            ClientRequest::Join { room, since } => join(peer, room, since.as_deref()).await,
            ClientRequest::SubscribeEvents { since } => subscribe_events(peer, since.as_deref()).await,
            ClientRequest::Follow { since } => follow(peer, since.as_deref()).await,
            ClientRequest::Leave { room } => {
                if let (Some(room), Some(identity)) = (room, &peer.identity) {
                    identity.session.close(&room);
                }
                Ok(())
            }
            ClientRequest::Typing { room } => {
                self.typing(peer, room);
                Ok(())
            }
            ClientRequest::OfAgents(action) => agent_actions::handle(peer, action).await,
        };
        match result {
            Ok(()) => Reply::None,
            Err(refusal) => Reply::text(&egress::refusal(&refusal, None)),
        }
    }

    fn unreadable(&self, error: FrameError) -> Bytes {
        let (code, words) = error.words();
        frame::text(&egress::error(code, words))
    }

    fn too_large(&self) -> Option<Bytes> {
        Some(self.unreadable(FrameError::TooLarge))
    }

    fn rate_limited(&self, request: Option<&ClientRequest>) -> Option<Bytes> {
        let id = match request {
            Some(ClientRequest::Send { post, .. }) => post.client_message_id.as_deref(),
            _ => None,
        };
        let refusal = Refusal::RateLimited { retry_after: Duration::ZERO };
        Some(frame::text(&egress::refusal(&refusal, id)))
    }
}

impl Client {
    async fn authenticate(&mut self, peer: &mut Peer, token: &str, version: Option<&str>) {
        if !closing::check_version(peer, "client", version) {
            return;
        }
        let error = match self.sign_in(peer, token).await {
            Ok(()) => return,
            Err(Refusal::TooManyConnections) => "Too many connections",
            Err(Refusal::AtCapacity | Refusal::Unavailable) => "Server at capacity",
            Err(_) => "Invalid token",
        };
        peer.sign_in_failed(&egress::not_authenticated(error));
    }

    async fn sign_in(&mut self, peer: &mut Peer, token: &str) -> Result<(), Refusal> {
        let caller = auth::caller(&peer.app, token).await?;
        let user = caller.user().ok_or(Refusal::NotSignedIn)?;
        let greeting = egress::authenticated(user.as_str());
        if peer.has_signed_in_as(&caller).await? {
            peer.send_text(&greeting);
            return Ok(());
        }
        self.username = peer.admit(caller, frame::text(&greeting)).await?.user.username.clone();
        Ok(())
    }

    fn typing(&mut self, peer: &Peer, room: Option<RoomId>) {
        let (Some(room), Some(identity)) = (room, &peer.identity) else { return };
        let recently = self.last_typing.get(&room).is_some_and(|at| at.elapsed() < TYPING_INTERVAL);
        if recently || !identity.session.is_open(&room) {
            return;
        }
        // The protocol has no answer to a typing frame.
        let _ = identity.session.typing(&room, &self.username);
        self.last_typing.insert(room, Instant::now());
    }
}

async fn join(peer: &Peer, room: Option<RoomId>, since: Option<&str>) -> Result<(), Refusal> {
    let session = &peer.signed_in()?.session;
    let room = room.ok_or(Refusal::NotFound(EntityKind::Room))?;
    let (position, joined) = (parse_since(&peer.app, since)?, room.clone());
    let live: LiveFrame = Arc::new(move |live| match live.resync {
        // The client loads the earlier history again.
        Some(_) => frame::text(&egress::resync(&joined, live.at)),
        None => frame::text(&egress::joined(&joined, live.at)),
    });
    let live = since.is_some().then_some(live);
    let (interest, since) = (Interest::Room(room), position.into());
    let open = Open { interest, since, encoding: CLIENT, opened: None, live };
    session.open(open).await
}

/// Opens a feed with the chat events of all the user's rooms, beside the joined rooms.
async fn subscribe_events(peer: &Peer, since: Option<&str>) -> Result<(), Refusal> {
    let position = |at| events_egress::position(at, StreamFormat::Frame);
    let open = open_all(peer, since, EVENT_FRAMES, position)?;
    peer.signed_in()?.session.open(open).await
}

/// Opens all the user's rooms, with every change once, instead of the joined rooms.
async fn follow(peer: &Peer, since: Option<&str>) -> Result<(), Refusal> {
    let open = open_all(peer, since, PAGE, parlor_wire::page::following)?;
    peer.signed_in()?.session.open_only(open).await
}

/// A feed of all the user's rooms. `position` encodes the position from which on it is live.
fn open_all(
    peer: &Peer,
    since: Option<&str>,
    encoding: Encoding,
    position: fn(Position) -> String,
) -> Result<Open, Refusal> {
    let since = parse_since(&peer.app, since)?;
    let live = events::live_frame(StreamFormat::Frame, |text| frame::text(&text), position);
    let interest = Interest::MyRooms(RoomFilter::All);
    Ok(Open { interest, since: since.into(), encoding, opened: None, live: Some(live) })
}

async fn send(peer: &Peer, room: Option<RoomId>, draft: Draft) -> Reply {
    let id = draft.client_message_id.clone();
    let receipt = match submit(peer, room, draft).await {
        Ok(receipt) => receipt,
        Err(refusal) => return Reply::text(&egress::refusal(&refusal, id.as_deref())),
    };
    let reply = async move {
        let text = match (receipt.await, id) {
            (Ok(posted), Some(id)) => Some(egress::acknowledged(&posted, &id)),
            (Ok(_), None) => None,
            (Err(refusal), id) => Some(egress::refusal(&refusal, id.as_deref())),
        };
        DecidedReply { answer: Answer::from(text.map(|text| frame::text(&text))), after: None }
    };
    Reply::Pending(reply.boxed())
}

async fn submit(peer: &Peer, room: Option<RoomId>, draft: Draft) -> Result<PendingReceipt<Posted>, Refusal> {
    let (hub, session) = (&peer.app.hub, &peer.signed_in()?.session);
    let room = room.ok_or(Refusal::NotFound(EntityKind::Room))?;
    // Sending joins the room implicitly. An API key with write scope only may send without receiving.
    let interest = Interest::Room(room.clone());
    let open = Open { interest, since: Since::Now, encoding: CLIENT, opened: None, live: None };
    if !session.is_open(&room)
        && let Err(refusal) = session.open(open).await
        && refusal != Refusal::Forbidden
    {
        return Err(refusal);
    }
    Ok(hub.submit(&session.caller(), draft.into_post(room)).await)
}

fn parse_since(app: &App, since: Option<&str>) -> Result<Option<Position>, Refusal> {
    let Some(text) = since.filter(|since| *since != "now") else { return Ok(None) };
    let position = Position::parse(text, app.hub.epoch());
    position.map(Some).ok_or_else(|| Refusal::invalid(Field::Position, "is not a position"))
}
