//! The message as the broker shows it.

use parlor_model::{Delivery, Message, SessionRef};
use serde::Serialize;
use serde_json::value::RawValue;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Copy<'a> {
    pub id: &'a str,
    pub from: &'a str,
    pub path: String,
    pub command: &'a str,
    pub payload: Box<RawValue>,
    pub status: &'a str,
    /// Milliseconds since 1970.
    pub timestamp: i64,
    pub source: &'a str,
    /// `null` when absent, as this protocol has it.
    pub external_id: Option<&'a str>,
    #[serde(rename = "_deliveredTo", skip_serializing_if = "Option::is_none")]
    pub delivered_to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handled: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handled_by: Option<Vec<Taker<'a>>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Taker<'a> {
    pub agent_id: &'a str,
    pub session_id: &'a str,
}

impl<'a> From<&'a SessionRef> for Taker<'a> {
    fn from(taker: &'a SessionRef) -> Self {
        Self { agent_id: taker.agent.as_str(), session_id: taker.session.as_str() }
    }
}

impl<'a> Copy<'a> {
    pub fn of(message: &'a Message, status: &'a str) -> Self {
        Self {
            id: message.id.as_str(),
            from: message.sender.id(),
            path: message.place.path().to_string(),
            command: message.command.as_deref().unwrap_or("message"),
            payload: payload(message),
            status,
            timestamp: message.at.millis(),
            source: &message.source,
            external_id: message.external_id.as_deref(),
            delivered_to: None,
            handled: None,
            handled_by: None,
        }
    }

    /// The copy in one mailbox; only an agent's own copy says whether a session took the message.
    pub fn delivered(message: &'a Message, delivery: &'a Delivery) -> Self {
        let mailbox = &delivery.mailbox;
        let mut copy = Self::of(message, delivery.state.as_str());
        match &mailbox.session {
            Some(session) => copy.delivered_to = Some(format!("{}:{}", mailbox.agent, session)),
            None => {
                let taken = !delivery.handled_by.is_empty();
                copy.delivered_to = Some(mailbox.agent.to_string());
                copy.handled = Some(taken);
                copy.handled_by = taken.then(|| delivery.handled_by.iter().map(Taker::from).collect());
            }
        }
        copy
    }
}

/// What came as JSON goes out as it came; what was said in a room becomes a payload that names it.
fn payload(message: &Message) -> Box<RawValue> {
    if let Some(payload) = &message.payload
        && let Ok(raw) = RawValue::from_string(payload.0.to_string())
    {
        return raw;
    }
    let said = serde_json::json!({
        "text": &*message.text,
        "messageId": message.id.as_str(),
        "roomId": message.place.room().map(|room| room.as_str()),
        "senderId": message.sender.id(),
        "senderType": message.sender.kind(),
        "senderName": message.sender_name,
    });
    RawValue::from_string(said.to_string()).expect("a JSON value is JSON")
}
