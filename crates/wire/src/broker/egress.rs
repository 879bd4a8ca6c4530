//! Encodes receipts, query answers and deliveries as broker frames.

pub mod questions;
pub mod sessions;
pub mod tools;

use super::frames::hub::*;
use super::frames::{Answer, Plain, Push, Refused, RequestType};
use super::ingress::EchoedFields;
use crate::broker::codes;
use crate::files::FileFrame;
use crate::frames::{encode, encode_about};
use crate::relayed::RelayedFrame;
use parlor_model::command::{self, AgentWithSubscriptions, ReceivedMail};
use parlor_model::query;
use parlor_model::{
    Agent, DeadLetter, Delivery, Destination, Mailbox, Message, Refusal, Session, SessionId, Subscription,
};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Initial size in bytes of the buffer for a frame with a short message.
const MESSAGE_BYTES: usize = 512;

/// Whether an agent has tools: the built-in ones.
const HAS_TOOLS: bool = true;

/// Receipt of a command of any type that a frame can request.
#[derive(Debug)]
pub enum BrokerReceipt {
    Posted(command::Posted),
    Received(ReceivedMail),
    /// Number of acknowledged messages.
    Acknowledged(usize),
    Turn(command::BatchReceipt),
    Subscriptions(Vec<Subscription>),
    DeadLettersCleared,
    Agent(AgentWithSubscriptions),
    AgentRemoved,
}

/// Answer to a query of any type that a frame can request.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "few of them exist at the same time")]
pub enum BrokerAnswer {
    Subscriptions(Vec<Subscription>),
    Mail(ReceivedMail),
    DeadLetters(Vec<DeadLetter>),
    Agents(Vec<AgentState>),
    Agent { found: query::FoundAgent, folder: AgentFolder },
}

/// An agent with the state that the caller may see.
#[derive(Debug)]
pub struct AgentState {
    pub agent: Agent,
    pub folder: AgentFolder,
    /// Sessions with a run that has not ended, sorted.
    pub active: Vec<SessionId>,
}

/// Facts about the folder of an agent. Without a folder, or for an agent of another user, all are absent.
#[derive(Debug, Clone, Default)]
pub struct AgentFolder {
    /// Path below the root of all folders.
    pub path: Option<Box<str>>,
    pub has_claude_md: bool,
    pub is_missing: bool,
}

pub fn authenticated(req_id: Option<&RawValue>) -> String {
    encode(&Answer::Auth(Plain { req_id }))
}

pub fn pong(req_id: Option<&RawValue>) -> String {
    encode(&Answer::Ping(Plain { req_id }))
}

/// Encodes an error that refuses no request of a known type.
pub fn failure(req_id: Option<&RawValue>, sentence: &str) -> String {
    encode(&Push::Error(Failure { session_id: None, error: sentence.into(), req_id }))
}

/// Encodes the refusal of a request.
pub fn error(request: RequestType, req_id: Option<&RawValue>, sentence: &str) -> String {
    encode(&Refused::new(request, Failure { session_id: None, error: sentence.into(), req_id }))
}

pub fn refusal(
    request: RequestType,
    req_id: Option<&RawValue>,
    about: &EchoedFields,
    refusal: &Refusal,
) -> String {
    error(request, req_id, &codes::sentence(refusal, about.agent.as_deref()))
}

pub fn push(message: &Message, delivery: &Delivery) -> String {
    let copy = copy(message, delivery);
    let push = match &delivery.mailbox.session {
        None => Push::Message(MailPush { message: copy }),
        Some(session) => Push::SessionMessage(SessionMailPush {
            agent_id: delivery.mailbox.agent.as_str().into(),
            session_id: session.as_str().into(),
            message: copy,
        }),
    };
    encode_about(&push, MESSAGE_BYTES)
}

pub fn listening(request: RequestType, req_id: Option<&RawValue>, about: &EchoedFields) -> String {
    let (agent_id, session_id, pattern) = echoed(about);
    let listening = Listening { agent_id, session_id, pattern, req_id };
    encode(&match request {
        RequestType::SessionListen => Answer::SessionListen(listening),
        _ => Answer::Listen(listening),
    })
}

/// Encodes the receipt of a command.
pub fn receipt(
    request: RequestType,
    req_id: Option<&RawValue>,
    about: &EchoedFields,
    receipt: &BrokerReceipt,
) -> String {
    let answer = match receipt {
        BrokerReceipt::Posted(posted) => {
            let sent = |message| Sent { message_id: posted.id.as_str().into(), message, req_id };
            match request {
                RequestType::Send => Answer::Send(sent(routed(posted, None))),
                RequestType::Broadcast => Answer::Broadcast(sent(routed(posted, None))),
                RequestType::Relay => Answer::Relay(routed(posted, req_id)),
                _ => Answer::Route(routed(posted, req_id)),
            }
        }
        BrokerReceipt::Received(received) => mail(request, req_id, about, received),
        BrokerReceipt::Acknowledged(acknowledged) => {
            let (agent_id, session_id, pattern) = echoed(about);
            let acknowledged = *acknowledged;
            Answer::Ack(Acknowledged { agent_id, session_id, pattern, acknowledged, req_id })
        }
        BrokerReceipt::Turn(turn) => {
            let (agent_id, session_id, _) = echoed(about);
            let (run_id, messages) = (turn.run.as_ref().map(|run| run.as_str().into()), turn.messages);
            Answer::TurnTrigger(TriggeredTurn { agent_id, session_id, run_id, messages, req_id })
        }
        BrokerReceipt::Subscriptions(subscribed) => subscriptions(request, req_id, about, subscribed),
        BrokerReceipt::DeadLettersCleared => Answer::UnmatchedClear(Cleared { cleared: true, req_id }),
        BrokerReceipt::Agent(AgentWithSubscriptions { agent, subscriptions }) => {
            let id = agent.id.as_str().into();
            let stored = StoredAgent { id, agent: AgentDetails(described(agent, subscriptions)), req_id };
            match request {
                RequestType::AgentUpdate => Answer::AgentUpdate(stored),
                _ => Answer::AgentCreate(stored),
            }
        }
        BrokerReceipt::AgentRemoved => {
            Answer::AgentDelete(RemovedAgent { id: about.agent.as_deref().map(Into::into), req_id })
        }
    };
    encode_about(&answer, MESSAGE_BYTES)
}

/// Encodes the answer to a query.
pub fn answer(
    request: RequestType,
    req_id: Option<&RawValue>,
    about: &EchoedFields,
    answer: &BrokerAnswer,
) -> String {
    let answer = match answer {
        BrokerAnswer::Agents(agents) => {
            let agents = agents.iter().map(|state| summary(&state.agent, &state.folder, &state.active));
            Answer::AgentList(Agents { agents: agents.collect(), req_id })
        }
        BrokerAnswer::Agent { found: query::FoundAgent::OfAnother(agent), folder } => {
            Answer::AgentGet(FoundAgent { agent: AgentView::OfAnother(summary(agent, folder, &[])), req_id })
        }
        BrokerAnswer::Agent { found: query::FoundAgent::Own { agent, subscriptions, sessions }, folder } => {
            let mut agent = described(agent, subscriptions);
            agent.insert("path".into(), folder.path.as_deref().map_or(Value::Null, Value::from));
            agent.insert("hasClaudeMd".into(), folder.has_claude_md.into());
            agent.insert("hasTools".into(), HAS_TOOLS.into());
            if folder.is_missing {
                agent.insert("missing".into(), true.into());
            }
            // Clients expect `autoRun` also if it is not set.
            agent.entry("autoRun").or_insert(Value::Null);
            agent.insert("sessions".into(), value(&sessions.iter().map(session).collect::<Vec<_>>()));
            Answer::AgentGet(FoundAgent { agent: AgentView::Own(AgentDetails(agent)), req_id })
        }
        BrokerAnswer::Subscriptions(subscribed) => subscriptions(request, req_id, about, subscribed),
        BrokerAnswer::Mail(found) => mail(request, req_id, about, found),
        BrokerAnswer::DeadLetters(letters) => {
            Answer::Unmatched(DeadLetters { messages: letters.iter().map(dead_letter).collect(), req_id })
        }
    };
    encode_about(&answer, MESSAGE_BYTES)
}

type Echoed<'a> = (Option<Cow<'a, str>>, Option<Cow<'a, str>>, Option<Cow<'a, str>>);

fn echoed(about: &EchoedFields) -> Echoed<'_> {
    let EchoedFields { agent, session, pattern, .. } = about;
    let [agent, session, pattern] =
        [agent, session, pattern].map(|field| field.as_deref().map(Cow::Borrowed));
    (agent, session, pattern)
}

fn mail<'a>(
    request: RequestType,
    req_id: Option<&'a RawValue>,
    about: &'a EchoedFields,
    mail: &'a ReceivedMail,
) -> Answer<'a> {
    let (agent_id, session_id, pattern) = echoed(about);
    let messages = mail.iter().map(|(message, delivery)| copy(message, delivery)).collect();
    let mail = Mail { agent_id, session_id, pattern, messages, req_id };
    match request {
        RequestType::SessionReceive => Answer::SessionReceive(mail),
        RequestType::History => Answer::History(mail),
        RequestType::SessionHistory => Answer::SessionHistory(mail),
        _ => Answer::Receive(mail),
    }
}

fn subscriptions<'a>(
    request: RequestType,
    req_id: Option<&'a RawValue>,
    about: &'a EchoedFields,
    subscriptions: &'a [Subscription],
) -> Answer<'a> {
    let (agent_id, session_id, pattern) = echoed(about);
    let subscriptions =
        Subscriptions { agent_id, session_id, pattern, subscriptions: listed(subscriptions), req_id };
    match request {
        RequestType::SubAdd => Answer::SubAdd(subscriptions),
        RequestType::SubRemove => Answer::SubRemove(subscriptions),
        RequestType::SessionSubAdd => Answer::SessionSubAdd(subscriptions),
        RequestType::SessionSubRemove => Answer::SessionSubRemove(subscriptions),
        RequestType::SessionSubList => Answer::SessionSubList(subscriptions),
        _ => Answer::SubList(subscriptions),
    }
}

fn listed(subscriptions: &[Subscription]) -> Vec<SubscriptionEntry<'_>> {
    let listed = subscriptions.iter().map(|subscription| SubscriptionEntry {
        pattern: subscription.pattern.as_str().into(),
        added_at: subscription.added_at.millis(),
    });
    listed.collect()
}

/// The copy of a message in one mailbox. Only the copy in the agent's own mailbox has `handled`, which tells
/// whether a session received the message.
fn copy<'a>(message: &'a Message, delivery: &'a Delivery) -> MailMessage<'a> {
    let (own, handlers) = (delivery.mailbox.session.is_none(), &delivery.handled_by);
    let handled_by = handlers.iter().map(|handler| HandledBy {
        agent_id: handler.agent.as_str().into(),
        session_id: handler.session.as_str().into(),
    });
    MailMessage {
        status: Some(delivery.state.as_str().into()),
        delivered_to: Some(mailbox_path(&delivery.mailbox)),
        handled: own.then_some(!handlers.is_empty()),
        handled_by: (own && !handlers.is_empty()).then(|| handled_by.collect()),
        attempts: (delivery.attempts > 0).then_some(delivery.attempts),
        ..mail_message(message)
    }
}

fn dead_letter(letter: &DeadLetter) -> MailMessage<'_> {
    MailMessage {
        reason: Some((&*letter.reason).into()),
        delivered_to: letter.mailbox.as_ref().map(mailbox_path),
        ..mail_message(&letter.message)
    }
}

fn mail_message(message: &Message) -> MailMessage<'_> {
    MailMessage {
        id: message.id.as_str().into(),
        from: message.sender.id().into(),
        path: path(message),
        command: message.command.as_deref().unwrap_or("message").into(),
        payload: payload(message),
        status: None,
        timestamp: message.at.millis(),
        source: (&*message.source).into(),
        external_id: message.external_id.as_deref().map(Into::into),
        reason: None,
        delivered_to: None,
        handled: None,
        handled_by: None,
        attempts: None,
    }
}

fn path(message: &Message) -> Cow<'_, str> {
    match &message.destination {
        Destination::Path(path) => path.as_str().into(),
        Destination::Room(_) => message.destination.path().as_str().to_owned().into(),
    }
}

/// The payload: the original JSON of a routed message, or an object built from a message of a room.
fn payload(message: &Message) -> Payload<'_> {
    // A stored payload is an object, because the hub rejects any other.
    if let Some(raw) = message.payload.as_ref().and_then(|payload| serde_json::from_str(&payload.0).ok()) {
        return Payload::Routed(raw);
    }
    Payload::Room(Box::new(RoomPayload {
        text: (&*message.text).into(),
        message_id: message.id.as_str().into(),
        room_id: message.destination.room().map(|room| room.as_str().into()),
        sender_id: message.sender.id().into(),
        sender_type: message.sender.kind().into(),
        sender_name: (&*message.sender_name).into(),
        attachments: message.attachments.iter().map(FileFrame::from).collect(),
        relayed: message.relayed.as_deref().map(RelayedFrame::from),
    }))
}

fn routed<'a>(posted: &'a command::Posted, req_id: Option<&'a RawValue>) -> Posted<'a> {
    let own = posted.deliveries.iter().filter(|delivery| delivery.mailbox.session.is_none());
    let agents: Vec<Cow<'_, str>> = own.map(|delivery| delivery.mailbox.agent.as_str().into()).collect();
    let sessions = posted.deliveries.iter().filter_map(|delivery| {
        let session_id = delivery.mailbox.session.as_ref()?.as_str().into();
        Some(HandledBy { agent_id: delivery.mailbox.agent.as_str().into(), session_id })
    });
    let message = posted.message.as_deref();
    let in_room = message.is_some_and(|message| message.destination.room().is_some());
    let delivered = in_room || !posted.deliveries.is_empty();
    // All copies share the id of the message. `messageIds` has one entry per agent, and at least one if
    // delivered.
    let copies = agents.len().max(usize::from(delivered));
    Posted {
        id: posted.id.as_str().into(),
        from: message.map(|message| message.sender.id().into()),
        path: message.map(path),
        command: message.map(|message| message.command.as_deref().unwrap_or("message").into()),
        payload: message.map(payload),
        status: message.map(|_| "pending".into()),
        timestamp: message.map(|message| message.at.millis()),
        source: message.map(|message| (&*message.source).into()),
        external_id: message.map(|message| message.external_id.as_deref().map(Into::into)),
        delivered,
        delivered_to: agents,
        delivered_to_sessions: sessions.collect(),
        message_ids: vec![posted.id.as_str().into(); copies],
        unmatched: !delivered,
        position: posted.position.to_string().into(),
        req_id,
    }
}

fn mailbox_path(mailbox: &Mailbox) -> Cow<'_, str> {
    match &mailbox.session {
        Some(session) => format!("{}:{}", mailbox.agent, session).into(),
        None => mailbox.agent.as_str().into(),
    }
}

fn session((session, subscriptions): &(Session, Vec<Subscription>)) -> SessionEntry<'_> {
    let auto_run = session.auto_run.as_ref();
    SessionEntry {
        id: session.id.as_str().into(),
        title: (&*session.title).into(),
        is_default: session.is_default,
        subscriptions: listed(subscriptions),
        created_at: session.created_at.millis(),
        // Clients expect a time, also of a session without a turn.
        last_used_at: session.last_used_at.unwrap_or(session.created_at).millis(),
        auto_run: auto_run.map(|auto_run| serde_json::from_str(&auto_run.to_json().0).unwrap_or_default()),
        room: session.room.as_ref().map(|room| room.as_str().into()),
    }
}

/// Describes an agent with the settings of its owner. Fields of the hub are inserted last, so that settings
/// cannot override them.
fn described(agent: &Agent, subscriptions: &[Subscription]) -> Map<String, Value> {
    let mut described = Map::new();
    described.insert("workDirs".into(), Value::Array(Vec::new()));
    described.insert("defaultModel".into(), Value::Null);
    described.insert("heartbeat".into(), Value::Null);
    for (key, value) in &agent.settings {
        described.insert(key.to_string(), serde_json::from_str(&value.0).unwrap_or_default());
    }
    described.insert("id".into(), agent.id.as_str().into());
    described.insert("name".into(), (&*agent.name).into());
    described.insert("description".into(), (&*agent.description).into());
    described.insert("subscriptions".into(), value(&listed(subscriptions)));
    described
}

fn value(entries: &impl Serialize) -> Value {
    serde_json::to_value(entries).expect("entries consist of strings and numbers")
}

fn summary<'a>(agent: &'a Agent, folder: &AgentFolder, active: &'a [SessionId]) -> AgentSummary<'a> {
    let setting = |key: &str, default: Value| {
        agent.settings.get(key).and_then(|value| serde_json::from_str(&value.0).ok()).unwrap_or(default)
    };
    AgentSummary {
        id: agent.id.as_str().into(),
        name: (&*agent.name).into(),
        description: (&*agent.description).into(),
        work_dirs: setting("workDirs", Value::Array(Vec::new())),
        default_model: setting("defaultModel", Value::Null),
        has_claude_md: folder.has_claude_md,
        has_tools: HAS_TOOLS,
        is_working: !active.is_empty(),
        active_count: active.len(),
        active_sessions: active.iter().map(|session| session.as_str().into()).collect(),
        missing: folder.is_missing.then_some(true),
    }
}
