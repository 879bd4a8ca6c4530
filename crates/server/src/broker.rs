//! Broker protocol: the WebSocket connections of `/ws/broker`.
//!
//! Translates requests to commands and queries of the hub.

mod agents;
mod commands;
mod rooms;
mod sessions;
mod tools;

pub use rooms::RoomEncoder;

use crate::App;
use crate::auth;
use crate::connection::peer::Peer;
use crate::connection::protocol::{Protocol, Reply};
use crate::connection::upgrade::upgrade;
use crate::connection::{SocketMessage, frame, session_loop};
use crate::encoders::{BROKER, Encoder, concat};
use crate::http::bearer;
use crate::http::problem::Problem;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use commands::Echo;
use parlor_engine::feed::{DisconnectReason, Encoding, Interest, Open, Since};
use parlor_model::{Caller, Delivery, LoggedEvent, Message, Refusal, Signal, SignalStamp};
use parlor_wire::broker::egress::BrokerAnswer;
use parlor_wire::broker::frames::RequestType;
use parlor_wire::broker::ingress::{
    self, BrokerQuery, BrokerRequest, EchoedFields, NotJson, ReceivedFrame, RequestFrame,
};
use parlor_wire::broker::{codes, egress};
use parlor_wire::json::JsonLimits;
use serde_json::value::RawValue;
use std::sync::Arc;
use tools::ToolCalls;

const JSON_LIMITS: JsonLimits = JsonLimits { depth: 32, items: 10_000 };
/// Maximum bytes of a frame; a larger one ends the connection.
const MAX_FRAME_BYTES: usize = parlor_wire::broker::client::MAX_REQUEST_BYTES;

const SIGN_IN_FIRST: &str = "Must authenticate first";

pub struct BrokerEncoder;

impl Encoder for BrokerEncoder {
    fn delivery(&self, message: &Message, delivery: &Delivery) -> Option<Bytes> {
        Some(frame::text(&egress::push(message, delivery)))
    }

    fn event(&self, logged_event: &LoggedEvent, _: Option<&str>) -> Option<Bytes> {
        concat(egress::sessions::event(logged_event).iter().map(|text| frame::text(text)))
    }

    fn signal(&self, signal: &Signal, _: SignalStamp, _: Option<&str>) -> Option<Bytes> {
        egress::sessions::signal(signal).map(|text| frame::text(&text))
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
        DisconnectReason::Unavailable => ("The server cannot read missed events now", 1013),
    };
    frame::concat(&[frame::text(&egress::failure(None, words)), frame::close(close, words)])
}

pub async fn mount(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let shared = app.clone();
    let first = bearer(request.headers()).map(auth_frame);
    upgrade(&app, request, move |upgraded| session_loop::run(shared, upgraded, Broker::default(), first))
}

/// Token or API key of the upgrade request, which replaces the `auth` frame.
fn auth_frame(token: &str) -> ReceivedFrame {
    ReceivedFrame::Request(RequestFrame {
        kind: RequestType::Auth,
        req_id: None,
        about: EchoedFields::default(),
        asked: Ok(BrokerRequest::Auth { token: token.into() }),
    })
}

/// A broker connection.
#[derive(Default)]
struct Broker {
    calls: ToolCalls,
}

impl Protocol for Broker {
    type Request = ReceivedFrame;
    type ParseError = NotJson;

    fn encoding(&self) -> Encoding {
        BROKER
    }

    fn max_message_bytes(_: &App) -> usize {
        MAX_FRAME_BYTES
    }

    fn parse(&self, _: &App, message: &SocketMessage) -> Result<ReceivedFrame, NotJson> {
        match message {
            SocketMessage::Text(text) => ingress::read(text, JSON_LIMITS),
            SocketMessage::Binary(_) => Err(NotJson),
        }
    }

    fn is_pipelined(request: &ReceivedFrame) -> bool {
        let ReceivedFrame::Request(request) = request else { return false };
        matches!(request.asked, Ok(BrokerRequest::Command(_)))
    }

    async fn handle(&mut self, peer: &mut Peer, request: ReceivedFrame) -> Reply {
        let RequestFrame { kind, req_id, about, asked } = match request {
            ReceivedFrame::Request(request) => request,
            ReceivedFrame::Unknown { kind, req_id } => {
                return Reply::text(&unknown(peer, &kind, req_id.as_deref()));
            }
        };
        let id = req_id.as_deref();
        Reply::text(&match (asked, &peer.identity) {
            (Ok(BrokerRequest::Auth { token }), _) => return authenticate(peer, &token, id).await,
            (Err(sentence), _) if kind == RequestType::Auth => egress::error(kind, id, &sentence),
            (_, None) => egress::error(RequestType::Auth, id, SIGN_IN_FIRST),
            (Ok(BrokerRequest::Ping), Some(_)) => egress::pong(id),
            (Ok(BrokerRequest::Command(command)), Some(identity)) => {
                let echo = Echo { kind, req_id, about };
                return commands::submit(&peer.app.hub, &identity.session.caller(), command, echo).await;
            }
            (Ok(BrokerRequest::Query(query)), Some(_)) => match answer(peer, query).await {
                Ok(answer) => egress::answer(kind, id, &about, &answer),
                Err(refusal) => egress::refusal(kind, id, &about, &refusal),
            },
            (Ok(BrokerRequest::Listen { mailbox }), Some(identity)) => {
                let interest = Interest::Mailbox(mailbox);
                let open = Open { interest, since: Since::Now, encoding: BROKER, opened: None, live: None };
                match identity.session.open(open).await {
                    Ok(()) => egress::listening(kind, id, &about),
                    Err(refusal) => egress::refusal(kind, id, &about, &refusal),
                }
            }
            (Ok(BrokerRequest::Room(room, request)), Some(_)) => {
                return rooms::handle(peer, &room, (kind, request), id).await;
            }
            (Ok(BrokerRequest::Instructions(agent, request)), Some(_)) => {
                tools::instruct(peer, agent, request, (kind, &about), id).await
            }
            (Ok(BrokerRequest::Session(request)), Some(_)) => {
                sessions::handle(peer, request, kind, &about, id).await
            }
            (Ok(BrokerRequest::Tool(request)), Some(_)) => {
                return tools::handle(peer, &mut self.calls, request, (kind, &about), id).await;
            }
            (Ok(BrokerRequest::Answer(given)), Some(_)) => tools::answer(peer, given, &about, id).await,
            (Ok(BrokerRequest::Rebuild), Some(_)) => agents::rebuild(peer, kind, id).await,
            (Err(sentence), Some(_))
                if matches!(kind, RequestType::SessionStart | RequestType::SessionContinue) =>
            {
                let session = sessions::refused_session(&about);
                egress::sessions::refused(kind, Some(&session), id, &sentence)
            }
            (Err(sentence), Some(_)) => egress::error(kind, id, &sentence),
        })
    }

    fn unreadable(&self, _: NotJson) -> Bytes {
        frame::text(&egress::failure(None, "Invalid JSON"))
    }

    fn sign_in_timeout(&self) -> Option<Bytes> {
        Some(frame::text(&egress::error(RequestType::Auth, None, "Authentication timeout")))
    }

    async fn end(self, _peer: &Peer) {
        self.calls.end().await;
    }
}

/// Encodes the refusal of a frame of unknown type.
fn unknown(peer: &Peer, kind: &str, req_id: Option<&RawValue>) -> String {
    if peer.identity.is_none() {
        return egress::error(RequestType::Auth, req_id, SIGN_IN_FIRST);
    }
    let kind: String = kind.chars().take(100).collect();
    egress::failure(req_id, &format!("Unknown message type: {kind}"))
}

async fn authenticate(peer: &mut Peer, token: &str, req_id: Option<&RawValue>) -> Reply {
    if peer.identity.is_some() {
        return Reply::text(&egress::authenticated(req_id));
    }
    let caller = auth::caller_or_agent(&peer.app, token).await;
    sign_in(peer, caller, req_id).await;
    Reply::None
}

/// Registers the connection for the caller, or closes it.
async fn sign_in(peer: &mut Peer, caller: Result<Caller, Refusal>, req_id: Option<&RawValue>) {
    let greeting = frame::text(&egress::authenticated(req_id));
    let admitted = match caller {
        Ok(caller) => peer.admit(caller, greeting).await,
        Err(refusal) => Err(refusal),
    };
    let admitted = match admitted {
        Ok(_) => sessions::follow(peer).await,
        Err(refusal) => Err(refusal),
    };
    if let Err(refusal) = admitted {
        let sentence = match refusal {
            Refusal::NotSignedIn => "Invalid token".into(),
            other => codes::sentence(&other, None),
        };
        peer.send_text(&egress::error(RequestType::Auth, req_id, &sentence));
        peer.close(4003, &sentence);
    }
}

async fn answer(peer: &Peer, query: BrokerQuery) -> Result<BrokerAnswer, Refusal> {
    match query {
        BrokerQuery::ListSubscriptions(query) => peer.read(query).await.map(BrokerAnswer::Subscriptions),
        BrokerQuery::ListMail(query) => peer.read(query).await.map(BrokerAnswer::Mail),
        BrokerQuery::ListDeadLetters(query) => peer.read(query).await.map(BrokerAnswer::DeadLetters),
        BrokerQuery::ListAgents(query) => agents::list(peer, query).await.map(BrokerAnswer::Agents),
        BrokerQuery::GetAgent(query) => agents::get(peer, query).await,
    }
}
