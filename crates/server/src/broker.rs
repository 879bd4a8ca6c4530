//! The broker door: `/ws/broker`.

use crate::App;
use crate::auth;
use crate::connection::admission::admit;
use crate::connection::concurrency::ConcurrencyPermit;
use crate::connection::upgrade::{Upgraded, upgrade};
use crate::connection::{AUTH_RECHECK_INTERVAL, Socket, SocketInput, frame};
use crate::http::bearer;
use crate::http::problem::Problem;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use parlor_engine::fanout::{DisconnectReason, Egress, Subscriber};
use parlor_model::{
    Caller, Command, Delivery, Epoch, LoggedEvent, Mailbox, Message, Query, Receipt, Refusal, RoomId, Signal,
    SignalStamp,
};
use parlor_wire::broker::ingress::{self, BrokerRequest, EchoedFields, RequestFrame as Frame};
use parlor_wire::broker::{codes, egress};
use parlor_wire::json::JsonLimits;
use std::collections::VecDeque;
use std::sync::Arc;

/// Commands of one connection that may wait for their commit, and how long their frames may be together;
/// then it is read no further.
const PENDING: usize = 256;
const PENDING_BYTES: usize = 4 * 1024 * 1024;
/// Frames handled before anything else gets its turn.
const BURST: usize = 64;
/// Replies go out as one buffer until it is this long.
const REPLY_BATCH_BYTES: usize = 16 * 1024;
const BOUNDS: JsonLimits = JsonLimits { depth: 32, items: 10_000 };
/// The largest frame; a larger one ends the connection.
const MAX_FRAME_BYTES: usize = 1024 * 1024;

pub struct BrokerEgress;

impl Egress for BrokerEgress {
    fn event(&self, _: &LoggedEvent, _: Epoch) -> Option<Bytes> {
        None
    }

    fn room_lost(&self, _: &RoomId, _: &LoggedEvent) -> Option<Bytes> {
        None
    }

    fn delivery(&self, message: &Message, delivery: &Delivery) -> Option<Bytes> {
        Some(frame::text(&egress::push(message, delivery)))
    }

    fn signal(&self, _: &Signal, _: SignalStamp) -> Option<Bytes> {
        None
    }

    fn disconnect_frame(&self, reason: DisconnectReason) -> Bytes {
        let (words, close) = match reason {
            DisconnectReason::TooSlow => ("You read too slowly", 1013),
            DisconnectReason::Revoked => ("Your session was revoked", 1008),
            DisconnectReason::ShuttingDown => ("The server is shutting down", 1001),
        };
        frame::together(&[frame::text(&egress::error("error", None, words)), frame::close(close, words)])
    }
}

pub async fn mount(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let shared = app.clone();
    let token = bearer(request.headers()).map(str::to_owned);
    upgrade(&app, request, move |upgraded| converse(shared, upgraded, token))
}

async fn converse(app: Arc<App>, upgraded: Upgraded, token: Option<String>) {
    let Upgraded { stream, already_read, counted, mut ongoing } = upgraded;
    let too_slow = app.broker_egress.disconnect_frame(DisconnectReason::TooSlow);
    let close_timeout = app.config.close_timeout;
    let mut socket = Socket::open(stream, already_read, MAX_FRAME_BYTES, app.config.outbox, too_slow).await;
    let deadline = tokio::time::sleep(app.config.auth_timeout);
    tokio::pin!(deadline);
    let outbox = socket.outbox.clone();
    let mut broker_session = BrokerSession {
        app,
        outbox: socket.outbox.clone(),
        guest: Some(counted),
        signed: None,
        pending: VecDeque::new(),
        pending_bytes: 0,
    };
    if let Some(token) = token {
        broker_session.authenticate(&socket, &token, None).await;
    }
    loop {
        tokio::select! {
            biased;
            () = outbox.closed() => break,
            outcome = broker_session.next_outcome(), if !broker_session.pending.is_empty() => broker_session.answer(outcome).await,
            () = ongoing.stopped() => outbox.close(broker_session.app.broker_egress.disconnect_frame(DisconnectReason::ShuttingDown)),
            () = &mut deadline => {
                // Its place is free before it can know that it has to go.
                if broker_session.guest.take().is_some() {
                    socket.send_text(&egress::error("auth.error", None, "Authentication timeout"));
                    socket.close(4001, "Authentication timeout");
                } else if broker_session.is_over().await {
                    outbox.close(broker_session.app.broker_egress.disconnect_frame(DisconnectReason::Revoked));
                }
                deadline.as_mut().reset(tokio::time::Instant::now() + AUTH_RECHECK_INTERVAL);
            }
            incoming = socket.next(), if broker_session.may_hear_more() => {
                if !broker_session.take(&mut socket, incoming).await {
                    break;
                }
            }
        }
    }
    if let Some(signed) = broker_session.signed.take() {
        broker_session.app.hub.disconnect(signed.subscriber.id);
    }
    socket.finish(close_timeout).await;
}

struct BrokerSession {
    app: Arc<App>,
    outbox: Arc<parlor_engine::fanout::Outbox>,
    guest: Option<ConcurrencyPermit>,
    signed: Option<AuthenticatedBroker>,
    pending: VecDeque<PendingCommand>,
    /// Of the frames that these came in.
    pending_bytes: usize,
}

struct AuthenticatedBroker {
    caller: Caller,
    subscriber: Subscriber,
    _counted: ConcurrencyPermit,
}

/// A command under way, and what its reply needs.
struct PendingCommand {
    receipt: parlor_engine::PendingReceipt,
    kind: Box<str>,
    req_id: Option<Box<str>>,
    about: EchoedFields,
    /// Of the frame it came in.
    bytes: usize,
}

type CompletedCommand = (Result<Receipt, Refusal>, PendingCommand);

impl BrokerSession {
    /// Whether the sign-in behind the connection ran out while it was open; everything else is told at once.
    async fn is_over(&self) -> bool {
        let Some(signed) = &self.signed else { return false };
        matches!(self.app.hub.auth_context(&signed.caller).await, Err(Refusal::NotSignedIn))
    }

    /// Waits for the oldest command under way; may be dropped and asked again.
    async fn next_outcome(&mut self) -> CompletedCommand {
        let Some(front) = self.pending.front_mut() else { return std::future::pending().await };
        let outcome = (&mut front.receipt).await;
        let pending = self.pending.pop_front().expect("there is a front");
        self.pending_bytes -= pending.bytes;
        (outcome, pending)
    }

    /// Answers one command, and those whose commit is known by now too: a group is told in few buffers.
    async fn answer(&mut self, first: CompletedCommand) {
        let mut replies = BytesMut::new();
        let mut newest = None;
        let mut outcome = Some(first);
        while let Some((decided, PendingCommand { kind, req_id, about, .. })) = outcome.take() {
            let id = req_id.as_deref();
            let reply = match decided {
                Ok(receipt) => {
                    if let Receipt::Posted(posted) = &receipt {
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
        // Who listens has it before its sender knows; who begins to listen afterwards does not get it.
        if let Some(newest) = newest {
            tokio::select! {
                () = self.app.hub.wait_until_published(newest) => {}
                () = self.outbox.closed() => {}
            }
        }
        // Replies repeat what was sent, which may be long: who sends much is heard as fast as it reads.
        self.outbox.push_when_half_empty(replies.freeze()).await;
    }

    async fn settle(&mut self) {
        while !self.pending.is_empty() {
            let outcome = self.next_outcome().await;
            self.answer(outcome).await;
        }
    }

    /// Handles what came, and what lies ready behind it: frames come in bursts. `false` at the end.
    async fn take(&mut self, socket: &mut Socket, first: SocketInput) -> bool {
        let mut incoming = Some(first);
        for turn in 1..=BURST {
            match incoming.take() {
                Some(SocketInput::Text(text)) => self.hear(socket, &text).await,
                Some(SocketInput::Binary) => socket.send_text(&egress::error("error", None, "Invalid JSON")),
                Some(SocketInput::TooLarge) => socket.close(1009, "Message exceeds maximum size"),
                Some(SocketInput::NotUtf8) => socket.close(1007, "Not UTF-8"),
                Some(SocketInput::Malformed) => socket.close(1002, "Malformed frame"),
                Some(SocketInput::Gone) => return false,
                None => break,
            }
            // What is taken from the socket must be handled, so the last turn takes nothing more.
            if turn == BURST || !self.may_hear_more() || self.outbox.is_closed() {
                break;
            }
            incoming = socket.next().now_or_never();
        }
        true
    }

    async fn hear(&mut self, socket: &Socket, text: &str) {
        let Ok(Frame { kind, req_id, about, asked }) = ingress::read(text, BOUNDS) else {
            self.settle().await;
            return socket.send_text(&egress::error("error", None, "Invalid JSON"));
        };
        let id = req_id.as_deref();
        // Commands queue behind each other; every other answer must not overtake theirs.
        let queues = matches!(asked, Ok(BrokerRequest::Command(_))) && self.signed.is_some();
        if !queues {
            self.settle().await;
        }
        match asked {
            Ok(BrokerRequest::Auth { token }) => self.authenticate(socket, &token, id).await,
            Err(sentence) if &*kind == "auth" => {
                socket.send_text(&egress::error("auth.error", id, &sentence))
            }
            _ if self.signed.is_none() => {
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
            Ok(BrokerRequest::Unknown) => {
                let kind: String = kind.chars().take(100).collect();
                socket.send_text(&egress::error("error", id, &format!("Unknown message type: {kind}")));
            }
            Err(sentence) => socket.send_text(&egress::error(&format!("{kind}.error"), id, &sentence)),
        }
    }

    fn may_hear_more(&self) -> bool {
        self.pending.len() < PENDING && self.pending_bytes < PENDING_BYTES
    }

    async fn submit(&self, command: Command) -> Option<parlor_engine::PendingReceipt> {
        let signed = self.signed.as_ref()?;
        Some(self.app.hub.submit(&signed.caller, command).await)
    }

    async fn read(&self, query: Query, kind: &str, req_id: Option<&str>, about: &EchoedFields) {
        let Some(signed) = &self.signed else { return };
        let reply = match self.app.hub.read(&signed.caller, query).await {
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
        let Some(signed) = &self.signed else { return };
        socket.send_text(&match self.app.hub.listen(&signed.caller, signed.subscriber.id, mailbox).await {
            Ok(()) => egress::listening(kind, req_id, about),
            Err(refusal) => egress::refusal(kind, req_id, about, &refusal),
        });
    }

    async fn authenticate(&mut self, socket: &Socket, token: &str, req_id: Option<&str>) {
        if self.signed.is_some() {
            return socket.send_text(&egress::plain("auth.ok", req_id));
        }
        if let Err(refusal) = self.sign_in(token, req_id).await {
            let sentence = match refusal {
                Refusal::NotSignedIn => "Invalid token".into(),
                other => codes::sentence(&other, None),
            };
            socket.send_text(&egress::error("auth.error", req_id, &sentence));
            socket.close(4003, &sentence);
        }
    }

    async fn sign_in(&mut self, token: &str, req_id: Option<&str>) -> Result<(), Refusal> {
        let caller = auth::caller(&self.app, token).await?;
        let subscriber = Subscriber {
            id: self.app.hub.viewer_id(),
            user: caller.user().cloned().ok_or(Refusal::NotSignedIn)?,
            principal: caller.principal.clone(),
            egress: self.app.broker_egress.clone(),
            outbox: self.outbox.clone(),
            present: false,
        };
        let greeting = frame::text(&egress::plain("auth.ok", req_id));
        let (_, counted) = admit(&self.app, &mut self.guest, &caller, subscriber.clone(), greeting).await?;
        self.signed = Some(AuthenticatedBroker { caller, subscriber, _counted: counted });
        Ok(())
    }
}
