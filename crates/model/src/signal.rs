//! Signals: ephemeral notifications. They have no `Seq`, are not logged, and are dropped first for a slow
//! consumer, except the changes of presence sets.

use crate::run_event::Activity;
use crate::{
    AgentId, Chunk, InquiryAnswer, MessageId, Occupant, OccupantChange, Ordinal, Path, RoomId, RunEvent,
    RunId, RunPlace, Time, UserId,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Signal {
    Typing {
        room: RoomId,
        user: UserId,
        username: Box<str>,
    },
    Presence {
        user: UserId,
        username: Box<str>,
        online: bool,
    },
    /// Part of a streaming reply. Chunks queued for a slow consumer are merged into one.
    Chunk {
        place: RunPlace,
        agent: AgentId,
        agent_name: Box<str>,
        message: MessageId,
        chunk: Chunk,
        /// Whether the chunk starts at the beginning of the reply. A client that already has part of the
        /// reply discards it.
        first: bool,
    },
    /// Part of a streaming reply, merged for subscribers that receive no single chunks.
    Reply {
        room: RoomId,
        agent: AgentId,
        agent_name: Box<str>,
        /// Owner of the agent.
        owner: UserId,
        /// Connection that publishes the reply, if it also subscribes to the room.
        connection: Option<Box<str>>,
        message: MessageId,
        part: ReplyPart,
    },
    /// A user requested the agents of this name, or all agents of the room, to end.
    AgentsDismissed {
        room: RoomId,
        by: UserId,
        username: Box<str>,
        agent_name: Option<Box<str>>,
    },
    /// The user was added to a room or has lost one.
    RoomsChanged {
        user: UserId,
    },
    /// Output of an agent's terminal, sanitised for display.
    Terminal {
        room: RoomId,
        agent: AgentId,
        agent_name: Box<str>,
        data: Box<str>,
    },
    AgentStatus {
        agent: AgentId,
        name: Box<str>,
        /// Kind of the agent as named by its gateway.
        kind: Box<str>,
        model: Option<Box<str>>,
        status: AgentStatus,
        queue_depth: u32,
    },
    /// Structured report of a run, such as a plan, a question set or usage.
    RunEvent {
        run: RunId,
        place: RunPlace,
        agent: AgentId,
        event: Arc<RunEvent>,
        /// Number of run events of this type in the run so far, including this one.
        rev: u64,
    },
    /// Current activity of an agent in a run, reported by the agent or inferred from its chunks.
    Activity {
        run: RunId,
        place: RunPlace,
        agent: AgentId,
        activity: Activity,
        detail: Option<Box<str>>,
        /// Subagent that performs the activity; `None` for the agent itself.
        subagent: Option<Box<str>>,
        /// Ordinal of the first signal of the activity; identifies the activity until it ends.
        began: Ordinal,
        /// Number of signals of the activity so far, including this one.
        rev: u64,
        /// Whether the activity has ended.
        done: bool,
    },
    /// The complete backlog of an agent in a room, in order.
    Queue {
        room: RoomId,
        agent: AgentId,
        items: Arc<[QueuedMessage]>,
        rev: u64,
    },
    /// Answer to an inquiry or gateway request of the receiving user.
    Answered(Box<InquiryAnswer>),
    /// State may have changed that no other item reports; the client should reload it.
    Refresh,
    /// A rewind deleted a message and all later ones. Carries the text of the message, so that the user can
    /// post an edited version.
    Rewound {
        room: RoomId,
        message: MessageId,
        removed: Vec<MessageId>,
        text: Arc<str>,
    },
    /// A member of a place's presence set entered, changed or left.
    Occupant {
        place: Path,
        change: OccupantChange,
        occupant: Arc<Occupant>,
    },
}

impl Signal {
    /// Returns the bytes of all texts of the signal.
    pub fn length(&self) -> usize {
        match self {
            Self::Typing { username, .. } | Self::Presence { username, .. } => username.len(),
            Self::Chunk { agent_name, chunk, .. } => agent_name.len() + chunk.length(),
            Self::Reply { agent_name, part, .. } => agent_name.len() + part.length(),
            Self::AgentsDismissed { username, agent_name, .. } => {
                username.len() + agent_name.as_ref().map_or(0, |name| name.len())
            }
            Self::Terminal { agent_name, data, .. } => agent_name.len() + data.len(),
            Self::AgentStatus { name, kind, model, .. } => {
                name.len() + kind.len() + model.as_ref().map_or(0, |model| model.len())
            }
            Self::RunEvent { event, .. } => event.length(),
            Self::Activity { detail, subagent, .. } => {
                detail.iter().chain(subagent).map(|text| text.len()).sum()
            }
            Self::Queue { items, .. } => items.iter().map(QueuedMessage::length).sum(),
            Self::Answered(answer) => answer.body.0.len(),
            Self::Refresh | Self::RoomsChanged { .. } => 0,
            Self::Rewound { removed, text, .. } => {
                text.len() + removed.iter().map(|message| message.as_str().len()).sum::<usize>()
            }
            Self::Occupant { occupant, .. } => occupant.length(),
        }
    }

    /// Returns the room of the signal, if it has one.
    pub fn room(&self) -> Option<&RoomId> {
        match self {
            Self::Typing { room, .. }
            | Self::Reply { room, .. }
            | Self::AgentsDismissed { room, .. }
            | Self::Terminal { room, .. }
            | Self::Queue { room, .. }
            | Self::Rewound { room, .. } => Some(room),
            Self::Chunk { place, .. } | Self::RunEvent { place, .. } | Self::Activity { place, .. } => {
                place.room()
            }
            Self::Presence { .. }
            | Self::AgentStatus { .. }
            | Self::Answered(_)
            | Self::Refresh
            | Self::RoomsChanged { .. }
            | Self::Occupant { .. } => None,
        }
    }
}

/// Part of a streaming reply in [`Signal::Reply`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReplyPart {
    /// The agent has started the reply.
    Started,
    /// Text that follows the previous parts.
    Text(Arc<str>),
    /// The run ended without a complete reply, for this reason.
    Failed(Box<str>),
}

impl ReplyPart {
    fn length(&self) -> usize {
        match self {
            Self::Started => 0,
            Self::Text(text) => text.len(),
            Self::Failed(reason) => reason.len(),
        }
    }
}

/// A queued run in an agent's backlog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedMessage {
    pub run: RunId,
    pub message: Option<MessageId>,
    /// Beginning of the text of its trigger.
    pub preview: Box<str>,
    pub at: Time,
}

impl QueuedMessage {
    /// Returns the approximate size in memory, in bytes.
    fn length(&self) -> usize {
        size_of::<Self>() + self.preview.len()
    }

    /// Maximum length of a preview, in characters.
    const PREVIEW_CHARS: usize = 100;

    /// Preview of a text.
    pub fn preview_of(text: &str) -> Box<str> {
        text.chars().take(Self::PREVIEW_CHARS).collect::<String>().into()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AgentStatus {
    Online,
    Offline,
    Busy,
    Error,
}

impl AgentStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Online => "online",
            Self::Offline => "offline",
            Self::Busy => "busy",
            Self::Error => "error",
        }
    }
}
