//! Idle prompt loop: prompts idle agents in rooms with an active mission.
//!
//! The time of each prompt is stored, so a restarted hub continues the same schedule.

use super::hosting::Hosting;
use crate::Fault;
use crate::hub::WeakHub;
use crate::ports::Snapshot;
use parlor_model::command::PromptIdle;
use parlor_model::{AgentId, Caller, Mission, MissionId, MissionScope, RunState, Time};
use std::collections::HashSet;
use std::time::Duration;
use tokio::time::Instant;

/// Interval between two checks if no notification arrives.
const POLL_INTERVAL: Duration = Duration::from_secs(10);
/// Minimum interval between two checks, however many rooms change.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(250);

pub async fn run_loop(weak: WeakHub) {
    loop {
        let Some(hub) = weak.upgrade().filter(|hub| !hub.is_closing()) else { return };
        let polled_at = Instant::now();
        hub.hosting().prompt_idle().await;
        let scheduler_handle = hub.shared_scheduler();
        // The loop must not keep the hub alive while it waits.
        drop(hub);
        let _ = tokio::time::timeout(POLL_INTERVAL, scheduler_handle.idle.notified()).await;
        tokio::time::sleep_until(polled_at + MIN_POLL_INTERVAL).await;
    }
}

impl Hosting {
    /// Prompts every agent whose idle prompt is due. Uses the hub's clock, which tests can set.
    pub async fn prompt_idle(&self) {
        let now = self.hub.now();
        // After a read error, the next check tries again.
        let Ok(mut due) = self.hub.read_snapshot(move |_, store| due(now, store)).await else { return };
        // If several missions are due for an agent, the one with the oldest prompt comes first, so that none
        // starves.
        due.sort_by_key(|due| due.prompted_at);
        let mut prompted = HashSet::new();
        for DuePrompt { mission, agent, .. } in due {
            // One prompt per agent and check: the scheduler learns of the new run only after the commit.
            if !prompted.contains(&agent) && self.hub.scheduler().lock().is_idle(&agent) {
                let prompt = PromptIdle { mission, agent: agent.clone() };
                // The prompt is refused if the mission, the room or the agent has changed since the check.
                if self.hub.execute(&Caller::OPERATOR, prompt).await.is_ok() {
                    prompted.insert(agent);
                }
            }
        }
    }
}

/// An idle prompt that is due.
struct DuePrompt {
    mission: MissionId,
    agent: AgentId,
    /// Time of the last prompt of this agent for this mission.
    prompted_at: Option<Time>,
}

/// Returns the due prompts according to the store. The cost grows with the number of agents in rooms with an
/// active mission.
fn due(now: Time, store: &mut dyn Snapshot) -> Result<Vec<DuePrompt>, Fault> {
    let mut due = Vec::new();
    for mission in store.missions_on()? {
        let room = store.room(&mission.room)?;
        let is_active =
            room.is_some_and(|room| MissionScope::of(&room) == mission.mission_scope && !room.is_frozen());
        if !is_active || mission.prompts >= Mission::MAX_PROMPTS {
            continue;
        }
        for agent in store.agents_in(&mission.room)? {
            if is_due(&mission, &agent, now, store)? {
                let prompted_at = mission.agent(&agent).and_then(|state| state.prompted_at);
                due.push(DuePrompt { mission: mission.id.clone(), agent, prompted_at });
            }
        }
    }
    Ok(due)
}

/// Whether an agent has been idle for at least its idle timeout.
fn is_due(mission: &Mission, agent: &AgentId, now: Time, store: &mut dyn Snapshot) -> Result<bool, Fault> {
    let (overridden, own) =
        (store.idle(&mission.mission_scope, agent)?, store.idle(&MissionScope::Global, agent)?);
    let Some(idle) = mission.idle(agent, overridden.as_ref(), own.as_ref()) else { return Ok(false) };
    let latest = store.latest_runs(agent, 1)?.pop();
    if latest.as_ref().is_some_and(|run| !matches!(run.state, RunState::Ended(_))) {
        return Ok(false);
    }
    let prompted = mission.agent(agent).and_then(|state| state.prompted_at);
    let since = prompted.max(latest.and_then(|run| run.ended_at));
    Ok(since.is_none_or(|since| now >= since.plus(idle.idle_timeout())))
}
