//! The AgentIM door for people: `/ws/client`.

use crate::App;
use crate::auth;
use crate::connection::admission::admit;
use crate::connection::concurrency::ConcurrencyPermit;
use crate::connection::fixed_window::FixedWindow;
use crate::connection::upgrade::{Upgraded, upgrade};
use crate::connection::{AUTH_RECHECK_INTERVAL, Socket, SocketInput, frame};
use crate::events;
use crate::http::problem::Problem;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use parlor_engine::fanout::{DisconnectReason, Egress, RoomFilter, Subscriber, SubscriberId};
use parlor_model::command::ApprovalDecision;
use parlor_model::{
    Caller, Command, Delivery, EntityKind, Epoch, GatewayRequest, LoggedEvent, Message, Position, Receipt,
    Refusal, RoomId, Signal, SignalStamp, UserId,
};
use parlor_wire::agentim::egress;
use parlor_wire::agentim::ingress::{self, ClientRequest, Draft, FrameError, agents::AgentAction};
use parlor_wire::events::frames::StreamFormat;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Messages of one connection that may wait for their commit; then it is read no further.
const MAX_PENDING_POSTS: usize = 256;
/// Larger messages end the connection; smaller ones that are too large are refused and it goes on.
const MAX_MESSAGE_BYTES: usize = 1024 * 1024;
/// Frames handled before anything else gets its turn.
const MAX_FRAMES_PER_TURN: usize = 64;
const AUTH_ATTEMPTS: u32 = 5;
const TYPING_EVERY: Duration = Duration::from_secs(1);
/// A reload of the page is not an absence.
const ABSENT_AFTER: Duration = Duration::from_secs(2);

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
        let (code, words, close) = match reason {
            DisconnectReason::TooSlow => ("RATE_LIMITED", "You read too slowly; come back and resume", 1013),
            DisconnectReason::Revoked => ("SESSION_REVOKED", "Your session was revoked", 1008),
            DisconnectReason::ShuttingDown => ("SERVER_SHUTDOWN", "The server is shutting down", 1001),
        };
        frame::together(&[frame::text(&egress::error(code, words)), frame::close(close, words)])
    }
}

pub async fn mount(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let shared = app.clone();
    upgrade(&app, request, move |upgraded| run_session(shared, upgraded))
}

async fn run_session(app: Arc<App>, upgraded: Upgraded) {
    let Upgraded { stream, already_read, counted, mut ongoing } = upgraded;
    let too_slow = app.client_egress.disconnect_frame(DisconnectReason::TooSlow);
    let hard_limit = MAX_MESSAGE_BYTES.max(app.config.frames.bytes);
    let mut socket = Socket::open(stream, already_read, hard_limit, app.config.outbox, too_slow).await;
    let mut client_session = ClientSession::new(app, &socket, counted);
    let deadline = tokio::time::sleep(client_session.app.config.auth_timeout);
    tokio::pin!(deadline);
    let outbox = socket.outbox.clone();
    loop {
        tokio::select! {
            biased;
            () = outbox.closed() => break,
            outcome = client_session.next_outcome(), if !client_session.pending.is_empty() => client_session.answer(outcome),
            () = ongoing.stopped() => outbox.close(client_session.app.client_egress.disconnect_frame(DisconnectReason::ShuttingDown)),
            () = &mut deadline => {
                // Its place is free before it can know that it has to go.
                if client_session.guest.take().is_some() {
                    socket.close(4001, "Authentication timeout");
                } else if client_session.is_over().await {
                    outbox.close(client_session.app.client_egress.disconnect_frame(DisconnectReason::Revoked));
                }
                deadline.as_mut().reset(tokio::time::Instant::now() + AUTH_RECHECK_INTERVAL);
            }
            incoming = socket.next(), if client_session.pending.len() < MAX_PENDING_POSTS => {
                if !client_session.handle_incoming(&mut socket, incoming).await {
                    break;
                }
            }
        }
    }
    let left = client_session.leave().map(|user| (user, tokio::time::Instant::now() + ABSENT_AFTER));
    let app = client_session.app.clone();
    drop(client_session);
    socket.finish(app.config.close_timeout).await;
    if let Some((user, then)) = left {
        tokio::select! {
            () = ongoing.stopped() => {}
            () = tokio::time::sleep_until(then) => {
                let _ = app.hub.publish_absence(&user).await;
            }
        }
    }
}

/// One conversation with one client.
struct ClientSession {
    app: Arc<App>,
    outbox: Arc<parlor_engine::fanout::Outbox>,
    /// Counts the connection as a stranger's until it says who it is.
    guest: Option<ConcurrencyPermit>,
    signed: Option<AuthenticatedClient>,
    attempts: u32,
    window: FixedWindow,
    typed: HashMap<RoomId, Instant>,
    pending: VecDeque<PendingPost>,
}

struct AuthenticatedClient {
    caller: Caller,
    subscriber: Subscriber,
    username: Box<str>,
    /// What hears of all rooms, if anything does.
    following: Option<SubscriberId>,
    _counted: ConcurrencyPermit,
}

/// A message on its way to the disk, and what its sender calls it.
struct PendingPost {
    receipt: parlor_engine::PendingReceipt,
    client_message_id: Option<Box<str>>,
}

type CompletedPost = (Result<Receipt, Refusal>, Option<Box<str>>);

impl ClientSession {
    /// Whether the sign-in behind the connection ran out while it was open; everything else is told at once.
    async fn is_over(&self) -> bool {
        let Some(signed) = &self.signed else { return false };
        matches!(self.app.hub.auth_context(&signed.caller).await, Err(Refusal::NotSignedIn))
    }

    fn new(app: Arc<App>, socket: &Socket, counted: ConcurrencyPermit) -> Self {
        Self {
            window: FixedWindow::new(app.config.client_window, app.config.client_max),
            outbox: socket.outbox.clone(),
            guest: Some(counted),
            signed: None,
            attempts: 0,
            typed: HashMap::new(),
            pending: VecDeque::new(),
            app,
        }
    }

    /// Waits for the oldest message under way; may be dropped and asked again.
    async fn next_outcome(&mut self) -> CompletedPost {
        let Some(front) = self.pending.front_mut() else { return std::future::pending().await };
        let outcome = (&mut front.receipt).await;
        let id = self.pending.pop_front().and_then(|pending| pending.client_message_id);
        (outcome, id)
    }

    /// Answers one message, and those whose commit is known by now too: a group is told in one buffer.
    fn answer(&mut self, first: CompletedPost) {
        let mut replies = BytesMut::new();
        let mut outcome = Some(first);
        while let Some((decided, id)) = outcome.take() {
            let reply = match (decided, id) {
                (Ok(Receipt::Posted(posted)), Some(id)) => Some(egress::acknowledged(&posted, &id)),
                (Ok(_), _) => None,
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

    /// What comes after a message must not overtake it.
    async fn drain_pending(&mut self) {
        while !self.pending.is_empty() {
            let outcome = self.next_outcome().await;
            self.answer(outcome);
        }
    }

    /// Handles what came, and what lies ready behind it: frames come in bursts. `false` at the end.
    async fn handle_incoming(&mut self, socket: &mut Socket, first: SocketInput) -> bool {
        let mut incoming = Some(first);
        for turn in 1..=MAX_FRAMES_PER_TURN {
            match incoming.take() {
                Some(SocketInput::Text(text)) => self.handle_frame(socket, &text).await,
                Some(SocketInput::Binary) => self.misread(socket, FrameError::Unknown),
                Some(SocketInput::TooLarge) => {
                    self.misread(socket, FrameError::TooLarge);
                    socket.close(1009, "Message exceeds maximum size");
                }
                Some(SocketInput::NotUtf8) => socket.close(1007, "Not UTF-8"),
                Some(SocketInput::Malformed) => socket.close(1002, "Malformed frame"),
                Some(SocketInput::Gone) => return false,
                None => break,
            }
            // What is taken from the socket must be handled, so the last turn takes nothing more.
            if turn == MAX_FRAMES_PER_TURN
                || self.pending.len() >= MAX_PENDING_POSTS
                || self.outbox.is_closed()
            {
                break;
            }
            incoming = socket.next().now_or_never();
        }
        true
    }

    fn misread(&mut self, socket: &Socket, frame_error: FrameError) {
        let (code, words) = frame_error.words();
        if self.signed.is_some() && !self.window.try_acquire() {
            return self.refuse(socket, &too_many());
        }
        socket.send_text(&egress::error(code, words));
    }

    fn refuse(&self, socket: &Socket, refusal: &Refusal) {
        socket.send_text(&egress::refusal(refusal, None));
    }

    async fn handle_frame(&mut self, socket: &Socket, text: &str) {
        let asked = match ingress::read(text, &self.app.config.frames) {
            Ok(asked) => asked,
            Err(frame_error) => {
                self.drain_pending().await;
                return self.misread(socket, frame_error);
            }
        };
        let counts = !matches!(asked, ClientRequest::Auth { .. } | ClientRequest::Ping { .. });
        if counts && self.signed.is_some() && !self.window.try_acquire() {
            self.drain_pending().await;
            let id = match &asked {
                ClientRequest::Send { post, .. } => post.client_message_id.as_deref(),
                _ => None,
            };
            return socket.send_text(&egress::refusal(&too_many(), id));
        }
        if let ClientRequest::Send { room, post } = asked {
            return self.send(socket, room, post).await;
        }
        self.drain_pending().await;
        match asked {
            ClientRequest::Ping { ts } => socket.send_text(&egress::pong(&ts)),
            ClientRequest::Auth { token, version } => {
                self.authenticate(socket, &token, version.as_deref()).await
            }
            _ if self.signed.is_none() => self.refuse(socket, &Refusal::NotSignedIn),
            ClientRequest::Join { room, since } => self.join(socket, room, since.as_deref()).await,
            ClientRequest::Follow { since } => {
                if let Err(refusal) = self.follow(since.as_deref()).await {
                    self.refuse(socket, &refusal);
                }
            }
            ClientRequest::Leave { room } => {
                if let (Some(room), Some(signed)) = (room, &self.signed) {
                    self.app.hub.detach(signed.subscriber.id, &room);
                }
            }
            ClientRequest::Typing { room } => self.typing(room),
            ClientRequest::OfAgents(asked) => {
                if let Err(refusal) = self.of_agents(asked).await {
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
        let nobody = self.guest.is_none() && self.signed.is_none();
        if nobody || self.attempts >= AUTH_ATTEMPTS {
            socket.close(1008, "Too many authentication attempts");
        }
    }

    async fn sign_in(&mut self, token: &str) -> Result<(), Refusal> {
        let caller = auth::caller(&self.app, token).await?;
        if let Some(signed) = &self.signed {
            // Again on a live connection: the same person may show a newer proof, and nothing changes.
            let standing = self.app.hub.auth_context(&caller).await?;
            if signed.subscriber.user != standing.user.id {
                return Err(Refusal::NotSignedIn);
            }
            self.outbox.push(frame::text(&egress::authenticated(standing.user.id.as_str())));
            return Ok(());
        }
        let user = caller.user().cloned().ok_or(Refusal::NotSignedIn)?;
        let greeting = frame::text(&egress::authenticated(user.as_str()));
        let subscriber = Subscriber {
            id: self.app.hub.viewer_id(),
            user,
            principal: caller.principal.clone(),
            egress: self.app.client_egress.clone(),
            outbox: self.outbox.clone(),
            present: true,
        };
        let (standing, counted) =
            admit(&self.app, &mut self.guest, &caller, subscriber.clone(), greeting).await?;
        self.attempts = 0;
        let username = standing.user.username;
        self.signed =
            Some(AuthenticatedClient { caller, subscriber, username, following: None, _counted: counted });
        Ok(())
    }

    async fn join(&mut self, socket: &Socket, room: Option<RoomId>, since: Option<&str>) {
        let (Some(room), Some(signed)) = (room, &self.signed) else {
            return self.refuse(socket, &Refusal::NotFound(EntityKind::Room));
        };
        let position = match since {
            None | Some("now") => None,
            Some(text) => match Position::parse(text, self.app.hub.epoch()) {
                Some(position) => Some(position),
                None => return self.refuse(socket, &Refusal::invalid("since", "is not a position")),
            },
        };
        let (joined, lost) = (room.clone(), room.clone());
        let asked = since.is_some();
        let welcome = move |reached| asked.then(|| frame::text(&egress::joined(&joined, reached)));
        match self.app.hub.attach(&signed.caller, &signed.subscriber, &room, position, welcome).await {
            Ok(_) => {}
            Err(Refusal::Resync { now }) => {
                // Live from here on; what lies before is read anew by the client.
                let resync = move |reached| Some(frame::text(&egress::resync(&lost, reached)));
                let live = self.app.hub.attach(&signed.caller, &signed.subscriber, &room, None, resync).await;
                if live.is_err() {
                    socket.send_text(&egress::resync(&room, now));
                }
            }
            Err(refusal) => self.refuse(socket, &refusal),
        }
    }

    /// Beside the rooms that were joined: what is told there is told here too, as the chat events door has it.
    async fn follow(&mut self, since: Option<&str>) -> Result<(), Refusal> {
        let Some(signed) = &mut self.signed else { return Err(Refusal::NotSignedIn) };
        let since = match since {
            None | Some("now") => None,
            Some(text) => {
                let position = Position::parse(text, self.app.hub.epoch());
                Some(position.ok_or_else(|| Refusal::invalid("since", "is not a position"))?)
            }
        };
        if let Some(before) = signed.following.take() {
            self.app.hub.disconnect(before);
        }
        self.app.hub.may_follow(&signed.caller, &RoomFilter::All).await?;
        let subscriber = Subscriber {
            id: self.app.hub.viewer_id(),
            egress: self.app.socket_events.clone(),
            present: false,
            ..signed.subscriber.clone()
        };
        self.app.hub.connect(&signed.caller, subscriber.clone(), Bytes::new(), |_| Ok(())).await?;
        signed.following = Some(subscriber.id);
        let made = |text: String| frame::text(&text);
        events::begin(
            &self.app,
            &signed.caller,
            &subscriber,
            &RoomFilter::All,
            since,
            StreamFormat::Frame,
            made,
        )
        .await
    }

    async fn send(&mut self, socket: &Socket, room: Option<RoomId>, draft: Draft) {
        let id = draft.client_message_id.clone();
        let refuse = |refusal: &Refusal| socket.send_text(&egress::refusal(refusal, id.as_deref()));
        let Some(signed) = &self.signed else {
            self.drain_pending().await;
            return refuse(&Refusal::NotSignedIn);
        };
        let Some(room) = room else {
            self.drain_pending().await;
            return refuse(&Refusal::NotFound(EntityKind::Room));
        };
        // A member who has not joined joins by sending; a key that may only write need not hear.
        if !self.app.hub.is_attached(signed.subscriber.id, &room)
            && let Err(refusal) =
                self.app.hub.attach(&signed.caller, &signed.subscriber, &room, None, |_| None).await
            && refusal != Refusal::Forbidden
        {
            self.drain_pending().await;
            return refuse(&refusal);
        }
        let receipt = self.app.hub.submit(&signed.caller, Command::Post(draft.into_post(room))).await;
        self.pending.push_back(PendingPost { receipt, client_message_id: id });
    }

    async fn of_agents(&self, asked: AgentAction) -> Result<(), Refusal> {
        let Some(signed) = &self.signed else { return Err(Refusal::NotSignedIn) };
        match asked {
            AgentAction::Stop { room, agent } => {
                let room = room.ok_or(Refusal::NotFound(EntityKind::Room))?;
                let agent = agent.ok_or(Refusal::NotFound(EntityKind::Agent))?;
                self.app.hub.stop(&signed.caller, &room, &agent).await
            }
            AgentAction::Decide { request, allow, always, reason, digest } => {
                let approval = request.ok_or(Refusal::NotFound(EntityKind::Approval))?;
                let approval_decision = ApprovalDecision { approval, allow, always, reason, digest };
                self.app.hub.decide_approval(&signed.caller, approval_decision).await.map(drop)
            }
            AgentAction::Inquire { agent, room, inquiry } => {
                let room = room.map(|room| room.ok_or(Refusal::NotFound(EntityKind::Room))).transpose()?;
                let agent = agent.ok_or(Refusal::NotFound(EntityKind::Agent))?;
                self.app.hub.inquire(&signed.caller, signed.subscriber.id, agent, room, inquiry).await
            }
            AgentAction::Rewind { room, message } => {
                let room = room.ok_or(Refusal::NotFound(EntityKind::Room))?;
                let message = message.ok_or(Refusal::NotFound(EntityKind::Message))?;
                self.app.hub.rewind(&signed.caller, room, message).await
            }
            AgentAction::Credential { gateway, errand, body } => {
                let gateway = gateway.ok_or(Refusal::NotFound(EntityKind::Gateway))?;
                let gateway_request = GatewayRequest::Credential { what: errand, body };
                self.app.hub.send_gateway_request(&signed.caller, gateway, &gateway_request).await.map(drop)
            }
        }
    }

    fn typing(&mut self, room: Option<RoomId>) {
        let (Some(room), Some(signed)) = (room, &self.signed) else { return };
        let recently = self.typed.get(&room).is_some_and(|at| at.elapsed() < TYPING_EVERY);
        if recently || !self.app.hub.is_attached(signed.subscriber.id, &room) {
            return;
        }
        self.app.hub.typing(&signed.subscriber, &signed.username, &room);
        self.typed.insert(room, Instant::now());
    }

    /// Names the person who is gone with this connection, unless another one of theirs is there.
    fn leave(&mut self) -> Option<UserId> {
        let signed = self.signed.take()?;
        if let Some(following) = signed.following {
            self.app.hub.disconnect(following);
        }
        self.app.hub.disconnect(signed.subscriber.id).then_some(signed.subscriber.user)
    }
}

fn too_many() -> Refusal {
    Refusal::RateLimited { retry_after: Duration::ZERO }
}
