//! The one form of everything on the stream.

use parlor_model::{AgentId, Ordinal, Position, RoomId, Time};
use serde::Serialize;
use serde_json::Value;

/// `UiSseMessage`: what is absent is left out.
#[derive(Debug, Clone, Serialize)]
pub struct UiMessage<'a> {
    /// What is told again under the same id takes the place of what was told before.
    pub id: String,
    pub seq: u64,
    /// Counts what was told under this id.
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
    /// Numbered and dated when it is written.
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

    /// The folder that its room is about.
    pub fn with_root(self, root: Option<&'a str>) -> Self {
        Self { project_root: root, ..self }
    }

    pub fn data(self, data: Value) -> Self {
        Self { data: Some(data), ..self }
    }

    /// As its reader gets it; with a position if it is the last of something that is in the log.
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
        serde_json::to_writer(&mut written, &self).expect("texts, numbers and lists of them");
        written.extend_from_slice(form.after().as_bytes());
        String::from_utf8(written).expect("JSON is UTF-8")
    }
}

/// How the same is told: as blocks of `GET /api/events`, or as frames of a socket.
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
