//! Broker protocol: the WebSocket sessions of `/ws/broker`.
//!
//! Decodes frames to commands and queries, replies in order, and limits the pending commands of a connection.

mod local;
mod pending_receipt;
mod rooms;

pub use local::connect_broker_locally;
pub use rooms::RoomEncoder;

use crate::App;
use crate::auth;
use crate::connection::admission::admit;
use crate::connection::concurrency::ConcurrencyPermit;
use crate::connection::upgrade::{Upgraded, upgrade};
use crate::connection::{Socket, SocketInput, frame};
use crate::encoders::{BROKER, ConnectionEncoder, Encoder};
use crate::http::bearer;
use crate::http::problem::Problem;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use parlor_engine::feed::{DisconnectReason, Interest, NewSession, Open, Session};
use parlor_model::{Caller, Delivery, Mailbox, Message, Refusal};
use parlor_wire::broker::egress::{BrokerAnswer, BrokerReceipt};
use parlor_wire::broker::ingress::{
    self, BrokerCommand, BrokerQuery, BrokerRequest, EchoedFields, RequestFrame as Frame,
};
use parlor_wire::broker::{codes, egress};
use parlor_wire::json::JsonLimits;
use pending_receipt::PendingBrokerReceipt;
use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum commands of one connection that wait for their commit; until one completes, the hub reads no
/// further frames.
const MAX_PENDING_COMMANDS: usize = 256;
/// Maximum total bytes of the frames of those commands.
const MAX_PENDING_BYTES: usize = 4 * 1024 * 1024;
/// Maximum frames handled in a row before the session handles other events.
const MAX_FRAMES_PER_BURST: usize = 64;
/// Size from which a buffer of replies takes no further replies.
const REPLY_BATCH_BYTES: usize = 16 * 1024;
const JSON_LIMITS: JsonLimits = JsonLimits { depth: 32, items: 10_000 };
/// Maximum bytes of a frame; a larger one ends the connection.
const MAX_FRAME_BYTES: usize = parlor_wire::broker::client::MAX_REQUEST_BYTES;

pub struct BrokerEncoder;

impl Encoder for BrokerEncoder {
    fn delivery(&self, message: &Message, delivery: &Delivery) -> Option<Bytes> {
        Some(frame::text(&egress::push(message, delivery)))
    }

    fn disconnect(&self, reason: DisconnectReason) -> Bytes {
        disconnect_frame(reason)
    }
}

fn disconnect_frame(reason: DisconnectReason) -> Bytes {
    let (words, close) = match reason {
        DisconnectReason::TooSlow => ("The client reads too slowly", 1013),
        DisconnectReason::Revoked => ("Your session was revoked", 1008),
        DisconnectReason::ShuttingDown => ("The server is shutting down", 1001),
    };
    frame::concat(&[frame::text(&egress::error("error", None, words)), frame::close(close, words)])
}

pub async fn mount(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let shared = app.clone();
    let credential = bearer(request.headers()).map(|token| Credential::Token(token.to_owned()));
    upgrade(&app, request, move |upgraded| run_session(shared, upgraded, credential))
}

/// Proof of identity that a connection brings along, so that it needs no `auth` frame.
enum Credential {
    /// Token or API key of the upgrade request.
    Token(String),
    /// The hub itself opened the connection for this caller.
    Local(Caller),
}

async fn run_session(app: Arc<App>, upgraded: Upgraded, credential: Option<Credential>) {
    let Upgraded { stream, already_read, permit, mut socket_guard } = upgraded;
    let encoder = ConnectionEncoder::of(&app.encoders, BROKER);
    let close_timeout = app.config.close_timeout;
    let mut socket = Socket::open(stream, already_read, MAX_FRAME_BYTES, app.config.outbox, encoder).await;
    let deadline = tokio::time::sleep(app.config.auth_timeout);
    tokio::pin!(deadline);
    let outbox = socket.outbox.clone();
    let mut broker_session = BrokerSession {
        app,
        outbox: socket.outbox.clone(),
        unauthenticated_permit: Some(permit),
        authenticated: None,
        pending: VecDeque::new(),
        pending_bytes: 0,
    };
    match credential {
        Some(Credential::Token(token)) => broker_session.authenticate(&socket, &token, None).await,
        Some(Credential::Local(caller)) => broker_session.admit(&socket, Ok(caller), None).await,
        None => {}
    }
    loop {
        tokio::select! {
            biased;
            () = outbox.closed() => break,
            outcome = broker_session.next_outcome(), if !broker_session.pending.is_empty() => broker_session.answer(outcome).await,
            () = socket_guard.stopped() => outbox.disconnect(DisconnectReason::ShuttingDown),
            () = &mut deadline, if broker_session.authenticated.is_none() => {
                // Release the permit before the client learns that it timed out.
                broker_session.unauthenticated_permit.take();
                socket.send_text(&egress::error("auth.error", None, "Authentication timeout"));
                socket.close(4001, "Authentication timeout");
            }
            incoming = socket.next(), if broker_session.has_capacity() => {
                if !broker_session.handle_incoming(&mut socket, incoming).await {
                    break;
                }
            }
        }
    }
    drop(broker_session.authenticated.take());
    socket.finish(close_timeout).await;
}

/// Session of one broker connection.
struct BrokerSession {
    app: Arc<App>,
    outbox: Arc<parlor_engine::feed::Outbox>,
    /// Counts the connection towards its address until the client authenticates.
    unauthenticated_permit: Option<ConcurrencyPermit>,
    authenticated: Option<AuthenticatedBroker>,
    pending: VecDeque<PendingCommand>,
    /// Total bytes of the frames of all pending commands.
    pending_bytes: usize,
}

struct AuthenticatedBroker {
    session: Session,
    _permit: ConcurrencyPermit,
}

/// A command that waits for its commit, with the fields that its reply echoes.
struct PendingCommand {
    receipt: PendingBrokerReceipt,
    kind: Box<str>,
    req_id: Option<Box<str>>,
    about: EchoedFields,
    /// Bytes of the command's frame.
    bytes: usize,
}

type CompletedCommand = (Result<BrokerReceipt, Refusal>, PendingCommand);

impl BrokerSession {
    /// Waits for the oldest pending command. Cancel-safe.
    async fn next_outcome(&mut self) -> CompletedCommand {
        let Some(front) = self.pending.front_mut() else { return std::future::pending().await };
        let outcome = front.receipt.wait().await;
        let pending =
            self.pending.pop_front().expect("`pending` has a front element, which was awaited above");
        self.pending_bytes -= pending.bytes;
        (outcome, pending)
    }

    /// Replies to one completed command and to all others that are complete already, in few buffers.
    async fn answer(&mut self, first: CompletedCommand) {
        let mut replies = BytesMut::new();
        let mut newest = None;
        let mut outcome = Some(first);
        while let Some((decided, PendingCommand { kind, req_id, about, .. })) = outcome.take() {
            let id = req_id.as_deref();
            let reply = match decided {
                Ok(receipt) => {
                    if let BrokerReceipt::Posted(posted) = &receipt {
                        newest = newest.max(Some(posted.position.seq));
                    }
                    egress::receipt(&kind, id, &about, &receipt)
                }
                Err(refusal) => egress::refusal(&kind, id, &about, &refusal),
            };
            frame::append_text(&mut replies, &reply);
            if !self.pending.is_empty() && replies.len() < REPLY_BATCH_BYTES {
                outcome = self.next_outcome().now_or_never();
            }
        }
        // Reply only after publication: listeners get the message before its sender gets the reply, and a
        // listener that subscribes after the reply does not get it.
        if let Some(newest) = newest {
            tokio::select! {
                _ = self.app.hub.reached(newest) => {}
                () = self.outbox.closed() => {}
            }
        }
        // Replies echo fields of the request, which may be long: wait until the client has read enough of
        // them.
        self.outbox.push_when_half_empty(replies.freeze()).await;
    }

    /// Replies to all pending commands.
    async fn drain_pending(&mut self) {
        while !self.pending.is_empty() {
            let outcome = self.next_outcome().await;
            self.answer(outcome).await;
        }
    }

    /// Handles one input and those that are ready behind it, because frames arrive in bursts. Returns `false`
    /// when the connection has ended.
    async fn handle_incoming(&mut self, socket: &mut Socket, first: SocketInput) -> bool {
        let mut incoming = Some(first);
        for count in 1..=MAX_FRAMES_PER_BURST {
            match incoming.take() {
                Some(SocketInput::Text(text)) => self.handle_frame(socket, &text).await,
                Some(SocketInput::Binary) => socket.send_text(&egress::error("error", None, "Invalid JSON")),
                Some(SocketInput::TooLarge) => socket.close(1009, "Message exceeds maximum size"),
                Some(SocketInput::NotUtf8) => socket.close(1007, "Not UTF-8"),
                Some(SocketInput::Malformed) => socket.close(1002, "Malformed frame"),
                Some(SocketInput::Gone) => return false,
                None => break,
            }
            // Read no further input in the last iteration: input that was read must be handled.
            if count == MAX_FRAMES_PER_BURST || !self.has_capacity() || self.outbox.is_closed() {
                break;
            }
            incoming = socket.next().now_or_never();
        }
        true
    }

    async fn handle_frame(&mut self, socket: &Socket, text: &str) {
        let Ok(Frame { kind, req_id, about, asked }) = ingress::read(text, JSON_LIMITS) else {
            self.drain_pending().await;
            return socket.send_text(&egress::error("error", None, "Invalid JSON"));
        };
        let id = req_id.as_deref();
        // Replies to other requests must not overtake those to pending commands.
        let queues = matches!(asked, Ok(BrokerRequest::Command(_))) && self.authenticated.is_some();
        if !queues {
            self.drain_pending().await;
        }
        match asked {
            Ok(BrokerRequest::Auth { token }) => self.authenticate(socket, &token, id).await,
            Err(sentence) if &*kind == "auth" => {
                socket.send_text(&egress::error("auth.error", id, &sentence))
            }
            _ if self.authenticated.is_none() => {
                socket.send_text(&egress::error("auth.error", id, "Must authenticate first"))
            }
            Ok(BrokerRequest::Ping) => socket.send_text(&egress::plain("pong", id)),
            Ok(BrokerRequest::Command(command)) => {
                let receipt = self.submit(command).await;
                let bytes = text.len();
                if let Some(receipt) = receipt {
                    self.pending_bytes += bytes;
                    self.pending.push_back(PendingCommand { receipt, kind, req_id, about, bytes });
                }
            }
            Ok(BrokerRequest::Query(query)) => self.read(query, &kind, id, &about).await,
            Ok(BrokerRequest::Listen { mailbox }) => self.listen(socket, mailbox, &kind, id, &about).await,
            Ok(BrokerRequest::Room(room, request)) => self.handle_room_request(&room, request, id).await,
            Ok(BrokerRequest::Unknown) => {
                let kind: String = kind.chars().take(100).collect();
                socket.send_text(&egress::error("error", id, &format!("Unknown message type: {kind}")));
            }
            Err(sentence) => socket.send_text(&egress::error(&format!("{kind}.error"), id, &sentence)),
        }
    }

    fn has_capacity(&self) -> bool {
        self.pending.len() < MAX_PENDING_COMMANDS && self.pending_bytes < MAX_PENDING_BYTES
    }

    async fn submit(&self, command: BrokerCommand) -> Option<PendingBrokerReceipt> {
        let authenticated = self.authenticated.as_ref()?;
        Some(PendingBrokerReceipt::submit(&self.app.hub, authenticated.session.caller(), command).await)
    }

    async fn read(&self, query: BrokerQuery, kind: &str, req_id: Option<&str>, about: &EchoedFields) {
        let Some(authenticated) = &self.authenticated else { return };
        let (hub, caller) = (&self.app.hub, authenticated.session.caller());
        let answer = match query {
            BrokerQuery::ListSubscriptions(query) => {
                hub.read(caller, query).await.map(BrokerAnswer::Subscriptions)
            }
            BrokerQuery::ListMail(query) => hub.read(caller, query).await.map(BrokerAnswer::Mail),
            BrokerQuery::ListDeadLetters(query) => {
                hub.read(caller, query).await.map(BrokerAnswer::DeadLetters)
            }
            BrokerQuery::ListAgents(query) => hub.read(caller, query).await.map(BrokerAnswer::Agents),
            BrokerQuery::GetAgent(query) => hub.read(caller, query).await.map(BrokerAnswer::Agent),
        };
        let reply = match answer {
            Ok(answer) => egress::answer(kind, req_id, about, &answer),
            Err(refusal) => egress::refusal(kind, req_id, about, &refusal),
        };
        self.outbox.push_when_half_empty(frame::text(&reply)).await;
    }

    async fn listen(
        &self,
        socket: &Socket,
        mailbox: Mailbox,
        kind: &str,
        req_id: Option<&str>,
        about: &EchoedFields,
    ) {
        let Some(authenticated) = &self.authenticated else { return };
        let interest = Interest::Mailbox(mailbox);
        let open = Open { interest, since: None, encoding: BROKER, live: None };
        socket.send_text(&match authenticated.session.open(open).await {
            Ok(()) => egress::listening(kind, req_id, about),
            Err(refusal) => egress::refusal(kind, req_id, about, &refusal),
        });
    }

    async fn authenticate(&mut self, socket: &Socket, token: &str, req_id: Option<&str>) {
        if self.authenticated.is_some() {
            return socket.send_text(&egress::plain("auth.ok", req_id));
        }
        let caller = auth::caller(&self.app, token).await;
        self.admit(socket, caller, req_id).await;
    }

    /// Registers the connection for the caller, or closes it.
    async fn admit(&mut self, socket: &Socket, caller: Result<Caller, Refusal>, req_id: Option<&str>) {
        let admitted = match caller {
            Ok(caller) => self.sign_in(caller, req_id).await,
            Err(refusal) => Err(refusal),
        };
        if let Err(refusal) = admitted {
            let sentence = match refusal {
                Refusal::NotSignedIn => "Invalid token".into(),
                other => codes::sentence(&other, None),
            };
            socket.send_text(&egress::error("auth.error", req_id, &sentence));
            socket.close(4003, &sentence);
        }
    }

    async fn sign_in(&mut self, caller: Caller, req_id: Option<&str>) -> Result<(), Refusal> {
        let greeting = frame::text(&egress::plain("auth.ok", req_id));
        let new = NewSession { outbox: self.outbox.clone(), encoding: BROKER, present: false, greeting };
        let (session, _, permit) = admit(&self.app, &mut self.unauthenticated_permit, &caller, new).await?;
        self.authenticated = Some(AuthenticatedBroker { session, _permit: permit });
        Ok(())
    }
}
