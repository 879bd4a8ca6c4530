//! News that may be lost: no `Seq`, not in the log, dropped first when a reader falls behind.

use crate::run_event::Activity;
use crate::{AgentId, Chunk, InquiryAnswer, MessageId, Ordinal, RoomId, RunEvent, RunId, Time, UserId};
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// What an agent says while it says it. Pieces that waited for a slow reader come as one.
    Chunk {
        room: RoomId,
        agent: AgentId,
        agent_name: Box<str>,
        message: MessageId,
        chunk: Chunk,
        /// Nothing of the reply comes before it: a reader who has some of it already begins anew.
        first: bool,
    },
    /// What the terminal of an agent shows, as it may be shown.
    Terminal {
        room: RoomId,
        agent: AgentId,
        agent_name: Box<str>,
        data: Box<str>,
    },
    AgentStatus {
        agent: AgentId,
        name: Box<str>,
        /// Whatever its host calls it.
        kind: Box<str>,
        model: Option<Box<str>>,
        status: AgentStatus,
        queue_depth: u32,
    },
    /// What happens in a turn besides its words: a plan, a question, usage.
    RunEvent {
        run: RunId,
        room: RoomId,
        agent: AgentId,
        event: Arc<RunEvent>,
        /// How many of its kind the turn told of, with this one.
        rev: u64,
    },
    /// What an agent is at in a turn, as it says or as it shows.
    Activity {
        run: RunId,
        room: RoomId,
        agent: AgentId,
        activity: Activity,
        detail: Option<Box<str>>,
        /// Whose it is, if not the agent's own.
        subagent: Option<Box<str>>,
        /// Names it from its beginning to its end.
        began: Ordinal,
        /// How often it was told, with this.
        rev: u64,
        done: bool,
    },
    /// What waits for an agent in a room, all of it, in order.
    Queue {
        room: RoomId,
        agent: AgentId,
        items: Arc<[QueuedMessage]>,
        rev: u64,
    },
    Answered(Box<InquiryAnswer>),
    /// Something may have changed that is not told by itself: look again.
    Refresh,
    /// Everything from a message on was taken back; with what it said, so that it can be said otherwise.
    Rewound {
        room: RoomId,
        message: MessageId,
        removed: Vec<MessageId>,
        text: Arc<str>,
    },
}

impl Signal {
    /// Where it happens, if in a room.
    pub fn room(&self) -> Option<&RoomId> {
        match self {
            Self::Typing { room, .. }
            | Self::Chunk { room, .. }
            | Self::Terminal { room, .. }
            | Self::RunEvent { room, .. }
            | Self::Activity { room, .. }
            | Self::Queue { room, .. }
            | Self::Rewound { room, .. } => Some(room),
            Self::Presence { .. } | Self::AgentStatus { .. } | Self::Answered(_) | Self::Refresh => None,
        }
    }
}

/// A message that waits for an agent to be free.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedMessage {
    pub run: RunId,
    pub message: Option<MessageId>,
    /// How it begins.
    pub preview: Box<str>,
    pub at: Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
