//! Commands on runs, and their receipts. Messages and tasks that address an agent create runs; the scheduler
//! starts and ends them.

use crate::{
    AgentId, Chunk, Member, Message, MessageId, Origin, Room, RoomId, Run, RunId, RunOutcome, SessionId,
    Task, Usage,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Starts a queued run, or ends it as refused because its conditions have changed since it was queued.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartRun {
    pub run: RunId,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum RunStart {
    Started(Box<StartedRun>),
    /// The run has ended as refused.
    Refused(Arc<Run>),
}

/// A started run with the context that its agent needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StartedRun {
    pub run: Arc<Run>,
    pub prompt: RunTrigger,
    /// Room of the run, if it has one.
    pub room: Option<Arc<Room>>,
    /// Members of the room.
    pub members: Arc<[Member]>,
}

/// Cause of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum RunTrigger {
    Message(Arc<Message>),
    Task(Arc<Task>),
    /// A user joined the room and is to be greeted.
    Arrival {
        name: Box<str>,
    },
    /// Prompt of a run in a session.
    Prompt(Arc<str>),
}

/// Queues a run in a session, and creates the session if the agent does not have it. Returns the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartTurn {
    pub agent: AgentId,
    pub session: SessionId,
    pub cause: TurnCause,
}

/// Why a run in a session is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TurnCause {
    /// The owner of the agent, or a site admin, requests it.
    Explicit { prompt: Arc<str> },
    /// Messages of the session's mailbox, oldest first, which the hub itself has leased.
    Batch {
        messages: Vec<MessageId>,
        /// Number of runs for these messages so far, including this one.
        attempt: u32,
    },
}

/// Stops the active run in a session of an agent and cancels its queued runs there. Returns those runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopSession {
    pub agent: AgentId,
    pub session: SessionId,
}

/// Merges a queued run into an active run of the same agent in the same context, after its message was injected there.
/// Returns the merged run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeRun {
    pub run: RunId,
    pub into: RunId,
}

/// Stops the active run of an agent in a room and cancels its queued runs there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopRuns {
    pub room: RoomId,
    pub agent: AgentId,
}

/// Cancels queued runs in a room: all of them, those of one agent, or a single run. The messages that triggered
/// them stay. Returns the cancelled runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WithdrawRuns {
    pub room: RoomId,
    pub agent: Option<AgentId>,
    pub run: Option<RunId>,
}

/// Cancels a run and all its descendants, with the other runs of agents that are stopped by it. Returns those of
/// the run and its descendants that had not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelRun {
    pub run: RunId,
}

/// Starts a run for an agent that sends a reply without a trigger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartUnpromptedRun {
    pub agent: AgentId,
    pub room: RoomId,
}

/// Ends a queued or active run, and posts its reply. Returns the ended run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinishRun {
    pub run: RunId,
    pub outcome: RunOutcome,
    pub said: Option<AgentReply>,
}

/// Posts the reply of an agent whose run ended before the reply arrived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PostLateReply {
    pub agent: AgentId,
    pub room: RoomId,
    pub said: AgentReply,
    /// The ended run, if the gateway names runs.
    pub run: Option<RunId>,
}

/// Stores the usage of a run, which replaces an earlier report. Returns the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportUsage {
    pub run: RunId,
    pub usage: Usage,
}

/// Reply of an agent in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentReply {
    /// Message id chosen by the gateway. Makes a retry idempotent.
    pub message: Option<MessageId>,
    pub text: Arc<str>,
    pub chunks: Vec<Chunk>,
    /// Name or id of a member to mention, in addition to the mentions in the text.
    pub target: Option<Box<str>>,
    /// Depth of the agent chain as claimed by the gateway. It can only raise the depth that the hub computed.
    pub claimed_depth: u32,
    /// Names of agents that the gateway claims to be in the chain. The hub adds the claimed agents of the room to the
    /// chain that it computed.
    pub claimed_chain: Vec<Box<str>>,
    /// Connection that published the reply.
    pub origin: Option<Box<Origin>>,
}

impl AgentReply {
    pub fn is_empty(&self) -> bool {
        self.text.trim().is_empty() && self.chunks.is_empty()
    }
}
