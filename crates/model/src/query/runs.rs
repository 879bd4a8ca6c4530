//! Queries about runs, and their answers.

use crate::{AgentId, Inquiry, MessageId, QueuedMessage, RoomId, RoomSelection, Run, RunId, RunPlace};
use serde::{Deserialize, Serialize};

/// A run with the name of its agent.
pub type NamedRun = (Run, Box<str>);

/// A run, active or ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetRun {
    pub run: RunId,
}

/// Runs that a run triggered, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListChildRuns {
    pub run: RunId,
}

/// Message that triggered a run, and the reply of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetRunMessages {
    pub run: RunId,
}

/// Newest runs of the selected rooms, or of all rooms of the caller and of the sessions of the caller's agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListRuns {
    pub rooms: RoomSelection,
    pub limit: usize,
}

/// Runs triggered by a message, including refused runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListRunsOfMessage {
    pub message: MessageId,
}

/// Runs of an agent in the caller's rooms and, for the owner of the agent, in its sessions: queued and active runs first, then the latest ended runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListRunsOfAgent {
    pub agent: AgentId,
    pub limit: usize,
}

/// Queued runs in a room, or in all rooms of the caller and the sessions of the caller's agents, oldest first in each
/// place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListQueue {
    pub room: Option<RoomId>,
}

/// A queued run of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueEntry {
    pub agent: AgentId,
    pub place: RunPlace,
    pub item: QueuedMessage,
}

/// Checks whether the caller may send this inquiry to an agent, in a room or outside any room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MayInquire {
    pub agent: AgentId,
    pub room: Option<RoomId>,
    pub inquiry: Inquiry,
}
