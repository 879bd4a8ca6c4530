//! Scheduler driver: the async loop that begins the scheduler's actions in order.
//!
//! Changes state through `Hub::execute` like any other caller. Actions that wait for the store run in tasks
//! of their own, so that no run waits for another.

use super::host::HostCommand;
use super::hosting::{Hosting, drop_text_only_chunks};
use super::scheduler::{Action, RunToFinish};
use super::triage::TriageDecision;
use crate::hub::WeakHub;
use parlor_model::command::{AppendNoop, FinishRun, RunStart, StartRun};
use parlor_model::query::Page;
use parlor_model::{
    AddressedBy, AgentReply, Caller, MemberId, Message, Refusal, RunId, RunOutcome, RunPlace, RunTrigger,
    StartedRun,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Delay before a command is retried that failed because the store is unavailable.
pub(super) const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Maximum number of earlier messages that an agent receives with the trigger of a run.
const CONTEXT_MESSAGES: usize = 20;

pub async fn run_loop(weak: WeakHub) {
    loop {
        let Some(hub) = weak.upgrade().filter(|hub| !hub.is_closing()) else { return };
        hub.hosting().drive_runs().await;
        let (scheduler_handle, fanout) = (hub.shared_scheduler(), hub.shared_fanout());
        let deadline = scheduler_handle.lock().next_deadline(hub.limits().gateway_grace, Instant::now());
        // The loop must not keep the hub alive while it waits.
        drop(hub);
        let deadline = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = scheduler_handle.wake_driver.notified() => {}
            () = deadline => {}
            () = fanout.wait_for_low_ordinals() => {
                let Some(hub) = weak.upgrade() else { return };
                // If the store rejects the event that frees new ordinals, only signals are dropped.
                let _ = hub.execute(&Caller::OPERATOR, AppendNoop).await;
            }
        }
    }
}

impl Hosting {
    async fn drive_runs(&self) {
        let actions = {
            let (mut scheduler, now) = (self.hub.scheduler().lock(), Instant::now());
            // Published under the scheduler's lock: a backlog that is published after the removal of its agent
            // would stay in the state of the room. Only this loop publishes backlogs, so that their revisions are
            // published in order.
            for (room, backlog) in scheduler.take_queues(now) {
                self.hub.fanout().publish_backlog(&room, &backlog);
            }
            scheduler.take_actions(self.hub.limits().gateway_grace, now)
        };
        for action in actions {
            self.perform(action).await;
        }
    }

    async fn perform(&self, action: Action) {
        let hosting = self.clone();
        match action {
            Action::OfferInjection(offer) => self.offer_injection(offer).await,
            Action::ExpireApproval(approval) => {
                // If this fails, the scheduler returns the approval again while it is open.
                self.hub.tasks().spawn(async move { hosting.expire(&approval).await });
            }
            Action::FinishRun(due) => {
                self.hub.tasks().spawn(async move { hosting.finish_run(due).await });
            }
            Action::CancelQueuedRun(run) => {
                self.hub
                    .tasks()
                    .spawn(async move { hosting.end_unstarted_run(run, RunOutcome::Cancelled).await });
            }
            Action::RefuseRun(run) => {
                let reason = "the gateway of the agent does not run sessions";
                self.hub.tasks().spawn(async move {
                    hosting.end_unstarted_run(run, RunOutcome::Refused(reason.into())).await
                });
            }
            Action::SendRoomContext(room) => {
                let _ = self.send_room_context(&room, None).await;
            }
            Action::PublishStatus(agent) => self.publish_agent_status(&agent).await,
            Action::StartRun(run) => {
                self.hub.tasks().spawn(async move { hosting.start_run(run).await });
            }
        }
    }

    /// Ends a run that is queued or has just started. Retries while the store is unavailable.
    pub(super) async fn end_unstarted_run(&self, run: RunId, outcome: RunOutcome) {
        let finished = FinishRun { run, outcome, said: None };
        while let Err(Refusal::Unavailable) = self.hub.execute(&Caller::OPERATOR, finished.clone()).await
            && !self.hub.is_closing()
        {
            // The store is unavailable, for example because the disk is full, and no event reports its
            // recovery.
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }

    async fn start_run(&self, run: RunId) {
        match self.triage_decision(&run).await {
            Ok(TriageDecision::Yes) => {}
            // The run stays queued until its triage fallback bucket has a token.
            Ok(TriageDecision::Later) => {
                self.hub.scheduler().lock().retry_start(&run);
                return self.hub.scheduler().wake_driver.notify_one();
            }
            Ok(TriageDecision::No) => {
                return self
                    .end_unstarted_run(run, RunOutcome::Refused("it was not for this agent".into()))
                    .await;
            }
            Err(_) => return self.retry_start_later(&run).await,
        }
        match self.hub.execute(&Caller::OPERATOR, StartRun { run: run.clone() }).await {
            Ok(RunStart::Started(started)) => self.dispatch_run(*started).await,
            Err(Refusal::Unavailable) => self.retry_start_later(&run).await,
            // The start was refused, or the run no longer exists.
            Ok(RunStart::Refused(_)) | Err(_) => {}
        }
    }

    async fn retry_start_later(&self, run: &RunId) {
        tokio::time::sleep(RETRY_DELAY).await;
        self.hub.scheduler().lock().retry_start(run);
        self.hub.scheduler().wake_driver.notify_one();
    }

    /// Returns the triage decision for a run by answer policy. All other runs start without triage.
    async fn triage_decision(&self, run: &RunId) -> Result<TriageDecision, Refusal> {
        let id = run.clone();
        let run = self.hub.read_snapshot(move |_, store| store.run(&id)).await?;
        let Some(run) = run.filter(|run| run.addressed == AddressedBy::ByPolicy) else {
            return Ok(TriageDecision::Yes);
        };
        self.triage(&run).await
    }

    pub(super) async fn dispatch_run(&self, started: StartedRun) {
        let agent = &started.run.agent;
        // The scheduler has to know the run before its first chunk arrives.
        while self.wait_until_caught_up().await.is_err() {
            if self.hub.is_closing() {
                return;
            }
        }
        if let Some(room) = &started.room {
            let _ = self.send_room_context(&room.id, Some(agent)).await;
        }
        let on_parlor_gateway = self.hub.scheduler().lock().is_on_parlor_gateway(agent);
        // If the earlier messages cannot be read, the run starts without them.
        let earlier = if on_parlor_gateway {
            self.load_context_messages(&started).await.unwrap_or_default()
        } else {
            Vec::new()
        };
        let scheduler = self.hub.scheduler().lock();
        let host = scheduler.online_agent(agent).and_then(|online| scheduler.host(online.connection));
        // Sent under the scheduler lock: if a stop reached the gateway first, the run would be executed after
        // it.
        if let Some(host) = host.filter(|_| scheduler.is_active(&started.run.id)) {
            // The agent may have moved to another gateway since the messages were loaded.
            let is_on_parlor_gateway = scheduler.is_on_parlor_gateway(agent);
            if started.run.session().is_some() && !scheduler.runs_sessions(agent) {
                return;
            }
            let earlier = if is_on_parlor_gateway { earlier } else { Vec::new() };
            host.send(HostCommand::StartRun { started, earlier });
        }
    }

    /// Loads the messages before the trigger that the agent may see, oldest first. A session has its own context, so
    /// its runs get none.
    async fn load_context_messages(&self, started: &StartedRun) -> Result<Vec<Arc<Message>>, Refusal> {
        let member = MemberId::Agent(started.run.agent.clone());
        let RunPlace::Room(room) = started.run.place.clone() else { return Ok(Vec::new()) };
        let before = match &started.prompt {
            RunTrigger::Message(message) => Some(message.seq),
            RunTrigger::Task(_) | RunTrigger::Arrival { .. } | RunTrigger::Prompt(_) => None,
        };
        self.hub
            .read_snapshot(move |_, store| {
                let Some(member) = store.member(&room, &member)? else { return Ok(Vec::new()) };
                let cleared_through = member.room_preferences.cleared_through;
                let mut messages =
                    store.history(&room, cleared_through, Page::Before(before), CONTEXT_MESSAGES)?;
                messages.reverse();
                Ok(messages)
            })
            .await
    }

    async fn finish_run(&self, due: RunToFinish) {
        let RunToFinish { run, reply, ending } = due;
        let streamed = self.hub.fanout().finish(&run, ending.text.as_deref());
        let (text, chunks) = match streamed {
            Some((text, chunks)) if !chunks.is_empty() || ending.chunks.is_empty() => (text, chunks),
            _ => self.buffer_of(&ending.chunks).finish(ending.text.as_deref()),
        };
        let agent_reply = AgentReply {
            message: reply,
            text,
            chunks: drop_text_only_chunks(chunks),
            target: ending.target,
            claimed_depth: ending.claimed_depth,
            claimed_chain: ending.claimed_chain,
            origin: ending.origin,
        };
        let finished = FinishRun { run, outcome: ending.outcome, said: Some(agent_reply) };
        match self.hub.execute(&Caller::OPERATOR, finished.clone()).await {
            // Another message has the reply id, so the reply is stored with a new one.
            Err(Refusal::Conflict { .. }) => {
                let said = finished.said.map(|reply| AgentReply { message: None, ..reply });
                let finished = FinishRun { said, ..finished };
                let _ = self.hub.execute(&Caller::OPERATOR, finished).await;
            }
            Err(Refusal::TooLarge { .. } | Refusal::Invalid(_)) => {
                tracing::warn!(run = %finished.run, "a reply was too long to store");
                let finished = FinishRun {
                    said: None,
                    outcome: RunOutcome::Failed("the reply was too long to store".into()),
                    ..finished
                };
                let _ = self.hub.execute(&Caller::OPERATOR, finished).await;
            }
            Err(Refusal::AlreadyExists(_) | Refusal::NotFound(_)) => {
                self.hub.scheduler().lock().forget_ended(&finished.run)
            }
            // The scheduler returns the run again while it has not ended.
            Ok(_) | Err(_) => {}
        }
    }
}
