//! The message as the broker shows it.

use parlor_model::{Delivery, Mailbox, Message, SessionRef};
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
    /// How often it was handed out on a lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
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
            attempts: None,
        }
    }

    /// The copy in one mailbox; only an agent's own copy says whether a session took the message.
    pub fn delivered(message: &'a Message, delivery: &'a Delivery) -> Self {
        let mut copy = Self::of(message, delivery.state.as_str());
        copy.delivered_to = Some(Self::place(&delivery.mailbox));
        copy.attempts = (delivery.attempts > 0).then_some(delivery.attempts);
        if delivery.mailbox.session.is_none() {
            let taken = !delivery.handled_by.is_empty();
            copy.handled = Some(taken);
            copy.handled_by = taken.then(|| delivery.handled_by.iter().map(Taker::from).collect());
        }
        copy
    }

    pub fn place(mailbox: &Mailbox) -> String {
        match &mailbox.session {
            Some(session) => format!("{}:{}", mailbox.agent, session),
            None => mailbox.agent.to_string(),
        }
    }

    /// The message's own fields, spread into a larger frame.
    pub fn into_frame(self, frame: Frame) -> Frame {
        frame
            .with("id", &self.id)
            .with("from", &self.from)
            .with("path", &self.path)
            .with("command", &self.command)
            .with("payload", &self.payload)
            .with("status", &self.status)
            .with("timestamp", &self.timestamp)
            .with("source", &self.source)
            .with("externalId", &self.external_id)
    }
}

/// A JSON object written field by field: through a `Value` the payload's large numbers would lose digits.
pub struct Frame(String);

impl Frame {
    pub fn object() -> Self {
        Self("{".into())
    }

    pub fn new(kind: &str) -> Self {
        Self::object().with("type", &kind)
    }

    pub fn with(mut self, key: &str, value: &(impl Serialize + ?Sized)) -> Self {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        let value = serde_json::to_string(value).expect("frames are texts, numbers and lists of them");
        self.0.push('"');
        self.0.push_str(key);
        self.0.push_str("\":");
        self.0.push_str(&value);
        self
    }

    pub fn with_some(self, key: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// `req_id` is JSON, as the request had it.
    pub fn end(mut self, req_id: Option<&str>) -> String {
        if let Some(id) = req_id {
            self.0.push_str(",\"reqId\":");
            self.0.push_str(id);
        }
        self.0.push('}');
        self.0
    }

    pub fn raw(self) -> Box<RawValue> {
        RawValue::from_string(self.end(None)).expect("an object written field by field is JSON")
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
