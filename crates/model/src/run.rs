//! One turn of an agent, from the message that set it off to its outcome.
//!
//! Owns: only legal transitions; what has ended stays ended.

use crate::{AgentId, Lineage, MessageId, Payload, RoomId, RunId, TaskId, Time, UserId};
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    pub id: RunId,
    pub agent: AgentId,
    pub room: RoomId,
    /// What it answers; absent when the agent spoke up by itself.
    pub trigger: Option<MessageId>,
    /// What it is to do, where it was set off by a task.
    pub task: Option<TaskId>,
    /// The agent that addressed it, if it was one.
    pub asked_by: Option<AgentId>,
    /// Who came and is to be greeted, where that set it off.
    pub arrival: Option<UserId>,
    pub addressed: AddressedBy,
    pub lineage: Lineage,
    /// The turn in which it was addressed.
    pub parent: Option<RunId>,
    pub state: RunState,
    /// What it said, once that is stored.
    pub reply: Option<MessageId>,
    pub usage: Usage,
    pub queued_at: Time,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunState {
    /// Waits for the agent to be free, or to be there at all.
    Queued,
    /// Handed to the agent.
    Running,
    Ended(RunOutcome),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunOutcome {
    Complete,
    /// It could not be kept or told, for this reason.
    Failed(Box<str>),
    /// A person said stop, or froze the room.
    Cancelled,
    /// The agent was lost while it spoke.
    Interrupted,
    /// It never began, for this reason.
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
    /// Why there was no turn, or no reply that could be kept.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Refused(reason) | Self::Failed(reason) => Some(reason),
            _ => None,
        }
    }
}

/// How the agent came to be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressedBy {
    /// By name.
    Directly,
    /// By the policy of the room.
    ByPolicy,
    /// Not at all.
    Unasked,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Millionths of a dollar, if the agent says so.
    pub cost: Option<u64>,
}

/// How a message came about that an agent said in a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOutput {
    pub run: RunId,
    pub outcome: RunOutcome,
    /// Empty where they would only repeat the text.
    pub chunks: Vec<Chunk>,
}

/// The run is not in a state from which this can happen.
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

    /// What it answers was taken up in another turn of the same agent, and is answered there.
    pub fn joined(&self, into: &Run, now: Time) -> Result<Self, IllegalTransition> {
        let together = self.agent == into.agent && self.room == into.room && self.id != into.id;
        match self.state {
            RunState::Queued if together && into.started_at.is_some() => Ok(Self {
                state: RunState::Ended(RunOutcome::Complete),
                parent: Some(into.id.clone()),
                started_at: Some(now),
                ended_at: Some(now),
                ..self.clone()
            }),
            _ => Err(IllegalTransition),
        }
    }

    /// Whether it never was a turn of its own: what it was about was taken into another while that ran. An agent does not
    /// set itself off.
    pub fn is_part_of(&self, other: &Run) -> bool {
        let into = self.parent.as_ref() == Some(&other.id) && self.agent == other.agent;
        into && self.asked_by.is_none() && self.task.is_none()
    }

    /// A turn that never began cannot have been completed, and one that began cannot be refused.
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

/// A piece of what an agent says while it says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    pub kind: ChunkKind,
    pub content: Arc<str>,
    /// A JSON object that passes through as it came.
    pub metadata: Option<Payload>,
}

impl Chunk {
    pub fn length(&self) -> usize {
        self.content.len() + self.metadata.as_ref().map_or(0, |metadata| metadata.0.len())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

    /// Whether neighbours of this kind are one text that came in pieces.
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

    /// Which outcomes a run can have from where it stands.
    fn possible(run: &Run) -> Vec<&'static str> {
        let legal =
            outcomes().into_iter().filter(|outcome| run.ended(outcome.clone(), None, Time(3)).is_ok());
        legal.map(|outcome| outcome.as_str()).collect()
    }

    #[test]
    fn a_run_is_queued_then_runs_then_ends() {
        let running = queued().started(Time(2)).unwrap();
        assert_eq!(possible(&queued()), ["cancelled", "refused"]);
        assert_eq!(possible(&running), ["complete", "failed", "cancelled", "interrupted"]);
        assert_eq!(running.started(Time(3)), Err(IllegalTransition));
    }

    #[test]
    fn what_waits_is_taken_up_by_a_turn_of_the_same_agent_in_the_same_room_once() {
        let running = queued().started(Time(2)).unwrap();
        let waiting = Run { id: RunId::stored("next"), ..queued() };
        let joined = waiting.joined(&running, Time(3)).unwrap();
        assert_eq!(
            (&joined.state, joined.parent.as_ref()),
            (&RunState::Ended(RunOutcome::Complete), Some(&running.id))
        );
        assert_eq!(joined.joined(&running, Time(4)), Err(IllegalTransition), "it is over");
        assert_eq!(running.joined(&running, Time(4)), Err(IllegalTransition), "it runs by itself");
        assert_eq!(waiting.joined(&queued(), Time(4)), Err(IllegalTransition), "that one has not begun");
        let elsewhere = Run { room: RoomId::stored("other"), ..running.clone() };
        assert_eq!(waiting.joined(&elsewhere, Time(4)), Err(IllegalTransition));
        let another = Run { agent: AgentId::stored("another"), ..running };
        assert_eq!(waiting.joined(&another, Time(4)), Err(IllegalTransition));
    }

    #[test]
    fn what_has_ended_stays_ended() {
        let running = queued().started(Time(2)).unwrap();
        for outcome in outcomes() {
            let Ok(ended) = running.ended(outcome, None, Time(3)) else { continue };
            assert!(ended.has_ended());
            assert_eq!(possible(&ended), [""; 0]);
            assert_eq!(ended.started(Time(4)), Err(IllegalTransition));
        }
    }
}
