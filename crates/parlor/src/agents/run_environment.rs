//! Access to the hub for the programs of runs: the hub's address and a token that ends with the run.

use parking_lot::Mutex;
use parlor_agents::gateway::RunEnvironment;
use parlor_agents::run::RunVariables;
use parlor_model::{AgentId, RunId, SessionId, UserId};
use parlor_server::App;
use std::collections::HashMap;
use std::sync::Arc;

/// Environment of the agents that one gateway inside the hub hosts.
pub struct HostedEnvironment {
    app: Arc<App>,
    owners: Mutex<HashMap<AgentId, UserId>>,
}

impl HostedEnvironment {
    pub fn new(app: Arc<App>) -> Arc<Self> {
        Arc::new(Self { app, owners: Mutex::default() })
    }

    /// Replaces the hosted agents, with their owners.
    pub fn set_owners(&self, owners: HashMap<AgentId, UserId>) {
        *self.owners.lock() = owners;
    }
}

impl RunEnvironment for HostedEnvironment {
    fn variables(&self, agent: &AgentId, session: Option<&SessionId>, run: &RunId) -> RunVariables {
        let Some(owner) = self.owners.lock().get(agent).cloned() else { return RunVariables::default() };
        let environment = self.app.environment_of_run(owner, agent.clone(), session.cloned(), run.clone());
        RunVariables(environment.0.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}
