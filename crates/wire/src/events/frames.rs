//! The message type of the chat-events stream, and its encoding for SSE and WebSocket.

use parlor_model::{AgentId, Ordinal, Position, RoomId, Time};
use serde::Serialize;
use serde_json::Value;

/// A message of the stream (`UiSseMessage`). Absent fields are omitted.
#[derive(Debug, Clone, Serialize)]
pub struct UiMessage<'a> {
    /// Id of the subject. A later message with the same id replaces the earlier one.
    pub id: String,
    /// Ordinal of the message.
    pub seq: u64,
    /// Revision: number of messages with this id so far.
    pub rev: u64,
    pub ts_ms: i64,
    pub kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_root: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl<'a> UiMessage<'a> {
    /// Creates a message without ordinal and time; [`UiMessage::write`] sets them.
    pub fn new(id: String, kind: &'static str) -> Self {
        let (phase, text, agent_id, session_id, project_root, data) = Default::default();
        Self { id, seq: 0, rev: 1, ts_ms: 0, kind, phase, text, agent_id, session_id, project_root, data }
    }

    pub fn phase(self, phase: &'static str) -> Self {
        Self { phase: Some(phase), ..self }
    }

    pub fn rev(self, rev: u64) -> Self {
        Self { rev, ..self }
    }

    pub fn text(self, text: &'a str) -> Self {
        Self { text: Some(text), ..self }
    }

    pub fn by_agent(self, agent: &'a AgentId) -> Self {
        Self { agent_id: Some(agent.as_str()), ..self }
    }

    pub fn in_room(self, room: &'a RoomId) -> Self {
        Self { session_id: Some(room.as_str()), ..self }
    }

    /// Sets the project root of the room.
    pub fn with_root(self, root: Option<&'a str>) -> Self {
        Self { project_root: root, ..self }
    }

    pub fn data(self, data: Value) -> Self {
        Self { data: Some(data), ..self }
    }

    /// Encodes the message. `position` is set for the last message of a logged event, so that a client can
    /// resume after it.
    pub fn write(
        mut self,
        form: StreamFormat,
        ordinal: Ordinal,
        at: Time,
        position: Option<Position>,
    ) -> String {
        (self.seq, self.ts_ms) = (ordinal.0, at.0.div_euclid(1000));
        let mut written = Vec::with_capacity(384 + self.text.map_or(0, str::len));
        written.extend_from_slice(form.before(position).as_bytes());
        serde_json::to_writer(&mut written, &self).expect("consists of strings, numbers and lists");
        written.extend_from_slice(form.after().as_bytes());
        String::from_utf8(written).expect("JSON is UTF-8")
    }
}

/// Encoding of the stream: SSE blocks of `GET /api/events`, or WebSocket frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StreamFormat {
    #[default]
    Block,
    Frame,
}

impl StreamFormat {
    fn before(self, position: Option<Position>) -> String {
        match (self, position) {
            (Self::Block, None) => "data: ".into(),
            (Self::Block, Some(position)) => format!("id: {position}\ndata: "),
            (Self::Frame, None) => r#"{"type":"server:event","event":"#.into(),
            (Self::Frame, Some(position)) => {
                format!(r#"{{"type":"server:event","position":"{position}","event":"#)
            }
        }
    }

    fn after(self) -> &'static str {
        match self {
            Self::Block => "\n\n",
            Self::Frame => "}",
        }
    }
}
