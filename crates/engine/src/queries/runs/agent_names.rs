//! Adds the agents' names to runs.

use crate::Fault;
use crate::ports::Snapshot;
use parlor_model::query::NamedRun;
use parlor_model::{MemberId, Run};

/// Adds the agent's name in the room of the run, or its own name; the name is empty if the agent no longer exists.
pub fn with_agent_name(run: Run, store: &mut dyn Snapshot) -> Result<NamedRun, Fault> {
    let member = match run.room() {
        Some(room) => store.member(room, &MemberId::Agent(run.agent.clone()))?,
        None => None,
    };
    let name = match member {
        Some(member) => Some(member.name),
        // The run is in a session without a room, or the agent has left the room.
        None => store.agent(&run.agent)?.map(|agent| agent.name),
    };
    Ok((run, name.unwrap_or_default()))
}

pub fn with_agent_names(runs: Vec<Run>, store: &mut dyn Snapshot) -> Result<Vec<NamedRun>, Fault> {
    runs.into_iter().map(|run| with_agent_name(run, store)).collect()
}
