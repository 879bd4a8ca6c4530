//! Hosts that come back to a turn, and those that come too late.

use super::host::HostCommand;
use super::hosting::{ReplyRef, RunCompletion};
use super::scheduler::{GatewayConnectionId, ResumeStatus};
use crate::Hub;
use crate::facts::MEMBERS_IN_CONTEXT;
use parlor_model::{
    AgentId, EntityKind, Refusal, RoomId, RunId, RunOutcome, RunState, RunTrigger, StartedRun,
};
use std::sync::Arc;

impl Hub {
    /// A host goes on with a turn: it is told how far it was heard, or that the turn is over.
    pub async fn resume(
        &self,
        link: GatewayConnectionId,
        agent: &AgentId,
        room: &RoomId,
        run: &RunId,
    ) -> Result<(), Refusal> {
        // A turn that began a moment ago is known a moment later.
        self.wait_until_caught_up().await;
        let (host, resumed) = {
            let mut scheduler = self.turns().desk();
            scheduler.agent_on_connection(agent, link).ok_or(Refusal::NotFound(EntityKind::Agent))?;
            (scheduler.host(link), scheduler.resume(agent, run))
        };
        let Some(host) = host else { return Ok(()) };
        match resumed {
            ResumeStatus::GoesOn => {
                let heard = self.switchboard().published_offset(run);
                host.send(&HostCommand::Resumed { agent, room, run, heard });
            }
            ResumeStatus::Ending => {}
            ResumeStatus::Unknown => {
                let outcome = self.outcome(agent, room, run).await?;
                host.send(&HostCommand::Ended { agent, room, run, outcome: &outcome });
            }
        }
        Ok(())
    }

    /// Hands over what an agent was to do when it was lost. A host that has heard of it knows it by its name; one that
    /// has not would never do it, where the hub or the line broke on the way.
    pub(super) async fn redispatch_runs(&self, agent: &AgentId) {
        // Known by now, if it had begun.
        self.wait_until_caught_up().await;
        let unheard = self.turns().desk().unheard(agent);
        for run in unheard {
            if let Ok(Some(started)) = self.begun(&run).await {
                self.turns().desk().heard_of(&run);
                self.dispatch_run(&started).await;
            }
        }
    }

    /// A turn that runs, as it was handed over when it began; nothing if what it was asked is gone.
    async fn begun(&self, run: &RunId) -> Result<Option<StartedRun>, Refusal> {
        let id = run.clone();
        self.read_snapshot(move |_, store| {
            let Some(run) = store.run(&id)?.filter(|run| run.state == RunState::Running) else {
                return Ok(None);
            };
            let Some(room) = store.room(&run.room)? else { return Ok(None) };
            let prompt = if let Some(trigger) = &run.trigger {
                store.message(trigger)?.map(RunTrigger::Message)
            } else if let Some(task) = &run.task {
                store.task(task)?.map(|task| RunTrigger::Task(Arc::new(task)))
            } else if let Some(arrival) = &run.arrival {
                store.user(arrival)?.map(|user| RunTrigger::Arrival { name: user.display_name })
            } else {
                None
            };
            let members = store.members(&run.room, MEMBERS_IN_CONTEXT, 0)?.into();
            Ok(prompt.map(|prompt| StartedRun { run: Arc::new(run), prompt, room: Arc::new(room), members }))
        })
        .await
    }

    /// A host ends a turn that is over. What it has to say is said once if the turn was given up.
    pub(super) async fn complete_ended_run(
        &self,
        voice: ReplyRef<'_>,
        finished: RunCompletion,
    ) -> Result<(), Refusal> {
        let ReplyRef { link, agent, room, run: Some(run), .. } = voice else { return Ok(()) };
        if self.turns().desk().resume(agent, run) != ResumeStatus::Unknown {
            return Ok(());
        }
        let outcome = self.outcome(agent, room, run).await?;
        if outcome == RunOutcome::Interrupted && finished.outcome != RunOutcome::Interrupted {
            self.post_late_reply(voice, finished, Some(run.clone())).await?;
        }
        let host = self.turns().desk().host(link);
        if let Some(host) = host {
            host.send(&HostCommand::Ended { agent, room, run, outcome: &outcome });
        }
        Ok(())
    }

    /// How a turn of this agent ended. One that there never was, or that is somebody else's, is told alike.
    async fn outcome(&self, agent: &AgentId, room: &RoomId, run: &RunId) -> Result<RunOutcome, Refusal> {
        let id = run.clone();
        let found = self.read_snapshot(move |_, store| store.run(&id)).await?;
        let own = found.filter(|run| run.agent == *agent && run.room == *room);
        Ok(match own.map(|run| run.state) {
            Some(RunState::Ended(outcome)) => outcome,
            _ => RunOutcome::Cancelled,
        })
    }
}
