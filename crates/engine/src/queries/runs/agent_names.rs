//! Adds the agents' names to runs.

use crate::Fault;
use crate::ports::Snapshot;
use parlor_model::Run;
use parlor_model::query::NamedRun;

/// Adds the agent's name to a run; the name is empty if the agent no longer exists.
pub fn with_agent_name(run: Run, store: &mut dyn Snapshot) -> Result<NamedRun, Fault> {
    let name = store.agent(&run.agent)?.map(|agent| agent.name).unwrap_or_default();
    Ok((run, name))
}

pub fn with_agent_names(runs: Vec<Run>, store: &mut dyn Snapshot) -> Result<Vec<NamedRun>, Fault> {
    runs.into_iter().map(|run| with_agent_name(run, store)).collect()
}
