//! AgentIM protocol for users: the WebSocket connections of `/ws/client`.
//!
//! Translates requests to calls of the hub, and limits typing signals.

mod agent_actions;
pub mod closing;

use crate::App;
use crate::auth;
use crate::connection::fixed_window::FixedWindow;
use crate::connection::peer::Peer;
use crate::connection::protocol::{DecidedReply, Protocol, Reply};
use crate::connection::upgrade::upgrade;
use crate::connection::{SocketMessage, frame, session_loop};
use crate::events;
use crate::http::problem::Problem;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use futures_util::FutureExt;
use parlor_engine::PendingReceipt;
use parlor_engine::fanout::{DisconnectReason, Egress, RoomFilter, Subscriber, SubscriberId};
use parlor_model::command::Posted;
use parlor_model::{
    Delivery, EntityKind, Epoch, Field, LoggedEvent, Message, Position, Refusal, RoomId, Signal, SignalStamp,
};
use parlor_wire::agentim::egress;
use parlor_wire::agentim::ingress::{self, ClientRequest, Draft, FrameError};
use parlor_wire::events::frames::StreamFormat;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum bytes of a message, raised to `frames.bytes` if that is larger. A longer message ends the
/// connection; one that only exceeds `frames.bytes` is rejected.
const MAX_MESSAGE_BYTES: usize = 1024 * 1024;
/// Minimum interval between typing signals of a connection in one room.
const TYPING_INTERVAL: Duration = Duration::from_secs(1);

pub struct ClientEgress;

impl Egress for ClientEgress {
    fn event(&self, logged_event: &LoggedEvent, epoch: Epoch) -> Option<Bytes> {
        egress::event(logged_event, epoch).map(|text| frame::text(&text))
    }

    fn room_lost(&self, room: &RoomId, _: &LoggedEvent) -> Option<Bytes> {
        Some(frame::text(&egress::room_removed(room)))
    }

    fn delivery(&self, _: &Message, _: &Delivery) -> Option<Bytes> {
        None
    }

    fn signal(&self, signal: &Signal, _: SignalStamp) -> Option<Bytes> {
        egress::signal(signal).map(|text| frame::text(&text))
    }

    fn disconnect_frame(&self, reason: DisconnectReason) -> Bytes {
        closing::disconnect_frame(reason, "The client reads too slowly; reconnect and resume")
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
    /// Second subscriber, which receives the chat events of all rooms, if the client requested them.
    chat_events: Option<SubscriberId>,
    last_typing: HashMap<RoomId, Instant>,
}

impl Protocol for Client {
    type Request = ClientRequest;
    type ParseError = FrameError;
    const COUNTS_AS_PRESENCE: bool = true;

    fn egress(app: &App) -> Arc<dyn Egress> {
        app.client_egress.clone()
    }

    fn max_message_bytes(app: &App) -> usize {
        MAX_MESSAGE_BYTES.max(app.config.frames.bytes)
    }

    fn rate_limit(app: &App) -> FixedWindow {
        FixedWindow::new(app.config.client_window, app.config.client_max)
    }

    fn parse(app: &App, message: &SocketMessage) -> Result<ClientRequest, FrameError> {
        match message {
            SocketMessage::Text(text) => ingress::read(text, &app.config.frames),
            SocketMessage::Binary => Err(FrameError::Unknown),
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
            ClientRequest::Ping { ts } => return Reply::Text(egress::pong(&ts)),
            ClientRequest::Auth { token, version } => {
                self.authenticate(peer, &token, version.as_deref()).await;
                return Reply::None;
            }
            ClientRequest::Send { room, post } => return send(peer, room, post).await,
            _ if peer.identity.is_none() => Err(Refusal::NotSignedIn),
            ClientRequest::Join { room, since } => join(peer, room, since.as_deref()).await,
            ClientRequest::Follow { since } => self.follow(peer, since.as_deref()).await,
            ClientRequest::Leave { room } => {
                if let (Some(room), Some(identity)) = (room, &peer.identity) {
                    peer.app.hub.detach(identity.subscriber.id, &room);
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
            Err(refusal) => Reply::Text(egress::refusal(&refusal, None)),
        }
    }

    fn unreadable(error: FrameError) -> String {
        let (code, words) = error.words();
        egress::error(code, words)
    }

    fn too_large() -> Option<String> {
        Some(Self::unreadable(FrameError::TooLarge))
    }

    fn rate_limited(request: Option<&ClientRequest>) -> Option<String> {
        let id = match request {
            Some(ClientRequest::Send { post, .. }) => post.client_message_id.as_deref(),
            _ => None,
        };
        Some(egress::refusal(&Refusal::RateLimited { retry_after: Duration::ZERO }, id))
    }

    async fn end(self, peer: &Peer) {
        if let Some(chat_events) = self.chat_events {
            peer.app.hub.disconnect(chat_events);
        }
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

    /// Adds a second subscriber that receives the chat events of all the user's rooms, beside the joined
    /// rooms.
    async fn follow(&mut self, peer: &Peer, since: Option<&str>) -> Result<(), Refusal> {
        let (app, identity) = (&peer.app, peer.signed_in()?);
        let since = parse_since(app, since)?;
        if let Some(previous) = self.chat_events.take() {
            app.hub.disconnect(previous);
        }
        app.hub.may_follow(&identity.caller, &RoomFilter::All).await?;
        let subscriber = Subscriber {
            id: app.hub.next_subscriber_id(),
            egress: app.socket_events.clone(),
            present: false,
            only_follows: true,
            ..identity.subscriber.clone()
        };
        app.hub.connect(&identity.caller, subscriber.clone(), Bytes::new(), |_| Ok(())).await?;
        self.chat_events = Some(subscriber.id);
        let (all, encode) = (RoomFilter::All, |text: String| frame::text(&text));
        events::begin(app, &identity.caller, &subscriber, &all, since, StreamFormat::Frame, encode).await
    }

    fn typing(&mut self, peer: &Peer, room: Option<RoomId>) {
        let (Some(room), Some(identity)) = (room, &peer.identity) else { return };
        let recently = self.last_typing.get(&room).is_some_and(|at| at.elapsed() < TYPING_INTERVAL);
        if recently || !peer.app.hub.is_attached(identity.subscriber.id, &room) {
            return;
        }
        peer.app.hub.typing(&identity.subscriber, &self.username, &room);
        self.last_typing.insert(room, Instant::now());
    }
}

async fn join(peer: &Peer, room: Option<RoomId>, since: Option<&str>) -> Result<(), Refusal> {
    let (hub, identity) = (&peer.app.hub, peer.signed_in()?);
    let room = room.ok_or(Refusal::NotFound(EntityKind::Room))?;
    let position = parse_since(&peer.app, since)?;
    let (joined, lost) = (room.clone(), room.clone());
    let with_position = since.is_some();
    let welcome = move |reached| with_position.then(|| frame::text(&egress::joined(&joined, reached)));
    match hub.attach(&identity.caller, &identity.subscriber, &room, position, welcome).await {
        Ok(_) => Ok(()),
        Err(Refusal::Resync { now }) => {
            // Live from here on; the client loads the earlier history again.
            let resync = move |reached| Some(frame::text(&egress::resync(&lost, reached)));
            let live = hub.attach(&identity.caller, &identity.subscriber, &room, None, resync).await;
            if live.is_err() {
                peer.send_text(&egress::resync(&room, now));
            }
            Ok(())
        }
        Err(refusal) => Err(refusal),
    }
}

async fn send(peer: &Peer, room: Option<RoomId>, draft: Draft) -> Reply {
    let id = draft.client_message_id.clone();
    let receipt = match submit(peer, room, draft).await {
        Ok(receipt) => receipt,
        Err(refusal) => return Reply::Text(egress::refusal(&refusal, id.as_deref())),
    };
    let reply = async move {
        let text = match (receipt.await, id) {
            (Ok(posted), Some(id)) => Some(egress::acknowledged(&posted, &id)),
            (Ok(_), None) => None,
            (Err(refusal), id) => Some(egress::refusal(&refusal, id.as_deref())),
        };
        DecidedReply { text, after: None }
    };
    Reply::Pending(reply.boxed())
}

async fn submit(peer: &Peer, room: Option<RoomId>, draft: Draft) -> Result<PendingReceipt<Posted>, Refusal> {
    let (hub, identity) = (&peer.app.hub, peer.signed_in()?);
    let room = room.ok_or(Refusal::NotFound(EntityKind::Room))?;
    // Sending joins the room implicitly. An API key with write scope only may send without receiving.
    if !hub.is_attached(identity.subscriber.id, &room)
        && let Err(refusal) = hub.attach(&identity.caller, &identity.subscriber, &room, None, |_| None).await
        && refusal != Refusal::Forbidden
    {
        return Err(refusal);
    }
    Ok(hub.submit(&identity.caller, draft.into_post(room)).await)
}

fn parse_since(app: &App, since: Option<&str>) -> Result<Option<Position>, Refusal> {
    let Some(text) = since.filter(|since| *since != "now") else { return Ok(None) };
    let position = Position::parse(text, app.hub.epoch());
    position.map(Some).ok_or_else(|| Refusal::invalid(Field::Position, "is not a position"))
}
