//! AgentIM protocol for users: the WebSocket sessions of `/ws/client`.
//!
//! Decodes frames to commands, replies in order, and limits frames, authentication attempts and pending posts
//! of a connection.

use crate::App;
use crate::auth;
use crate::connection::admission::admit;
use crate::connection::concurrency::ConcurrencyPermit;
use crate::connection::fixed_window::FixedWindow;
use crate::connection::upgrade::{Upgraded, upgrade};
use crate::connection::{Socket, SocketInput, frame};
use crate::encoders::{CLIENT, ConnectionEncoder, EVENT_FRAMES, Encoder};
use crate::events;
use crate::http::problem::Problem;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use parlor_engine::feed::{DisconnectReason, Interest, LiveFrame, NewSession, Open, RoomFilter, Session};
use parlor_model::command::{DecideApproval, Posted};
use parlor_model::{
    EntityKind, Epoch, Field, GatewayRequest, LoggedEvent, Position, Refusal, RoomId, Signal, SignalStamp,
};
use parlor_wire::agentim::egress;
use parlor_wire::agentim::ingress::{self, ClientRequest, Draft, FrameError, agents::AgentAction};
use parlor_wire::events::frames::StreamFormat;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum posts of one connection that wait for their commit; until one completes, the hub reads no further
/// frames.
const MAX_PENDING_POSTS: usize = 256;
/// Maximum bytes of a message, raised to `frames.bytes` if that is larger. A longer message ends the
/// connection; one that only exceeds `frames.bytes` is rejected.
const MAX_MESSAGE_BYTES: usize = 1024 * 1024;
/// Maximum frames handled in a row before the session handles other events.
const MAX_FRAMES_PER_BURST: usize = 64;
const MAX_AUTH_ATTEMPTS: u32 = 5;
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
        let (code, words, close) = match reason {
            DisconnectReason::TooSlow => {
                ("RATE_LIMITED", "The client reads too slowly; reconnect and resume", 1013)
            }
            DisconnectReason::Revoked => ("SESSION_REVOKED", "Your session was revoked", 1008),
            DisconnectReason::ShuttingDown => ("SERVER_SHUTDOWN", "The server is shutting down", 1001),
        };
        frame::concat(&[frame::text(&egress::error(code, words)), frame::close(close, words)])
    }
}

pub async fn mount(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let shared = app.clone();
    upgrade(&app, request, move |upgraded| run_session(shared, upgraded))
}

async fn run_session(app: Arc<App>, upgraded: Upgraded) {
    let Upgraded { stream, already_read, permit, mut socket_guard } = upgraded;
    let encoder = ConnectionEncoder::of(&app.encoders, CLIENT);
    let hard_limit = MAX_MESSAGE_BYTES.max(app.config.frames.bytes);
    let mut socket = Socket::open(stream, already_read, hard_limit, app.config.outbox, encoder).await;
    let mut client_session = ClientSession::new(app, &socket, permit);
    let deadline = tokio::time::sleep(client_session.app.config.auth_timeout);
    tokio::pin!(deadline);
    let outbox = socket.outbox.clone();
    loop {
        tokio::select! {
            biased;
            () = outbox.closed() => break,
            outcome = client_session.next_outcome(), if !client_session.pending.is_empty() => client_session.answer(outcome),
            () = socket_guard.stopped() => outbox.disconnect(DisconnectReason::ShuttingDown),
            () = &mut deadline, if client_session.authenticated.is_none() => {
                // Release the permit before the client learns that it timed out.
                client_session.unauthenticated_permit.take();
                socket.close(4001, "Authentication timeout");
            }
            incoming = socket.next(), if client_session.pending.len() < MAX_PENDING_POSTS => {
                if !client_session.handle_incoming(&mut socket, incoming).await {
                    break;
                }
            }
        }
    }
    let close_timeout = client_session.app.config.close_timeout;
    drop(client_session);
    socket.finish(close_timeout).await;
}

/// Session of one client connection.
struct ClientSession {
    app: Arc<App>,
    outbox: Arc<parlor_engine::feed::Outbox>,
    /// Counts the connection towards its address until the client authenticates.
    unauthenticated_permit: Option<ConcurrencyPermit>,
    authenticated: Option<AuthenticatedClient>,
    attempts: u32,
    window: FixedWindow,
    last_typing: HashMap<RoomId, Instant>,
    pending: VecDeque<PendingPost>,
}

struct AuthenticatedClient {
    session: Session,
    username: Box<str>,
    _permit: ConcurrencyPermit,
}

/// A post that waits for its commit, with the client's id for it.
struct PendingPost {
    receipt: parlor_engine::PendingReceipt<Posted>,
    client_message_id: Option<Box<str>>,
}

type CompletedPost = (Result<Posted, Refusal>, Option<Box<str>>);

impl ClientSession {
    fn new(app: Arc<App>, socket: &Socket, permit: ConcurrencyPermit) -> Self {
        Self {
            window: FixedWindow::new(app.config.client_window, app.config.client_max),
            outbox: socket.outbox.clone(),
            unauthenticated_permit: Some(permit),
            authenticated: None,
            attempts: 0,
            last_typing: HashMap::new(),
            pending: VecDeque::new(),
            app,
        }
    }

    /// Waits for the oldest pending post. Cancel-safe.
    async fn next_outcome(&mut self) -> CompletedPost {
        let Some(front) = self.pending.front_mut() else { return std::future::pending().await };
        let outcome = (&mut front.receipt).await;
        let id = self.pending.pop_front().and_then(|pending| pending.client_message_id);
        (outcome, id)
    }

    /// Replies to one completed post and to all others that are complete already, in one buffer.
    fn answer(&mut self, first: CompletedPost) {
        let mut replies = BytesMut::new();
        let mut outcome = Some(first);
        while let Some((decided, id)) = outcome.take() {
            let reply = match (decided, id) {
                (Ok(posted), Some(id)) => Some(egress::acknowledged(&posted, &id)),
                (Ok(_), None) => None,
                (Err(refusal), id) => Some(egress::refusal(&refusal, id.as_deref())),
            };
            reply.iter().for_each(|reply| frame::append_text(&mut replies, reply));
            if !self.pending.is_empty() {
                outcome = self.next_outcome().now_or_never();
            }
        }
        if !replies.is_empty() {
            self.outbox.push(replies.freeze());
        }
    }

    /// Replies to all pending posts first, so that later replies do not overtake theirs.
    async fn drain_pending(&mut self) {
        while !self.pending.is_empty() {
            let outcome = self.next_outcome().await;
            self.answer(outcome);
        }
    }

    /// Handles one input and those that are ready behind it, because frames arrive in bursts. Returns `false`
    /// when the connection has ended.
    async fn handle_incoming(&mut self, socket: &mut Socket, first: SocketInput) -> bool {
        let mut incoming = Some(first);
        for count in 1..=MAX_FRAMES_PER_BURST {
            match incoming.take() {
                Some(SocketInput::Text(text)) => self.handle_frame(socket, &text).await,
                Some(SocketInput::Binary) => self.reject_frame(socket, FrameError::Unknown),
                Some(SocketInput::TooLarge) => {
                    self.reject_frame(socket, FrameError::TooLarge);
                    socket.close(1009, "Message exceeds maximum size");
                }
                Some(SocketInput::NotUtf8) => socket.close(1007, "Not UTF-8"),
                Some(SocketInput::Malformed) => socket.close(1002, "Malformed frame"),
                Some(SocketInput::Gone) => return false,
                None => break,
            }
            // Read no further input in the last iteration: input that was read must be handled.
            if count == MAX_FRAMES_PER_BURST
                || self.pending.len() >= MAX_PENDING_POSTS
                || self.outbox.is_closed()
            {
                break;
            }
            incoming = socket.next().now_or_never();
        }
        true
    }

    fn reject_frame(&mut self, socket: &Socket, frame_error: FrameError) {
        let (code, words) = frame_error.words();
        if self.authenticated.is_some() && !self.window.try_acquire() {
            return self.refuse(socket, &rate_limited());
        }
        socket.send_text(&egress::error(code, words));
    }

    fn refuse(&self, socket: &Socket, refusal: &Refusal) {
        socket.send_text(&egress::refusal(refusal, None));
    }

    async fn handle_frame(&mut self, socket: &Socket, text: &str) {
        let request = match ingress::read(text, &self.app.config.frames) {
            Ok(request) => request,
            Err(frame_error) => {
                self.drain_pending().await;
                return self.reject_frame(socket, frame_error);
            }
        };
        let counts = !matches!(request, ClientRequest::Auth { .. } | ClientRequest::Ping { .. });
        if counts && self.authenticated.is_some() && !self.window.try_acquire() {
            self.drain_pending().await;
            let id = match &request {
                ClientRequest::Send { post, .. } => post.client_message_id.as_deref(),
                _ => None,
            };
            return socket.send_text(&egress::refusal(&rate_limited(), id));
        }
        if let ClientRequest::Send { room, post } = request {
            return self.send(socket, room, post).await;
        }
        self.drain_pending().await;
        match request {
            ClientRequest::Ping { ts } => socket.send_text(&egress::pong(&ts)),
            ClientRequest::Auth { token, version } => {
                self.authenticate(socket, &token, version.as_deref()).await
            }
            _ if self.authenticated.is_none() => self.refuse(socket, &Refusal::NotSignedIn),
            ClientRequest::Join { room, since } => self.join(socket, room, since.as_deref()).await,
            ClientRequest::Follow { since } => {
                if let Err(refusal) = self.follow(since.as_deref()).await {
                    self.refuse(socket, &refusal);
                }
            }
            ClientRequest::Leave { room } => {
                if let (Some(room), Some(authenticated)) = (room, &self.authenticated) {
                    authenticated.session.close(&room);
                }
            }
            ClientRequest::Typing { room } => self.typing(room),
            ClientRequest::OfAgents(action) => {
                if let Err(refusal) = self.handle_agent_action(action).await {
                    self.refuse(socket, &refusal);
                }
            }
            ClientRequest::Send { .. } => {}
        }
    }

    async fn authenticate(&mut self, socket: &Socket, token: &str, version: Option<&str>) {
        if let Some(version) = version.filter(|version| *version != "1") {
            let version: String = version.chars().take(20).collect();
            let words =
                format!("Protocol version mismatch: client={version}, server=1. Please update your client.");
            socket.send_text(&egress::error("PROTOCOL_VERSION_MISMATCH", &words));
            return socket.close(1008, "Protocol version mismatch");
        }
        let error = match self.sign_in(token).await {
            Ok(()) => return,
            Err(Refusal::TooManyConnections) => "Too many connections",
            Err(Refusal::AtCapacity) => "Server at capacity",
            Err(Refusal::Unavailable) => "Server at capacity",
            Err(_) => "Invalid token",
        };
        self.attempts += 1;
        socket.send_text(&egress::not_authenticated(error));
        let has_no_permit = self.unauthenticated_permit.is_none() && self.authenticated.is_none();
        if has_no_permit || self.attempts >= MAX_AUTH_ATTEMPTS {
            socket.close(1008, "Too many authentication attempts");
        }
    }

    async fn sign_in(&mut self, token: &str) -> Result<(), Refusal> {
        let caller = auth::caller(&self.app, token).await?;
        if let Some(authenticated) = &self.authenticated {
            // Repeated authentication: the same user may present a newer token, which changes nothing.
            let auth_context = self.app.hub.auth_context(&caller).await?;
            if *authenticated.session.user() != auth_context.user.id {
                return Err(Refusal::NotSignedIn);
            }
            self.outbox.push(frame::text(&egress::authenticated(auth_context.user.id.as_str())));
            return Ok(());
        }
        let user = caller.user().cloned().ok_or(Refusal::NotSignedIn)?;
        let greeting = frame::text(&egress::authenticated(user.as_str()));
        let new = NewSession { outbox: self.outbox.clone(), encoding: CLIENT, present: true, greeting };
        let (session, auth_context, permit) =
            admit(&self.app, &mut self.unauthenticated_permit, &caller, new).await?;
        self.attempts = 0;
        let username = auth_context.user.username.clone();
        self.authenticated = Some(AuthenticatedClient { session, username, _permit: permit });
        Ok(())
    }

    async fn join(&mut self, socket: &Socket, room: Option<RoomId>, since: Option<&str>) {
        let (Some(room), Some(authenticated)) = (room, &self.authenticated) else {
            return self.refuse(socket, &Refusal::NotFound(EntityKind::Room));
        };
        let position = match since {
            None | Some("now") => None,
            Some(text) => match Position::parse(text, self.app.hub.epoch()) {
                Some(position) => Some(position),
                None => return self.refuse(socket, &Refusal::invalid(Field::Position, "is not a position")),
            },
        };
        let joined = room.clone();
        let with_position = since.is_some();
        // After a resync the client loads the earlier history again.
        let live: LiveFrame = Arc::new(move |live| match live.resync {
            Some(_) => frame::text(&egress::resync(&joined, live.at)),
            None => frame::text(&egress::joined(&joined, live.at)),
        });
        let live = with_position.then_some(live);
        let open = Open { interest: Interest::Room(room), since: position, encoding: CLIENT, live };
        if let Err(refusal) = authenticated.session.open(open).await {
            self.refuse(socket, &refusal);
        }
    }

    /// Opens a feed with the chat events of all the user's rooms, beside the joined rooms.
    async fn follow(&self, since: Option<&str>) -> Result<(), Refusal> {
        let Some(authenticated) = &self.authenticated else { return Err(Refusal::NotSignedIn) };
        let since = match since {
            None | Some("now") => None,
            Some(text) => {
                let position = Position::parse(text, self.app.hub.epoch());
                Some(position.ok_or_else(|| Refusal::invalid(Field::Position, "is not a position"))?)
            }
        };
        let live = events::live_frame(StreamFormat::Frame, |text| frame::text(&text));
        let interest = Interest::MyRooms(RoomFilter::All);
        let open = Open { interest, since, encoding: EVENT_FRAMES, live: Some(live) };
        authenticated.session.open(open).await
    }

    async fn send(&mut self, socket: &Socket, room: Option<RoomId>, draft: Draft) {
        let id = draft.client_message_id.clone();
        let refuse = |refusal: &Refusal| socket.send_text(&egress::refusal(refusal, id.as_deref()));
        let Some(authenticated) = &self.authenticated else {
            self.drain_pending().await;
            return refuse(&Refusal::NotSignedIn);
        };
        let Some(room) = room else {
            self.drain_pending().await;
            return refuse(&Refusal::NotFound(EntityKind::Room));
        };
        // Sending joins the room implicitly. An API key with write scope only may send without receiving.
        let interest = Interest::Room(room.clone());
        let open = Open { interest, since: None, encoding: CLIENT, live: None };
        if !authenticated.session.is_open(&room)
            && let Err(refusal) = authenticated.session.open(open).await
            && refusal != Refusal::Forbidden
        {
            self.drain_pending().await;
            return refuse(&refusal);
        }
        let receipt = self.app.hub.submit(authenticated.session.caller(), draft.into_post(room)).await;
        self.pending.push_back(PendingPost { receipt, client_message_id: id });
    }

    async fn handle_agent_action(&self, action: AgentAction) -> Result<(), Refusal> {
        let Some(authenticated) = &self.authenticated else { return Err(Refusal::NotSignedIn) };
        match action {
            AgentAction::Stop { room, agent } => {
                let room = room.ok_or(Refusal::NotFound(EntityKind::Room))?;
                let agent = agent.ok_or(Refusal::NotFound(EntityKind::Agent))?;
                self.app.hub.stop(authenticated.session.caller(), &room, &agent).await
            }
            AgentAction::Decide { request, allow, always, reason, digest } => {
                let approval = request.ok_or(Refusal::NotFound(EntityKind::Approval))?;
                let command = DecideApproval { approval, allow, always, reason, digest };
                self.app.hub.decide_approval(authenticated.session.caller(), command).await.map(drop)
            }
            AgentAction::Inquire { agent, room, inquiry } => {
                let room = room.map(|room| room.ok_or(Refusal::NotFound(EntityKind::Room))).transpose()?;
                let agent = agent.ok_or(Refusal::NotFound(EntityKind::Agent))?;
                self.app
                    .hub
                    .inquire(authenticated.session.caller(), authenticated.session.id(), agent, room, inquiry)
                    .await
            }
            AgentAction::Rewind { room, message } => {
                let room = room.ok_or(Refusal::NotFound(EntityKind::Room))?;
                let message = message.ok_or(Refusal::NotFound(EntityKind::Message))?;
                self.app.hub.rewind(authenticated.session.caller(), room, message).await
            }
            AgentAction::Credential { gateway, errand, body } => {
                let gateway = gateway.ok_or(Refusal::NotFound(EntityKind::Gateway))?;
                let gateway_request = GatewayRequest::Credential { what: errand, body };
                self.app
                    .hub
                    .send_gateway_request(authenticated.session.caller(), gateway, &gateway_request)
                    .await
                    .map(drop)
            }
        }
    }

    fn typing(&mut self, room: Option<RoomId>) {
        let (Some(room), Some(authenticated)) = (room, &self.authenticated) else { return };
        let recently = self.last_typing.get(&room).is_some_and(|at| at.elapsed() < TYPING_INTERVAL);
        if recently || !authenticated.session.is_open(&room) {
            return;
        }
        authenticated.session.typing(&room, &authenticated.username);
        self.last_typing.insert(room, Instant::now());
    }
}

fn rate_limited() -> Refusal {
    Refusal::RateLimited { retry_after: Duration::ZERO }
}
