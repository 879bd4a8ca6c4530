//! Runs: one execution of an agent, from its trigger to its outcome.
//!
//! Owns: the legal state transitions. An ended run never changes its state again.

use crate::{AgentId, Lineage, MessageId, Payload, RoomId, RunId, TaskId, Time, UserId};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    pub id: RunId,
    pub agent: AgentId,
    pub room: RoomId,
    /// Message that triggered the run; `None` for runs triggered by a task or an arrival, and for unprompted
    /// runs.
    pub trigger: Option<MessageId>,
    /// Task that triggered the run.
    pub task: Option<TaskId>,
    /// Agent that addressed this agent; `None` if a user or an external source did.
    pub asked_by: Option<AgentId>,
    /// User that joined the room and is to be greeted, if that triggered the run.
    pub arrival: Option<UserId>,
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
    pub fn has_ended(&self) -> bool {
        matches!(self.state, RunState::Ended(_))
    }

    pub fn started(&self, now: Time) -> Result<Self, IllegalTransition> {
        match self.state {
            RunState::Queued => Ok(Self { state: RunState::Running, started_at: Some(now), ..self.clone() }),
            RunState::Running | RunState::Ended(_) => Err(IllegalTransition),
        }
    }

    /// Merges this queued run into `into`, a started run of the same agent and room whose reply covers both
    /// triggers.
    pub fn joined(&self, into: &Run, now: Time) -> Result<Self, IllegalTransition> {
        let mergeable = self.agent == into.agent && self.room == into.room && self.id != into.id;
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
        into && self.asked_by.is_none() && self.task.is_none()
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
            room: RoomId::stored("room"),
            trigger: None,
            task: None,
            asked_by: None,
            arrival: None,
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
    fn a_queued_run_merges_once_into_a_run_of_the_same_agent_and_room() {
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
        let elsewhere = Run { room: RoomId::stored("other"), ..running.clone() };
        assert_eq!(waiting.joined(&elsewhere, Time(4)), Err(IllegalTransition));
        let another = Run { agent: AgentId::stored("another"), ..running };
        assert_eq!(waiting.joined(&another, Time(4)), Err(IllegalTransition));
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
