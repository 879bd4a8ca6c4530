//! Runs: one execution of an agent, from its trigger to its outcome.
//!
//! Owns: the legal state transitions. An ended run never changes its state again.

use crate::{
    AgentId, EventScope, Lineage, MessageId, Payload, RoomId, RunId, SessionId, TaskId, Time, UserId,
};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    pub id: RunId,
    pub agent: AgentId,
    pub place: RunPlace,
    pub cause: RunCause,
    /// Agent that addressed this agent; `None` if a user or an external source did.
    pub asked_by: Option<AgentId>,
    pub addressed: AddressedBy,
    pub lineage: Lineage,
    /// Run in which another agent triggered this run, or active run into which this run was merged.
    pub parent: Option<RunId>,
    pub state: RunState,
    /// Message with the reply, once it is stored.
    pub reply: Option<MessageId>,
    pub usage: Usage,
    /// Whether a user has requested the stop of the run. An active run ends when its gateway confirms the stop.
    pub stop_requested: bool,
    pub queued_at: Time,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
}

/// Where a run takes place: its conversational context, and the connections that receive its events and signals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunPlace {
    Room(RoomId),
    /// A session of the run's agent. With a room, the reply is posted there, and its members receive the events and
    /// signals; without a room, only the owner of the agent receives them.
    Session {
        session: SessionId,
        room: Option<RoomId>,
        /// Owner of the agent.
        owner: UserId,
    },
}

impl RunPlace {
    /// Returns the room of the events, signals and reply of the run.
    pub fn room(&self) -> Option<&RoomId> {
        match self {
            Self::Room(room) => Some(room),
            Self::Session { room, .. } => room.as_ref(),
        }
    }

    pub fn session(&self) -> Option<&SessionId> {
        match self {
            Self::Room(_) => None,
            Self::Session { session, .. } => Some(session),
        }
    }

    pub fn context(&self) -> RunContext {
        match self {
            Self::Room(room) => RunContext::Room(room.clone()),
            Self::Session { session, .. } => RunContext::Session(session.clone()),
        }
    }

    pub fn is_in(&self, context: &RunContext) -> bool {
        match (self, context) {
            (Self::Room(room), RunContext::Room(other)) => room == other,
            (Self::Session { session, .. }, RunContext::Session(other)) => session == other,
            (Self::Room(_), RunContext::Session(_)) | (Self::Session { .. }, RunContext::Room(_)) => false,
        }
    }

    /// Returns the connections that receive the events and signals of the run.
    pub fn scope(&self) -> EventScope<'_> {
        match self {
            Self::Room(room) | Self::Session { room: Some(room), .. } => EventScope::Room(room),
            Self::Session { room: None, owner, .. } => EventScope::Owner(owner),
        }
    }

    /// Returns the size in memory that exceeds the struct, in bytes.
    pub fn length(&self) -> usize {
        let ids = [self.room().map(RoomId::as_str), self.session().map(SessionId::as_str)];
        ids.into_iter().flatten().map(str::len).sum()
    }
}

/// Conversational context of an agent: what the agent remembers of earlier runs. Runs of an agent in one context are
/// executed one after the other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum RunContext {
    Room(RoomId),
    Session(SessionId),
}

impl RunContext {
    pub fn room(&self) -> Option<&RoomId> {
        match self {
            Self::Room(room) => Some(room),
            Self::Session(_) => None,
        }
    }

    pub fn session(&self) -> Option<&SessionId> {
        match self {
            Self::Room(_) => None,
            Self::Session(session) => Some(session),
        }
    }
}

impl fmt::Display for RunContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Room(room) => write!(f, "room {room}"),
            Self::Session(session) => write!(f, "session {session}"),
        }
    }
}

/// Why a run was created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunCause {
    /// A message in the room that addresses the agent.
    Message(MessageId),
    /// A task that is assigned to the agent.
    Task(TaskId),
    /// A user joined the room and is to be greeted.
    Arrival(UserId),
    /// Messages of the session's mailbox, oldest first. The run holds their lease.
    Batch {
        messages: Vec<MessageId>,
        /// Number of runs for these messages so far, including this one.
        attempt: u32,
    },
    /// A request of a user who may act for the agent.
    Explicit { prompt: Arc<str>, by: UserId },
    /// The agent started the run itself.
    Unprompted,
}

impl RunCause {
    /// Maximum characters of the prompt of [`RunCause::Explicit`].
    pub const MAX_PROMPT_CHARS: usize = 100_000;
    /// Maximum number of messages of [`RunCause::Batch`].
    pub const MAX_BATCH: usize = 100;
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunState {
    /// Waits until the agent is online and idle.
    Queued,
    /// Sent to the agent.
    Running,
    Ended(RunOutcome),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunOutcome {
    Complete,
    /// The agent failed or its reply could not be stored, for this reason.
    Failed(Box<str>),
    /// A user cancelled the run or froze the room.
    Cancelled,
    /// The agent or its gateway went offline during the run, and the run was not resumed.
    Interrupted,
    /// The run was never started, for this reason.
    Refused(Box<str>),
}

impl RunOutcome {
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Failed(_) => "failed",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
            Self::Refused(_) => "refused",
        }
    }
}

impl RunOutcome {
    /// Returns the reason of a refused or failed run.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Refused(reason) | Self::Failed(reason) => Some(reason),
            _ => None,
        }
    }
}

/// How the trigger selected the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AddressedBy {
    /// The trigger names the agent.
    Directly,
    /// The answer policy of the room selected the agent.
    ByPolicy,
    /// The agent started the run without a trigger.
    Unasked,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Cost in millionths of a US dollar; `None` if the agent does not report it.
    pub cost: Option<u64>,
}

/// Run, outcome and chunks of a message that an agent sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunOutput {
    pub run: RunId,
    pub outcome: RunOutcome,
    /// Chunks of the reply. Empty if they contain only the message text.
    pub chunks: Vec<Chunk>,
}

/// The requested state transition is not legal in the current state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IllegalTransition;

impl Run {
    /// Returns the room of the run, if it has one.
    pub fn room(&self) -> Option<&RoomId> {
        self.place.room()
    }

    /// Returns the session of the run, if it takes place in one.
    pub fn session(&self) -> Option<&SessionId> {
        self.place.session()
    }

    /// Returns the message of the room that triggered the run.
    pub fn message(&self) -> Option<&MessageId> {
        match &self.cause {
            RunCause::Message(message) => Some(message),
            _ => None,
        }
    }

    /// Returns the task that triggered the run.
    pub fn task(&self) -> Option<&TaskId> {
        match &self.cause {
            RunCause::Task(task) => Some(task),
            _ => None,
        }
    }

    /// Returns the user whose arrival triggered the run.
    pub fn arrival(&self) -> Option<&UserId> {
        match &self.cause {
            RunCause::Arrival(user) => Some(user),
            _ => None,
        }
    }

    pub fn has_ended(&self) -> bool {
        matches!(self.state, RunState::Ended(_))
    }

    pub fn started(&self, now: Time) -> Result<Self, IllegalTransition> {
        match self.state {
            RunState::Queued => Ok(Self { state: RunState::Running, started_at: Some(now), ..self.clone() }),
            RunState::Running | RunState::Ended(_) => Err(IllegalTransition),
        }
    }

    /// Merges this queued run into `into`, a started run of the same agent in the same context, whose reply covers both
    /// triggers.
    pub fn joined(&self, into: &Run, now: Time) -> Result<Self, IllegalTransition> {
        let is_same_context = self.agent == into.agent && self.place.context() == into.place.context();
        let mergeable = is_same_context && self.id != into.id;
        match self.state {
            RunState::Queued if mergeable && into.started_at.is_some() => Ok(Self {
                state: RunState::Ended(RunOutcome::Complete),
                parent: Some(into.id.clone()),
                started_at: Some(now),
                ended_at: Some(now),
                ..self.clone()
            }),
            _ => Err(IllegalTransition),
        }
    }

    /// Returns whether this run was merged into `other` and never executed on its own. An agent cannot
    /// trigger itself, so a parent run of the same agent implies a merge.
    pub fn is_part_of(&self, other: &Run) -> bool {
        let into = self.parent.as_ref() == Some(&other.id) && self.agent == other.agent;
        into && self.asked_by.is_none() && self.task().is_none()
    }

    /// Ends the run. A run that never started cannot complete, and a started run cannot be refused.
    pub fn ended(
        &self,
        outcome: RunOutcome,
        reply: Option<MessageId>,
        now: Time,
    ) -> Result<Self, IllegalTransition> {
        let legal = match (&self.state, &outcome) {
            (RunState::Queued, RunOutcome::Cancelled | RunOutcome::Refused(_)) => reply.is_none(),
            (RunState::Running, RunOutcome::Refused(_)) => false,
            (RunState::Running, _) => true,
            (RunState::Queued | RunState::Ended(_), _) => false,
        };
        if !legal {
            return Err(IllegalTransition);
        }
        Ok(Self { state: RunState::Ended(outcome), reply, ended_at: Some(now), ..self.clone() })
    }
}

/// Part of a streaming reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    pub kind: ChunkKind,
    pub content: Arc<str>,
    /// JSON object, relayed unchanged.
    pub metadata: Option<Payload>,
}

impl Chunk {
    /// Returns the size of content and metadata, in bytes.
    pub fn length(&self) -> usize {
        self.content.len() + self.metadata.as_ref().map_or(0, |metadata| metadata.0.len())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChunkKind {
    Text,
    Thinking,
    ToolUse,
    ToolResult,
    Error,
    WorkspaceStatus,
}

impl ChunkKind {
    const ALL: [Self; 6] =
        [Self::Text, Self::Thinking, Self::ToolUse, Self::ToolResult, Self::Error, Self::WorkspaceStatus];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Thinking => "thinking",
            Self::ToolUse => "tool_use",
            Self::ToolResult => "tool_result",
            Self::Error => "error",
            Self::WorkspaceStatus => "workspace_status",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// Returns whether adjacent chunks of this kind are concatenated to one chunk.
    pub fn is_mergeable(self) -> bool {
        matches!(self, Self::Text | Self::Thinking)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ConversationId;

    fn queued() -> Run {
        let agent = AgentId::parse("coder").unwrap();
        Run {
            id: RunId::stored("run"),
            agent: agent.clone(),
            place: RunPlace::Room(RoomId::stored("room")),
            cause: RunCause::Unprompted,
            asked_by: None,
            addressed: AddressedBy::Directly,
            lineage: Lineage::start(ConversationId::stored("c"), agent),
            parent: None,
            state: RunState::Queued,
            reply: None,
            usage: Usage::default(),
            stop_requested: false,
            queued_at: Time(1),
            started_at: None,
            ended_at: None,
        }
    }

    fn outcomes() -> [RunOutcome; 5] {
        let refused = RunOutcome::Refused("frozen".into());
        [
            RunOutcome::Complete,
            RunOutcome::Failed("too long".into()),
            RunOutcome::Cancelled,
            RunOutcome::Interrupted,
            refused,
        ]
    }

    /// Outcomes that are legal in the current state of the run.
    fn legal_outcomes(run: &Run) -> Vec<&'static str> {
        let legal =
            outcomes().into_iter().filter(|outcome| run.ended(outcome.clone(), None, Time(3)).is_ok());
        legal.map(|outcome| outcome.as_str()).collect()
    }

    #[test]
    fn a_run_is_queued_then_runs_then_ends() {
        let running = queued().started(Time(2)).unwrap();
        assert_eq!(legal_outcomes(&queued()), ["cancelled", "refused"]);
        assert_eq!(legal_outcomes(&running), ["complete", "failed", "cancelled", "interrupted"]);
        assert_eq!(running.started(Time(3)), Err(IllegalTransition));
    }

    #[test]
    fn a_queued_run_merges_once_into_a_run_of_the_same_agent_and_context() {
        let running = queued().started(Time(2)).unwrap();
        let waiting = Run { id: RunId::stored("next"), ..queued() };
        let joined = waiting.joined(&running, Time(3)).unwrap();
        assert_eq!(
            (&joined.state, joined.parent.as_ref()),
            (&RunState::Ended(RunOutcome::Complete), Some(&running.id))
        );
        assert_eq!(joined.joined(&running, Time(4)), Err(IllegalTransition), "the run has ended");
        assert_eq!(
            running.joined(&running, Time(4)),
            Err(IllegalTransition),
            "a run cannot merge into itself"
        );
        assert_eq!(waiting.joined(&queued(), Time(4)), Err(IllegalTransition), "the target has not started");
        let elsewhere = Run { place: RunPlace::Room(RoomId::stored("other")), ..running.clone() };
        assert_eq!(waiting.joined(&elsewhere, Time(4)), Err(IllegalTransition));
        let (session, room) = (SessionId::main(), Some(RoomId::stored("room")));
        let place = RunPlace::Session { session, room, owner: UserId::stored("ann") };
        let in_session = Run { place, ..running.clone() };
        assert_eq!(waiting.joined(&in_session, Time(4)), Err(IllegalTransition), "it has its own context");
        let another = Run { agent: AgentId::stored("another"), ..running };
        assert_eq!(waiting.joined(&another, Time(4)), Err(IllegalTransition));
    }

    #[test]
    fn a_session_keeps_its_context_when_its_room_changes() {
        let place = |room: Option<&str>| RunPlace::Session {
            session: SessionId::main(),
            room: room.map(RoomId::stored),
            owner: UserId::stored("ann"),
        };
        let (alone, posted) = (place(None), place(Some("room")));
        assert_eq!(alone.context(), posted.context());
        assert!(alone.is_in(&posted.context()) && !posted.is_in(&RunContext::Room(RoomId::stored("room"))));
        assert_eq!(alone.scope(), EventScope::Owner(&UserId::stored("ann")));
        assert_eq!(posted.scope(), EventScope::Room(&RoomId::stored("room")));
    }

    #[test]
    fn an_ended_run_stays_ended() {
        let running = queued().started(Time(2)).unwrap();
        for outcome in outcomes() {
            let Ok(ended) = running.ended(outcome, None, Time(3)) else { continue };
            assert!(ended.has_ended());
            assert_eq!(legal_outcomes(&ended), [""; 0]);
            assert_eq!(ended.started(Time(4)), Err(IllegalTransition));
        }
    }
}
