//! The end of hosted agents: when they are removed or replaced, and when the gateway stops.
//!
//! Owns: the tasks and programs of an agent are awaited after its last run has ended, each for a limited
//! time.

use super::{Gateway, GatewayNotice, HostedAgent};
use crate::process;
use parlor_model::AgentId;
use std::time::Duration;
use tokio::task::JoinError;
use tokio::time::timeout;

/// Maximum time that a stop waits for workspace requests. A request that waits for a hanging disk cannot be
/// aborted.
const WORKSPACE_STOP_TIMEOUT: Duration = Duration::from_secs(1);

impl Gateway {
    /// Removes every agent that is not in `agents`, and stops its runs.
    pub fn keep_only(&mut self, agents: &[AgentId]) {
        let removed: Vec<AgentId> = self.agents.keys().filter(|id| !agents.contains(id)).cloned().collect();
        for agent in removed {
            self.remove_agent(&agent);
        }
    }

    pub(super) fn remove_agent(&mut self, agent: &AgentId) {
        let Some(hosted) = self.agents.remove(agent) else { return };
        let name = hosted.name.clone();
        for hosted_run in self.runs.values_mut().filter(|hosted_run| hosted_run.agent == *agent) {
            hosted_run.cancel();
        }
        self.close(hosted);
        if let Err(error) = self.data.forget_spawned(agent) {
            tracing::warn!(%error, "cannot delete a remotely created agent from disk");
        }
        self.notify(GatewayNotice::Dismissed { agent: name });
    }

    /// Closes an agent that is no longer hosted, in a task that waits for the end of its runs first.
    pub(super) fn close(&mut self, hosted: HostedAgent) {
        let HostedAgent { kind, executions, .. } = hosted;
        self.closing.spawn(async move {
            executions.close();
            executions.wait().await;
            kind.close().await;
        });
    }

    /// Stops all active runs and the programs of all agents, and waits until they have ended. A program that
    /// ignores SIGTERM is killed. No agent is hosted afterwards.
    pub async fn stop(&mut self) {
        // The caller may have dropped the future of `serve`. Without a connection, no run waits for space in
        // its reply.
        self.end_connection();
        for hosted_run in self.runs.values() {
            if let Some(handle) = &hosted_run.handle {
                handle.stop();
            }
        }
        let hosted: Vec<HostedAgent> = self.agents.drain().map(|(_, hosted)| hosted).collect();
        for hosted in hosted {
            self.close(hosted);
        }
        // The runs stay stored as unfinished: the next process reports them to the hub as interrupted.
        while self.tasks.join_next().await.is_some() {}
        while let Some(closed) = self.closing.join_next().await {
            log_panic(closed);
        }
        if timeout(WORKSPACE_STOP_TIMEOUT, self.workspace_tasks.shutdown()).await.is_err() {
            tracing::warn!("a workspace request has not ended: the disk does not respond");
        }
        process::killed_programs_ended().await;
    }
}

/// Logs the panic of a task that closed an agent.
pub(super) fn log_panic(closed: Result<(), JoinError>) {
    if let Err(error) = closed {
        tracing::error!(%error, "an agent was not closed");
    }
}
