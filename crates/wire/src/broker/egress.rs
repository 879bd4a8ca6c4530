//! From outcomes and deliveries to broker frames.

use super::frames::{Copy, Taker};
use parlor_model::command::Posted;
use parlor_model::{Agent, Delivery, Message, Pattern};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// A reply that carries the request's id.
pub fn reply(kind: &str, req_id: Option<&str>, fields: Value) -> String {
    let mut frame = Map::new();
    frame.insert("type".into(), kind.into());
    if let Value::Object(fields) = fields {
        frame.extend(fields);
    }
    if let Some(id) = req_id.and_then(|raw| serde_json::from_str(raw).ok()) {
        frame.insert("reqId".into(), id);
    }
    Value::Object(frame).to_string()
}

pub fn error(kind: &str, req_id: Option<&str>, sentence: &str) -> String {
    reply(kind, req_id, json!({ "error": sentence }))
}

/// Encoded directly: through a `Value` the payload's large numbers would lose digits.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Push<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
    message: Copy<'a>,
}

pub fn push(message: &Message, delivery: &Delivery) -> String {
    let session = delivery.mailbox.session.as_ref().map(|session| session.as_str());
    encode(&Push {
        kind: if session.is_some() { "msg.session.push" } else { "msg.push" },
        agent_id: session.map(|_| delivery.mailbox.agent.as_str()),
        session_id: session,
        message: Copy::delivered(message, delivery),
    })
}

pub fn routed(posted: &Posted) -> Value {
    let agents: Vec<&str> = own_copies(posted).map(|delivery| delivery.mailbox.agent.as_str()).collect();
    let sessions: Vec<Value> = posted
        .deliveries
        .iter()
        .filter_map(|delivery| {
            let session = delivery.mailbox.session.as_ref()?;
            Some(json!(Taker { agent_id: delivery.mailbox.agent.as_str(), session_id: session.as_str() }))
        })
        .collect();
    let in_room = posted.message.as_ref().is_some_and(|message| message.place.room().is_some());
    let delivered = in_room || !posted.deliveries.is_empty();
    let mut value = posted.message.as_ref().map_or_else(|| json!({}), |m| json!(Copy::of(m, "pending")));
    value["id"] = json!(posted.id.as_str());
    value["delivered"] = json!(delivered);
    value["deliveredTo"] = json!(agents);
    value["deliveredToSessions"] = json!(sessions);
    // Every copy bears the id of the message; the list has one for each place it came to.
    let places = agents.len().max(usize::from(delivered));
    value["messageIds"] = json!(vec![posted.id.as_str(); places]);
    value["unmatched"] = json!(!delivered);
    value["position"] = json!(posted.position.to_string());
    value
}

fn own_copies(posted: &Posted) -> impl Iterator<Item = &Delivery> {
    posted.deliveries.iter().filter(|delivery| delivery.mailbox.session.is_none())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Received<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    agent_id: &'a str,
    messages: Vec<Copy<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    req_id: Option<&'a RawValue>,
}

pub fn received(req_id: Option<&str>, agent: &str, mail: &[(Arc<Message>, Delivery)]) -> String {
    let messages = mail
        .iter()
        .map(|(message, delivery)| Copy { status: "delivered", ..Copy::delivered(message, delivery) })
        .collect();
    let req_id = req_id.and_then(|raw| serde_json::from_str(raw).ok());
    encode(&Received { kind: "msg.receive.ok", agent_id: agent, messages, req_id })
}

fn encode(frame: &impl Serialize) -> String {
    serde_json::to_string(frame).expect("frames are texts, numbers and lists of them")
}

pub fn created(agent: &Agent, subscriptions: &[Pattern]) -> Value {
    let subscriptions: Vec<Value> = subscriptions
        .iter()
        .map(|pattern| json!({ "pattern": pattern.as_str(), "addedAt": agent.created_at.millis() }))
        .collect();
    json!({
        "id": agent.id.as_str(),
        "agent": {
            "id": agent.id.as_str(),
            "name": agent.name,
            "description": agent.description,
            "workDirs": [],
            "defaultModel": null,
            "subscriptions": subscriptions,
            "heartbeat": null,
        },
    })
}
