//! Runs of agents.

use super::{Ports, each};
use crate::fixtures::*;
use parlor_engine::changes::{Change, RunChange};
use parlor_engine::ports::RECENT_RUNS_SEARCHED;
use parlor_model::{
    AddressedBy, AgentId, ConversationId, Lineage, Run, RunCause, RunId, RunOutcome, RunPlace, RunState,
    Time, Usage,
};
use std::sync::Arc;

pub fn ended(id: &str, agent: &str, conversation: &str, at: i64, outcome: RunOutcome) -> Run {
    let agent = AgentId::stored(agent);
    Run {
        id: RunId::stored(id),
        place: RunPlace::Room(room_id("lobby")),
        cause: RunCause::Unprompted,
        asked_by: None,
        addressed: AddressedBy::Directly,
        lineage: Lineage::start(ConversationId::stored(conversation), agent.clone()),
        agent,
        parent: None,
        state: RunState::Ended(outcome),
        reply: None,
        usage: Usage::default(),
        stop_requested: false,
        queued_at: Time(1),
        started_at: Some(Time(2)),
        ended_at: Some(Time(at)),
    }
}

fn put(ports: &mut Ports, run: &Run) {
    ports.change(vec![Change::Run(RunChange::PutRun(Arc::new(run.clone())))]);
}

#[test]
fn a_recently_ended_run_is_found_by_its_conversation() {
    each(|ports| {
        ports.change(vec![put_room("lobby")]);
        let first = ended("1", "coder", "c1", 10, RunOutcome::Failed("too long".into()));
        let again = ended("2", "coder", "c1", 20, RunOutcome::Interrupted);
        let others = ended("3", "writer", "c1", 30, RunOutcome::Cancelled);
        let running = Run {
            state: RunState::Running,
            ended_at: None,
            ..ended("4", "coder", "c2", 0, RunOutcome::Complete)
        };
        let found = |ports: &Ports, agent: &str, conversation: &str| {
            let (agent, conversation) = (AgentId::stored(agent), ConversationId::stored(conversation));
            ports.read(|s| s.ended_turn(&agent, &conversation))
        };
        put(ports, &first);
        assert_eq!(found(ports, "coder", "c1"), Some(first), "with the reason of the failure");
        for run in [&again, &others, &running] {
            put(ports, run);
        }
        assert_eq!(found(ports, "coder", "c1"), Some(again), "the newest run");
        assert_eq!(found(ports, "writer", "c1"), Some(others));
        assert_eq!(found(ports, "coder", "c2"), None, "the run has not ended");
        for number in 0..RECENT_RUNS_SEARCHED {
            put(ports, &ended(&format!("later-{number}"), "coder", "c3", 40, RunOutcome::Complete));
        }
        assert_eq!(found(ports, "coder", "c1"), None, "beyond the searched recent runs");
    });
}
