//! Tends the turns behind the fan-out: what is ready begins, what is over ends, who hosts an agent is told.
//!
//! An ordinary reader of what was committed, which re-enters by `submit` like anybody else.

use super::host::HostCommand;
use super::hosting::drop_text_only_chunks;
use super::scheduler::{EndedRun, RunToFinish};
use super::triage::TriageDecision;
use crate::Hub;
use crate::hub::WeakHub;
use parlor_model::query::Page;
use parlor_model::{
    AddressedBy, AgentReply, Caller, Command, MemberId, Message, Receipt, Refusal, RunFinish, RunId,
    RunOutcome, RunTrigger, StartedRun,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the store is given before it is asked again.
pub(super) const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Messages that an agent is told of beside the one it is to answer.
const CONTEXT_MESSAGES: usize = 20;

pub async fn run_loop(weak: WeakHub) {
    loop {
        let Some(hub) = weak.upgrade().filter(|hub| !hub.is_closing()) else { return };
        hub.drive_runs().await;
        let (scheduler_handle, fanout) = (hub.shared_turns(), hub.shared_switchboard());
        let deadline = scheduler_handle.desk().next_deadline(hub.limits().gateway_grace, Instant::now());
        // The hub must be able to end while nothing happens.
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
            () = fanout.crowded() => {
                let Some(hub) = weak.upgrade() else { return };
                // Only signals suffer where the store does not take it.
                let _ = hub.execute(&Caller::OPERATOR, Command::AppendNoop).await;
            }
        }
    }
}

impl Hub {
    async fn drive_runs(&self) {
        // Here alone, so that they are told in the order in which they were made.
        let queues = self.turns().desk().take_queues(Instant::now());
        for (room, signal) in queues {
            self.switchboard().signal_room(&room, &signal, None);
        }
        let (ready, unwanted, due, stale, changed, removed, stops, overdue, over) = {
            let (mut scheduler, now) = (self.turns().desk(), Instant::now());
            let removed = scheduler.take_removed().into_iter();
            let removed: Vec<_> =
                removed.filter_map(|(link, agent)| Some((scheduler.host(link)?, agent))).collect();
            let stops = self.orders_to_stop(&mut scheduler);
            let due = scheduler.take_runs_to_finish(self.limits().gateway_grace, now);
            let (stale, changed) = (scheduler.take_stale(), scheduler.take_changed());
            let overdue = scheduler.overdue(now);
            let over = scheduler.take_over().into_iter();
            let over: Vec<_> = over.filter_map(|over| Some((scheduler.host(over.link)?, over))).collect();
            (
                scheduler.take_ready(now),
                scheduler.take_unwanted(),
                due,
                stale,
                changed,
                removed,
                stops,
                overdue,
                over,
            )
        };
        for (host, agent, room) in stops {
            host.send(&HostCommand::Stop { agent: &agent, room: &room });
        }
        self.offer_injections().await;
        for (host, EndedRun { agent, room, run, outcome, .. }) in &over {
            host.send(&HostCommand::Ended { agent, room, run, outcome });
        }
        for (host, agent) in removed {
            host.send(&HostCommand::Remove { agent: &agent });
        }
        for approval in overdue {
            let hub = self.clone();
            // Asked again while it is open.
            tokio::spawn(async move { hub.expire(&approval).await });
        }
        for due in due {
            let hub = self.clone();
            tokio::spawn(async move { hub.end_turn(due).await });
        }
        for run in unwanted {
            let hub = self.clone();
            tokio::spawn(async move { hub.end_unstarted_run(run, RunOutcome::Cancelled).await });
        }
        for room in stale {
            let _ = self.send_room_context(&room, None).await;
        }
        for agent in changed {
            self.publish_agent_status(&agent).await;
        }
        for run in ready {
            let hub = self.clone();
            tokio::spawn(async move { hub.start_turn(run).await });
        }
    }

    /// Ends a turn that waits, or that has begun in this very moment.
    pub(super) async fn end_unstarted_run(&self, run: RunId, outcome: RunOutcome) {
        let finished = RunFinish { run, outcome, said: None };
        while let Err(Refusal::Unavailable) =
            self.execute(&Caller::OPERATOR, Command::FinishRun(finished.clone())).await
            && !self.is_closing()
        {
            // The disk is full: there is no news to wait for.
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }

    async fn start_turn(&self, run: RunId) {
        match self.wanted(&run).await {
            Ok(TriageDecision::Yes) => {}
            // It waits until there is room for what nobody can decide.
            Ok(TriageDecision::Later) => {
                self.turns().desk().not_started(&run);
                return self.turns().wake_driver.notify_one();
            }
            Ok(TriageDecision::No) => {
                return self
                    .end_unstarted_run(run, RunOutcome::Refused("it was not for this agent".into()))
                    .await;
            }
            Err(_) => return self.try_again_later(&run).await,
        }
        match self.execute(&Caller::OPERATOR, Command::StartRun { run: run.clone() }).await {
            Ok(Receipt::Started(started)) => self.dispatch_run(&started).await,
            Err(Refusal::Unavailable) => self.try_again_later(&run).await,
            // It was refused, or is no more.
            Ok(_) | Err(_) => {}
        }
    }

    async fn try_again_later(&self, run: &RunId) {
        tokio::time::sleep(RETRY_DELAY).await;
        self.turns().desk().not_started(run);
        self.turns().wake_driver.notify_one();
    }

    /// Whether an agent that was not called by name should answer.
    async fn wanted(&self, run: &RunId) -> Result<TriageDecision, Refusal> {
        let id = run.clone();
        let run = self.read_snapshot(move |_, store| store.run(&id)).await?;
        let Some(run) = run.filter(|run| run.addressed == AddressedBy::ByPolicy) else {
            return Ok(TriageDecision::Yes);
        };
        self.triage(&run).await
    }

    pub(super) async fn dispatch_run(&self, started: &StartedRun) {
        let agent = &started.run.agent;
        // It is known here before its first piece can come.
        self.wait_until_caught_up().await;
        let _ = self.send_room_context(&started.room.id, Some(agent)).await;
        let ours = self.turns().desk().is_hosted_by_us(agent);
        // A turn that knows less is better than none.
        let earlier = if ours { self.heard_before(started).await.unwrap_or_default() } else { Vec::new() };
        let scheduler = self.turns().desk();
        let host = scheduler.online_agent(agent).and_then(|seat| scheduler.host(seat.link));
        // Told while nobody can stop it: a host that hears of the stop first would do the work after all.
        if let Some(host) = host.filter(|_| scheduler.is_active(&started.run.id)) {
            // The agent may have moved to another host meanwhile.
            let earlier = if scheduler.is_hosted_by_us(agent) { &*earlier } else { &[] };
            host.send(&HostCommand::StartRun { started, earlier });
        }
    }

    /// What the agent may see of what was said before it was asked, the oldest first.
    async fn heard_before(&self, started: &StartedRun) -> Result<Vec<Arc<Message>>, Refusal> {
        let member = MemberId::Agent(started.run.agent.clone());
        let room = started.room.id.clone();
        let before = match &started.prompt {
            RunTrigger::Message(message) => Some(message.seq),
            RunTrigger::Task(_) | RunTrigger::Arrival { .. } => None,
        };
        self.read_snapshot(move |_, store| {
            let Some(member) = store.member(&room, &member)? else { return Ok(Vec::new()) };
            let beyond = member.room_preferences.cleared_through;
            let mut said = store.history(&room, beyond, Page::Before(before), CONTEXT_MESSAGES)?;
            said.reverse();
            Ok(said)
        })
        .await
    }

    async fn end_turn(&self, due: RunToFinish) {
        let RunToFinish { run, reply, ending } = due;
        let heard = self.switchboard().finish(&run, ending.text.as_deref());
        let (text, chunks) = match heard {
            Some((text, chunks)) if !chunks.is_empty() || ending.chunks.is_empty() => (text, chunks),
            _ => self.buffer_of(&ending.chunks).finish(ending.text.as_deref()),
        };
        let said = AgentReply {
            message: reply,
            text,
            chunks: drop_text_only_chunks(chunks),
            target: ending.target,
            claimed_depth: ending.claimed_depth,
        };
        let finished = RunFinish { run, outcome: ending.outcome, said: Some(said) };
        match self.execute(&Caller::OPERATOR, Command::FinishRun(finished.clone())).await {
            // Somebody said something under its id meanwhile.
            Err(Refusal::Conflict { .. }) => {
                let said = finished.said.map(|said| AgentReply { message: None, ..said });
                let finished = RunFinish { said, ..finished };
                let _ = self.execute(&Caller::OPERATOR, Command::FinishRun(finished)).await;
            }
            Err(Refusal::TooLarge { .. } | Refusal::Invalid(_)) => {
                tracing::warn!(run = %finished.run, "a reply was too long to be kept");
                let finished = RunFinish {
                    said: None,
                    outcome: RunOutcome::Failed("the reply was too long to be kept".into()),
                    ..finished
                };
                let _ = self.execute(&Caller::OPERATOR, Command::FinishRun(finished)).await;
            }
            Err(Refusal::AlreadyExists(_) | Refusal::NotFound(_)) => {
                self.turns().desk().is_over(&finished.run)
            }
            // Asked again while it is not over.
            Ok(_) | Err(_) => {}
        }
    }
}
