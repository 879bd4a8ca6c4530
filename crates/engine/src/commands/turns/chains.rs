//! The chains of agents that messages in a mailbox belong to.
//!
//! Owns: agents that send mail to each other stop at the depth limit, at an agent that is already part of the chain, and
//! at the limit of turns of a pair of agents. A message that an agent sent outside of its runs starts a new chain.

use super::batch::sending_agent;
use crate::ports::Lookup;
use crate::{Fault, Limits};
use parlor_model::{
    Agent, AgentId, Lineage, LineageLimit, Message, Run, RunCause, RunOutcome, RunState, Time,
};
use std::collections::HashMap;

/// Number of the latest runs of an agent that are searched for the run that sent a message, and for runs that another
/// agent triggered. Must exceed `Limits::pair_turns` for that limit to apply.
const LATEST_RUNS_SEARCHED: usize = 100;

/// A message of an agent, with the lineage that a turn for it continues; `None` for a new one.
#[derive(Debug, Clone)]
pub struct ChainOfMessage {
    pub sender: AgentId,
    pub lineage: Option<Lineage>,
}

/// Latest runs of the agents that occur in one batch.
#[derive(Default)]
pub struct TalkCounts {
    latest: HashMap<AgentId, Vec<Run>>,
}

impl TalkCounts {
    /// The chain of a message from an agent, `None` for a message from anyone else, or the reason why the message starts
    /// no turn of `agent`.
    pub fn chain_of(
        &mut self,
        agent: &Agent,
        message: &Message,
        now: Time,
        limits: &Limits,
        store: &mut dyn Lookup,
    ) -> Result<Result<Option<ChainOfMessage>, &'static str>, Fault> {
        let Some(sender) = sending_agent(message) else { return Ok(Ok(None)) };
        let since = now.minus(limits.pair_window);
        let turns =
            self.latest(&agent.id, store)?.iter().filter(|run| is_turn_for(run, sender, since)).count();
        if turns as u64 >= limits.pair_turns {
            return Ok(Err("these two agents talk to each other too often"));
        }
        let lineage = match &message.run_output {
            Some(output) => store.run(&output.run)?.map(|run| run.lineage),
            None => {
                let active = self.latest(sender, store)?.iter().filter(|run| was_active(run, message.at));
                active.map(|run| &run.lineage).max_by_key(|lineage| lineage.depth).cloned()
            }
        };
        let Some(lineage) = lineage else {
            return Ok(Ok(Some(ChainOfMessage { sender: sender.clone(), lineage: None })));
        };
        Ok(match lineage.extend_to(&agent.id, limits.chain_depth) {
            Ok(lineage) => Ok(Some(ChainOfMessage { sender: sender.clone(), lineage: Some(lineage) })),
            Err(LineageLimit::TooDeep) => Err("the chain of agents is too long"),
            Err(LineageLimit::Twice) => Err("the agent has spoken in this chain already"),
        })
    }

    fn latest(&mut self, agent: &AgentId, store: &mut dyn Lookup) -> Result<&[Run], Fault> {
        if !self.latest.contains_key(agent) {
            let runs = store.latest_runs(agent, LATEST_RUNS_SEARCHED)?;
            self.latest.insert(agent.clone(), runs);
        }
        Ok(&self.latest[agent])
    }
}

/// Whether a run is a turn for messages of `sender` since then.
fn is_turn_for(run: &Run, sender: &AgentId, since: Time) -> bool {
    run.asked_by.as_ref() == Some(sender)
        && run.queued_at >= since
        && matches!(run.cause, RunCause::Batch { .. })
        && !matches!(run.state, RunState::Ended(RunOutcome::Refused(_)))
}

fn was_active(run: &Run, at: Time) -> bool {
    run.started_at.is_some_and(|started| started <= at) && run.ended_at.is_none_or(|ended| at <= ended)
}
