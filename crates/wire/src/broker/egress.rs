//! Encodes receipts, query answers and deliveries as broker frames.

use super::frames::{AgentSummary, Frame, HandledBy, SessionEntry, SubscriptionEntry, mailbox_path};
use super::ingress::EchoedFields;
use crate::broker::codes;
use parlor_model::command::{AgentWithSubscriptions, Posted, ReceivedMail};
use parlor_model::query::FoundAgent;
use parlor_model::{Agent, DeadLetter, Delivery, Message, Refusal, Session, Subscription};
use serde::Serialize;
use serde_json::{Map, Value};
use std::sync::Arc;

/// Receipt of a command of any type that a frame can request.
#[derive(Debug)]
pub enum BrokerReceipt {
    Posted(Posted),
    Received(ReceivedMail),
    /// Number of acknowledged messages.
    Acknowledged(usize),
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
    Agents(Vec<Agent>),
    Agent(FoundAgent),
}

pub fn plain(kind: &str, req_id: Option<&str>) -> String {
    Frame::new(kind).end(req_id)
}

pub fn error(kind: &str, req_id: Option<&str>, sentence: &str) -> String {
    Frame::new(kind).with("error", &sentence).end(req_id)
}

pub fn refusal(kind: &str, req_id: Option<&str>, about: &EchoedFields, refusal: &Refusal) -> String {
    error(&format!("{kind}.error"), req_id, &codes::sentence(refusal, about.agent.as_deref()))
}

pub fn push(message: &Message, delivery: &Delivery) -> String {
    let copy = Frame::of_copy(message, delivery);
    match &delivery.mailbox.session {
        None => Frame::new("msg.push").with_object("message", copy).end(None),
        Some(session) => Frame::new("msg.session.push")
            .with("agentId", &delivery.mailbox.agent.as_str())
            .with("sessionId", &session.as_str())
            .with_object("message", copy)
            .end(None),
    }
}

pub fn listening(kind: &str, req_id: Option<&str>, about: &EchoedFields) -> String {
    echoed(&format!("{kind}.ok"), about).end(req_id)
}

/// Encodes the receipt of a command.
pub fn receipt(kind: &str, req_id: Option<&str>, about: &EchoedFields, receipt: &BrokerReceipt) -> String {
    let ok = format!("{kind}.ok");
    let frame = match receipt {
        BrokerReceipt::Posted(posted) if matches!(kind, "msg.route" | "msg.relay") => {
            routed(Frame::new(&ok), posted)
        }
        BrokerReceipt::Posted(posted) => {
            let message = routed(Frame::object(), posted);
            Frame::new(&ok).with("messageId", posted.id.as_str()).with_object("message", message)
        }
        BrokerReceipt::Received(mail) => echoed(&ok, about).with_objects("messages", copies(mail)),
        BrokerReceipt::Acknowledged(count) => echoed(&ok, about).with("acknowledged", count),
        BrokerReceipt::Subscriptions(subscriptions) => {
            echoed(&ok, about).with("subscriptions", &listed(subscriptions))
        }
        BrokerReceipt::DeadLettersCleared => Frame::new(&ok).with("cleared", &true),
        BrokerReceipt::Agent(AgentWithSubscriptions { agent, subscriptions }) => {
            Frame::new(&ok).with("id", &agent.id.as_str()).with("agent", &described(agent, subscriptions))
        }
        BrokerReceipt::AgentRemoved => Frame::new(&ok).with("id", &about.agent),
    };
    frame.end(req_id)
}

/// Encodes the answer to a query.
pub fn answer(kind: &str, req_id: Option<&str>, about: &EchoedFields, answer: &BrokerAnswer) -> String {
    let (ok, result) = (format!("{kind}.ok"), format!("{kind}.result"));
    let frame = match answer {
        BrokerAnswer::Agents(agents) => {
            Frame::new(&result).with("agents", &agents.iter().map(summary).collect::<Vec<_>>())
        }
        BrokerAnswer::Agent(FoundAgent::OfAnother(agent)) => {
            Frame::new(&result).with("agent", &summary(agent))
        }
        BrokerAnswer::Agent(FoundAgent::Own { agent, subscriptions, sessions }) => {
            let mut agent = described(agent, subscriptions);
            // Clients expect `autoRun`, although the hub does not implement it.
            agent.entry("autoRun").or_insert(Value::Null);
            agent.insert("sessions".into(), value(&sessions.iter().map(session).collect::<Vec<_>>()));
            Frame::new(&result).with("agent", &agent)
        }
        BrokerAnswer::Subscriptions(subscriptions) => {
            echoed(&ok, about).with("subscriptions", &listed(subscriptions))
        }
        BrokerAnswer::Mail(mail) => echoed(&ok, about).with_objects("messages", copies(mail)),
        BrokerAnswer::DeadLetters(letters) => {
            Frame::new(&ok).with_objects("messages", letters.iter().map(dead_letter))
        }
    };
    frame.end(req_id)
}

fn echoed(kind: &str, about: &EchoedFields) -> Frame {
    Frame::new(kind)
        .with_some("agentId", about.agent.as_deref())
        .with_some("sessionId", about.session.as_deref())
        .with_some("pattern", about.pattern.as_deref())
}

fn copies(mail: &[(Arc<Message>, Delivery)]) -> impl Iterator<Item = Frame> {
    mail.iter().map(|(message, delivery)| Frame::of_copy(message, delivery))
}

fn listed(subscriptions: &[Subscription]) -> Vec<SubscriptionEntry<'_>> {
    let listed = subscriptions.iter().map(|subscription| SubscriptionEntry {
        pattern: subscription.pattern.as_str(),
        added_at: subscription.added_at.millis(),
    });
    listed.collect()
}

fn routed(frame: Frame, posted: &Posted) -> Frame {
    let own = posted.deliveries.iter().filter(|delivery| delivery.mailbox.session.is_none());
    let agents: Vec<&str> = own.map(|delivery| delivery.mailbox.agent.as_str()).collect();
    let sessions = posted.deliveries.iter().filter_map(|delivery| {
        let session_id = delivery.mailbox.session.as_ref()?.as_str();
        Some(HandledBy { agent_id: delivery.mailbox.agent.as_str(), session_id })
    });
    let sessions: Vec<HandledBy> = sessions.collect();
    let in_room = posted.message.as_ref().is_some_and(|message| message.destination.room().is_some());
    let delivered = in_room || !posted.deliveries.is_empty();
    // All copies share the id of the message. `messageIds` has one entry per agent, and at least one if
    // delivered.
    let copies = agents.len().max(usize::from(delivered));
    let frame = match &posted.message {
        Some(message) => frame.with_message(message, Some("pending")),
        None => frame.with("id", &posted.id.as_str()),
    };
    frame
        .with("delivered", &delivered)
        .with("deliveredTo", &agents)
        .with("deliveredToSessions", &sessions)
        .with("messageIds", &vec![posted.id.as_str(); copies])
        .with("unmatched", &!delivered)
        .with("position", &posted.position.to_string())
}

fn dead_letter(letter: &DeadLetter) -> Frame {
    let frame = Frame::object().with_message(&letter.message, None).with("reason", &letter.reason);
    match &letter.mailbox {
        Some(mailbox) => frame.with("_deliveredTo", &mailbox_path(mailbox)),
        None => frame,
    }
}

fn session(session: &Session) -> SessionEntry<'_> {
    SessionEntry {
        id: session.id.as_str(),
        title: &session.title,
        is_default: session.id == parlor_model::SessionId::main(),
        created_at: session.created_at.millis(),
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

fn summary(agent: &Agent) -> AgentSummary<'_> {
    let setting = |key: &str, default: Value| {
        agent.settings.get(key).and_then(|value| serde_json::from_str(&value.0).ok()).unwrap_or(default)
    };
    AgentSummary {
        id: agent.id.as_str(),
        name: &agent.name,
        description: &agent.description,
        work_dirs: setting("workDirs", Value::Array(Vec::new())),
        default_model: setting("defaultModel", Value::Null),
        is_working: false,
        active_count: 0,
        active_sessions: [],
    }
}
