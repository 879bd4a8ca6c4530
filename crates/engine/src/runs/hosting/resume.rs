//! Resumes runs after a gateway reconnects, and handles gateways that complete a run after its end.

use super::super::host::HostCommand;
use super::super::scheduler::{GatewayConnectionId, ResumeStatus};
use super::Hosting;
use super::{ReplyRef, RunCompletion};
use crate::commands::runs::context::{MEMBERS_IN_CONTEXT, load_trigger};
use parlor_model::{AgentId, EntityKind, Refusal, RunContext, RunId, RunOutcome, RunState, StartedRun};
use std::sync::Arc;

impl Hosting {
    /// Resumes a run: sends the gateway the position up to which the hub has the reply, or the end of the
    /// run.
    pub async fn resume(
        &self,
        connection: GatewayConnectionId,
        agent: &AgentId,
        context: &RunContext,
        run: &RunId,
    ) -> Result<(), Refusal> {
        // Wait until the scheduler has applied the event that started the run.
        self.wait_until_caught_up().await?;
        let (host, resumed) = {
            let mut scheduler = self.hub.scheduler().lock();
            scheduler.agent_on_connection(agent, connection).ok_or(Refusal::NotFound(EntityKind::Agent))?;
            (scheduler.host(connection), scheduler.resume(agent, run))
        };
        let Some(host) = host else { return Ok(()) };
        match resumed {
            ResumeStatus::Active => {
                let heard = self.hub.fanout().published_offset(run);
                let (agent, context, run) = (agent.clone(), context.clone(), run.clone());
                host.send(HostCommand::Resumed { agent, context, run, heard });
            }
            ResumeStatus::Ending => {}
            ResumeStatus::Unknown => {
                let outcome = self.run_outcome(agent, context, run).await?;
                let (agent, context, run) = (agent.clone(), context.clone(), run.clone());
                host.send(HostCommand::Ended { agent, context, run, outcome });
            }
        }
        Ok(())
    }

    /// Sends the lost runs of an agent to its gateway again. A gateway that has the run recognises its id;
    /// one that never received it, because the hub or the connection failed, would otherwise never execute
    /// it.
    pub(super) async fn redispatch_runs(&self, agent: &AgentId) {
        // Wait until the scheduler has applied the start of every committed run.
        let _ = self.wait_until_caught_up().await;
        let lost = self.hub.scheduler().lock().lost_runs(agent);
        for run in lost {
            if let Ok(Some(started)) = self.load_started_run(&run).await {
                self.hub.scheduler().lock().mark_dispatched(&run);
                self.dispatch_run(started).await;
            }
        }
    }

    /// Loads an active run with its trigger, as it was sent at its start; `None` if the trigger was deleted
    /// or the run is not active.
    async fn load_started_run(&self, run: &RunId) -> Result<Option<StartedRun>, Refusal> {
        let id = run.clone();
        self.hub
            .read_snapshot(move |_, store| {
                let Some(run) = store.run(&id)?.filter(|run| run.state == RunState::Running) else {
                    return Ok(None);
                };
                let (mut room, mut members) = (None, Vec::new());
                if let Some(id) = run.room() {
                    let Some(found) = store.room(id)? else { return Ok(None) };
                    room = Some(Arc::new(found));
                    members = store.members(id, MEMBERS_IN_CONTEXT, 0)?;
                }
                let prompt = load_trigger(&run, store)?;
                let members = members.into();
                Ok(prompt.map(|prompt| StartedRun { run: Arc::new(run), prompt, room, members }))
            })
            .await
    }

    /// Handles the completion of a run that has already ended, and reports the end to the gateway. The reply
    /// is posted, once, if the run was interrupted.
    pub(super) async fn complete_ended_run(
        &self,
        reply_ref: ReplyRef<'_>,
        finished: RunCompletion,
    ) -> Result<(), Refusal> {
        let ReplyRef { connection, agent, context, run: Some(run), .. } = reply_ref else { return Ok(()) };
        if self.hub.scheduler().lock().resume(agent, run) != ResumeStatus::Unknown {
            return Ok(());
        }
        let outcome = self.run_outcome(agent, context, run).await?;
        if outcome == RunOutcome::Interrupted && finished.outcome != RunOutcome::Interrupted {
            self.post_late_reply(reply_ref, finished, Some(run.clone())).await?;
        }
        let host = self.hub.scheduler().lock().host(connection);
        if let Some(host) = host {
            let (agent, context, run) = (agent.clone(), context.clone(), run.clone());
            host.send(HostCommand::Ended { agent, context, run, outcome });
        }
        Ok(())
    }

    /// Returns how a run of this agent ended. An unknown run and a run of another agent both yield
    /// `Cancelled`.
    async fn run_outcome(
        &self,
        agent: &AgentId,
        context: &RunContext,
        run: &RunId,
    ) -> Result<RunOutcome, Refusal> {
        let id = run.clone();
        let found = self.hub.read_snapshot(move |_, store| store.run(&id)).await?;
        let own = found.filter(|run| run.agent == *agent && run.place.is_in(context));
        Ok(match own.map(|run| run.state) {
            Some(RunState::Ended(outcome)) => outcome,
            _ => RunOutcome::Cancelled,
        })
    }
}
