//! Builder for broker frames, the objects in them, and the encoding of messages.
//!
//! The type of an answer follows from that of the request, and payloads are copied without being parsed; a builder
//! does both, which an enum of frames would not.

use crate::files::FileFrame;
use crate::relayed::RelayedFrame;
use parlor_model::{Delivery, Mailbox, Message, SessionRef};
use serde::Serialize;
use serde_json::Value;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HandledBy<'a> {
    pub agent_id: &'a str,
    pub session_id: &'a str,
}

impl<'a> From<&'a SessionRef> for HandledBy<'a> {
    fn from(handler: &'a SessionRef) -> Self {
        Self { agent_id: handler.agent.as_str(), session_id: handler.session.as_str() }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionEntry<'a> {
    pub pattern: &'a str,
    /// Milliseconds since 1970-01-01 UTC.
    pub added_at: i64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionEntry<'a> {
    pub id: &'a str,
    pub title: &'a str,
    pub is_default: bool,
    /// Milliseconds since 1970-01-01 UTC.
    pub created_at: i64,
}

/// An agent as other users see it. The last three fields are constant: clients require them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentSummary<'a> {
    pub id: &'a str,
    pub name: &'a str,
    pub description: &'a str,
    pub work_dirs: Value,
    pub default_model: Value,
    pub is_working: bool,
    pub active_count: u32,
    pub active_sessions: [&'a str; 0],
}

/// Builder for a JSON object. Writes payloads as raw text, because a `serde_json::Value` would lose digits of
/// large numbers.
pub struct Frame(Vec<u8>);

impl Frame {
    pub fn object() -> Self {
        // Size of a frame with a short message.
        let mut bytes = Vec::with_capacity(512);
        bytes.push(b'{');
        Self(bytes)
    }

    pub fn new(kind: &str) -> Self {
        Self::object().with("type", &kind)
    }

    pub fn with(mut self, key: &str, value: &(impl Serialize + ?Sized)) -> Self {
        self.key(key);
        serde_json::to_writer(&mut self.0, value).expect("frames consist of strings, numbers and lists");
        self
    }

    pub fn with_some(self, key: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    pub fn with_object(self, key: &str, object: Self) -> Self {
        self.with_json(key, &object.closed())
    }

    pub fn with_objects(mut self, key: &str, objects: impl IntoIterator<Item = Self>) -> Self {
        self.key(key);
        self.0.push(b'[');
        for (number, object) in objects.into_iter().enumerate() {
            if number > 0 {
                self.0.push(b',');
            }
            self.0.extend_from_slice(&object.closed());
        }
        self.0.push(b']');
        self
    }

    /// Adds the fields of a message. `status` is `None` for a dead letter.
    pub fn with_message(self, message: &Message, status: Option<&str>) -> Self {
        self.with("id", message.id.as_str())
            .with("from", message.sender.id())
            .with("path", message.destination.path().as_str())
            .with("command", message.command.as_deref().unwrap_or("message"))
            .with_payload(message)
            .with_some("status", status)
            // Milliseconds since 1970-01-01 UTC.
            .with("timestamp", &message.at.millis())
            .with("source", &*message.source)
            // The broker protocol requires `null` if there is no external id.
            .with("externalId", &message.external_id)
    }

    /// Encodes the copy of a message in one mailbox. Only the copy in the agent's own mailbox has `handled`,
    /// which tells whether a session received the message.
    pub fn of_copy(message: &Message, delivery: &Delivery) -> Self {
        let mut frame = Self::object()
            .with_message(message, Some(delivery.state.as_str()))
            .with("_deliveredTo", &mailbox_path(&delivery.mailbox));
        if delivery.mailbox.session.is_none() {
            frame = frame.with("handled", &!delivery.handled_by.is_empty());
        }
        if delivery.mailbox.session.is_none() && !delivery.handled_by.is_empty() {
            frame =
                frame.with("handledBy", &delivery.handled_by.iter().map(HandledBy::from).collect::<Vec<_>>());
        }
        // Number of leases so far.
        if delivery.attempts > 0 { frame.with("attempts", &delivery.attempts) } else { frame }
    }

    /// Adds the payload: the original JSON of a routed message, or an object built from a message of a room.
    fn with_payload(self, message: &Message) -> Self {
        if let Some(payload) = &message.payload {
            return self.with_json("payload", payload.0.as_bytes());
        }
        let mut payload = Self::object()
            .with("text", &*message.text)
            .with("messageId", message.id.as_str())
            .with("roomId", &message.destination.room().map(|room| room.as_str()))
            .with("senderId", message.sender.id())
            .with("senderType", message.sender.kind())
            .with("senderName", &*message.sender_name);
        if !message.attachments.is_empty() {
            let files: Vec<_> = message.attachments.iter().map(FileFrame::from).collect();
            payload = payload.with("attachments", &files);
        }
        if let Some(relayed) = &message.relayed {
            payload = payload.with("relayed", &RelayedFrame::from(&**relayed));
        }
        self.with_object("payload", payload)
    }

    /// Finishes the frame. `req_id` is the raw JSON of the request's `reqId`.
    pub fn end(mut self, req_id: Option<&str>) -> String {
        if let Some(id) = req_id {
            self = self.with_json("reqId", id.as_bytes());
        }
        String::from_utf8(self.closed()).expect("JSON is UTF-8")
    }

    fn with_json(mut self, key: &str, json: &[u8]) -> Self {
        self.key(key);
        self.0.extend_from_slice(json);
        self
    }

    fn key(&mut self, key: &str) {
        if self.0.len() > 1 {
            self.0.push(b',');
        }
        self.0.push(b'"');
        self.0.extend_from_slice(key.as_bytes());
        self.0.extend_from_slice(b"\":");
    }

    fn closed(mut self) -> Vec<u8> {
        self.0.push(b'}');
        self.0
    }
}

pub fn mailbox_path(mailbox: &Mailbox) -> String {
    match &mailbox.session {
        Some(session) => format!("{}:{}", mailbox.agent, session),
        None => mailbox.agent.to_string(),
    }
}
