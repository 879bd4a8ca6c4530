//! Deletes a message and every later message of its room, and cancels the open runs there.

use super::deletion::delete;
use crate::commands::approvals::withdrawal::{audit_withdrawn, withdraw};
use crate::commands::{Command, runs};
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError, SeenMessage};
use crate::ports::OpenApprovalsOf;
use crate::read_view::WriterView;
use parlor_model::command::{RewindResult, RewindRoom};
use parlor_model::{
    Agent, Approval, EntityKind, Field, Message, Refusal, RoomRole, Run, RunOutcome, Scope, Sender, Seq,
    UserId,
};
use std::sync::Arc;

/// Maximum number of messages that one rewind deletes.
const MAX_REWOUND_MESSAGES: usize = 1000;
/// Capability of agents that can forget a part of their conversation.
const REWIND_CAPABILITY: &str = "rewind";

pub struct Facts {
    /// The message to rewind to.
    target: Arc<Message>,
    /// The target and the messages after it, oldest first: at most one more than a rewind may delete.
    messages: Vec<Arc<Message>>,
    /// Queued and active runs in the room.
    open_runs: Vec<Run>,
    /// Open approvals in the room.
    approvals: Vec<Approval>,
    /// The agents in the room.
    agents: Vec<Arc<Agent>>,
}

impl Command for RewindRoom {
    type Facts = Facts;
    type Receipt = RewindResult;

    /// Allowed for the sender of the message who may command agents in the room. The messages after it are
    /// deleted too: agents' replies always, messages of other users only by admins of the room.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let not_found = Refusal::NotFound(EntityKind::Message);
        let SeenMessage { caller, message: target, room, member } =
            view.seen_message(caller, &self.message, Scope::Write)?;
        if room != self.room {
            return Err(not_found.into());
        }
        let room = view.room(&room)?.ok_or(not_found)?;
        let user = &caller.user.id;
        if !is_own(&target, user) || member.role < room.agent_command_role {
            return Err(Refusal::Forbidden.into());
        }
        let messages = view.store.said_since(&room.id, target.seq, MAX_REWOUND_MESSAGES + 1)?;
        let is_answer = |message: &Message| matches!(message.sender, Sender::Agent(_));
        let of_others = messages.iter().any(|message| !is_own(message, user) && !is_answer(message));
        if of_others && member.role < RoomRole::Admin {
            return Err(Refusal::Forbidden.into());
        }
        let open_runs = view.store.open_runs_in(&room.id)?;
        let approvals = view.store.open_approvals(OpenApprovalsOf::Room(&room.id))?;
        let mut agents = Vec::new();
        for agent in view.agents_in(&room)?.iter() {
            agents.extend(view.agent(agent)?);
        }
        Ok(Facts { target, messages, open_runs, approvals, agents })
    }

    /// Requires that every agent in the room has the rewind capability; otherwise an agent would continue from
    /// messages that no user can see.
    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<RewindResult, Refusal> {
        let Facts { target, messages, open_runs, approvals, agents } = facts;
        if !agents.iter().all(|agent| can_rewind(agent)) {
            return Err(Refusal::invalid(Field::Room, "contains an agent without the rewind capability"));
        }
        if messages.len() > MAX_REWOUND_MESSAGES {
            return Err(Refusal::invalid(Field::Message, "is followed by more than 1000 messages"));
        }
        let withdrawn = withdraw(&approvals, effects);
        let ended =
            open_runs.iter().filter_map(|run| run.ended(RunOutcome::Cancelled, None, effects.now).ok());
        let ended: Vec<Run> = ended.collect();
        let ended = ended.into_iter().map(|run| runs::put_ended(run, effects)).collect();
        for message in &messages {
            delete(self.room.clone(), message.id.clone(), effects);
        }
        let through = Seq(effects.next_seq().0 - 1);
        audit_withdrawn(&withdrawn, effects);
        Ok(RewindResult {
            message: target,
            removed: messages.iter().map(|message| message.id.clone()).collect(),
            ended,
            agents: agents.iter().map(|agent| agent.id.clone()).collect(),
            through,
        })
    }
}

fn is_own(message: &Message, user: &UserId) -> bool {
    message.sender.user() == Some(user)
}

fn can_rewind(agent: &Agent) -> bool {
    agent.host.capabilities.iter().any(|name| **name == *REWIND_CAPABILITY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::{AuditChange, Change};
    use crate::commands::test_fixtures::{NOW, agent};
    use crate::commands::test_fixtures::{decide, room_message};
    use parlor_model::audit::Action;
    use parlor_model::{
        AddressedBy, AgentId, ApprovalId, ApprovalSubject, ConversationId, Decision, Event, GatewayId,
        InputDigest, Lineage, MessageId, Payload, RoomId, RunCause, RunId, RunPlace, RunState, Usage,
    };

    fn room() -> RoomId {
        RoomId::stored("a")
    }

    fn message(number: usize) -> Arc<Message> {
        let id = MessageId::stored(format!("m{number}"));
        Arc::new(Message { id, ..Message::clone(&room_message(&room())) })
    }

    fn run(id: &str, state: RunState) -> Run {
        Run {
            id: RunId::stored(id),
            agent: AgentId::stored("coder"),
            place: RunPlace::Room(room()),
            cause: RunCause::Unprompted,
            asked_by: None,
            addressed: AddressedBy::Directly,
            lineage: Lineage::start(ConversationId::stored("c"), AgentId::stored("coder")),
            parent: None,
            state,
            reply: None,
            usage: Usage::default(),
            stop_requested: false,
            queued_at: NOW,
            started_at: None,
            ended_at: None,
        }
    }

    fn rewind() -> RewindRoom {
        RewindRoom { room: room(), message: MessageId::stored("m0") }
    }

    fn given(count: usize, can_rewind: &[bool]) -> Facts {
        let agents = can_rewind.iter().map(|can_rewind| {
            let mut agent = agent("coder");
            agent.host.capabilities.extend(can_rewind.then(|| REWIND_CAPABILITY.into()));
            Arc::new(agent)
        });
        Facts {
            target: message(0),
            messages: (0..count).map(message).collect(),
            open_runs: vec![run("1", RunState::Running), run("2", RunState::Queued)],
            approvals: Vec::new(),
            agents: agents.collect(),
        }
    }

    #[test]
    fn a_rewind_ends_runs_and_deletes_everything_from_the_message_on() {
        let (rewound, effects) = decide(rewind(), given(2, &[true, true])).unwrap();
        let events: Vec<String> = effects
            .events
            .iter()
            .map(|logged_event| match &logged_event.event {
                Event::RunChanged(run) => format!("{} {:?}", run.id, run.state),
                Event::MessageDeleted { message, .. } => format!("{message} deleted"),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(events, ["1 Ended(Cancelled)", "2 Ended(Cancelled)", "m0 deleted", "m1 deleted"]);
        assert_eq!(rewound.removed, ["m0", "m1"].map(MessageId::stored));
        assert_eq!((rewound.ended.len(), rewound.agents.len()), (2, 2));
        assert_eq!(rewound.through, effects.events[3].seq);
    }

    #[test]
    fn a_rewind_withdraws_open_approvals_and_records_withdrawn_tools_last() {
        let approval = |id: &str, subject| Approval {
            id: ApprovalId::stored(id),
            run: RunId::stored("1"),
            place: RunPlace::Room(room()),
            agent: AgentId::stored("coder"),
            agent_name: "Coder".into(),
            gateway: GatewayId::stored("laptop"),
            request: id.into(),
            tool: "Bash".into(),
            subject,
            digest: InputDigest([1; 32]),
            asked_at: NOW,
            expires_at: NOW,
            decision: None,
            decided_at: None,
        };
        let tool = approval("tool", ApprovalSubject::Tool(Payload("{}".into())));
        let questions = approval("questions", ApprovalSubject::Questions(Vec::new()));
        let facts = Facts { approvals: vec![tool, questions], ..given(1, &[true]) };
        let (_, effects) = decide(rewind(), facts).unwrap();
        let withdrawn = effects.events.iter().filter_map(|logged_event| match &logged_event.event {
            Event::ApprovalDecided(approval) => Some((approval.id.as_str(), approval.decision.clone())),
            _ => None,
        });
        let expected = ["tool", "questions"].map(|id| (id, Some(Decision::Withdrawn)));
        assert_eq!(withdrawn.collect::<Vec<_>>(), expected);
        let is_recorded = |change: &Change| matches!(change, Change::Audit(AuditChange::AppendAudit(_)));
        assert_eq!(effects.changes.iter().filter(|change| is_recorded(change)).count(), 1);
        let Some(Change::Audit(AuditChange::AppendAudit(entry))) = effects.changes.last() else {
            panic!("not recorded last")
        };
        let detail = format!("Bash in room a, approval tool, input {}", InputDigest([1; 32]));
        assert_eq!((entry.action, entry.detail.as_deref()), (Action::ApprovalWithdrawn, Some(&*detail)));
    }

    #[test]
    fn a_rewind_is_refused_if_an_agent_lacks_the_capability_or_it_is_too_long() {
        let field = |facts: Facts| match decide(rewind(), facts) {
            Err(Refusal::Invalid(errors)) => errors[0].field,
            other => panic!("{other:?}"),
        };
        assert_eq!(field(given(2, &[true, false])), Field::Room);
        assert_eq!(field(given(MAX_REWOUND_MESSAGES + 1, &[true])), Field::Message);
        assert!(decide(rewind(), given(MAX_REWOUND_MESSAGES, &[])).is_ok());
    }
}
