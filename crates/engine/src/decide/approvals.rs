//! Withdraws approvals for commands that have no file of their own yet.

use super::EffectsBuilder;
use crate::commands::approvals::withdrawal;

/// Withdraws the open approvals of a run, agent or room that ends.
pub fn withdraw(effects_builder: &mut EffectsBuilder) {
    // The audit entries are derived from the changes.
    let _ = withdrawal::withdraw(&effects_builder.facts.approvals, effects_builder);
}

#[cfg(test)]
mod tests {
    use super::super::test_fixtures::*;
    use crate::commands::test_fixtures::room;
    use crate::facts::Facts;
    use parlor_model::{
        AddressedBy, AgentId, AgentReply, Approval, ApprovalId, ApprovalSubject, Command, ConversationId,
        Decision, Event, GatewayId, InputDigest, Lineage, Member, MemberId, Payload, RoomId, RoomRole, Run,
        RunFinish, RunId, RunOutcome, RunState, Time, Usage,
    };
    use std::sync::Arc;

    fn room_id() -> RoomId {
        RoomId::stored("room")
    }

    fn open() -> Approval {
        Approval {
            id: ApprovalId::stored("approval"),
            run: RunId::stored("run"),
            room: room_id(),
            agent: AgentId::stored("coder"),
            agent_name: "coder".into(),
            gateway: GatewayId::stored("g"),
            request: "1".into(),
            tool: "Bash".into(),
            subject: ApprovalSubject::Tool(Payload("{}".into())),
            digest: InputDigest([1; 32]),
            asked_at: Time(1),
            expires_at: Time(2),
            decision: None,
            decided_at: None,
        }
    }

    fn run(id: &str) -> Run {
        Run {
            id: RunId::stored(id),
            agent: AgentId::stored("coder"),
            room: room_id(),
            trigger: None,
            task: None,
            asked_by: None,
            arrival: None,
            addressed: AddressedBy::Directly,
            lineage: Lineage::start(ConversationId::stored("c"), AgentId::stored("coder")),
            parent: None,
            state: RunState::Running,
            reply: None,
            usage: Usage::default(),
            queued_at: Time(1),
            started_at: Some(Time(1)),
            ended_at: None,
        }
    }

    /// Facts with a running run of the agent in the room.
    fn running() -> Facts {
        let member = Member {
            room: room_id(),
            member: MemberId::Agent(AgentId::stored("coder")),
            role: RoomRole::Member,
            role_description: None,
            name: "".into(),
            handle: "".into(),
            joined_at: Time(1),
            read_through: Default::default(),
            read_at: None,
            room_preferences: Default::default(),
        };
        Facts {
            run: Some(run("run")),
            agent: Some(agent("coder")),
            room: Some(Arc::new(room(&room_id()))),
            target: Some(member),
            ..facts()
        }
    }

    #[test]
    fn open_approvals_are_withdrawn_with_their_run() {
        let said = AgentReply {
            message: None,
            text: "done".into(),
            chunks: Vec::new(),
            target: None,
            claimed_depth: 0,
        };
        let (run, outcome) = (RunId::stored("run"), RunOutcome::Complete);
        let finished = RunFinish { run, outcome, said: Some(said) };
        let facts = Facts { approvals: vec![open()], ..running() };
        let plan = decide_with(&Command::FinishRun(finished), &facts).unwrap();
        let events: Vec<_> = plan.events.iter().map(|logged_event| &logged_event.event).collect();
        let [
            Event::ApprovalDecided(withdrawn),
            Event::MessagePosted { message, .. },
            Event::RunChanged(over),
        ] = events[..]
        else {
            panic!("{events:?}")
        };
        assert_eq!(message.seq, plan.events[1].seq, "the message has the seq of its own event");
        assert_eq!(withdrawn.decision, Some(Decision::Withdrawn));
        assert!(over.has_ended());
    }
}
