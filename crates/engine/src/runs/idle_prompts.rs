//! Prompts agents that are idle while there is a mission. What was prompted is in the store: a hub that starts anew
//! goes on where it was.

use crate::Fault;
use crate::Hub;
use crate::hub::WeakHub;
use crate::ports::Snapshot;
use parlor_model::{AgentId, Caller, Command, Mission, MissionId, MissionScope, RunState, Time};
use std::collections::HashSet;
use std::time::Duration;
use tokio::time::Instant;

/// How often it is looked at, where nobody rings.
const POLL_INTERVAL: Duration = Duration::from_secs(10);
/// And how often at most, however many rooms change.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(250);

pub async fn run_loop(weak: WeakHub) {
    loop {
        let Some(hub) = weak.upgrade().filter(|hub| !hub.is_closing()) else { return };
        let looked = Instant::now();
        hub.prompt_idle().await;
        let scheduler_handle = hub.shared_turns();
        // The hub must be able to end while nothing happens.
        drop(hub);
        let _ = tokio::time::timeout(POLL_INTERVAL, scheduler_handle.idle.notified()).await;
        tokio::time::sleep_until(looked + MIN_POLL_INTERVAL).await;
    }
}

impl Hub {
    /// Prompts every agent whose time it is. By the hub's clock, which a test may set.
    pub async fn prompt_idle(&self) {
        let now = self.now();
        // Asked again with the next look.
        let Ok(mut due) = self.read_snapshot(move |_, store| due(now, store)).await else { return };
        // Of several missions the one that has waited for the agent the longest: none of them starves.
        due.sort_by_key(|due| due.prompted_at);
        let mut prompted = HashSet::new();
        for DuePrompt { mission, agent, .. } in due {
            // One prompt at a time: the desk hears of it behind the store.
            if !prompted.contains(&agent) && self.turns().desk().is_idle(&agent) {
                let prompt = Command::PromptIdle { mission, agent: agent.clone() };
                // What does not hold any more is nobody's mistake.
                if self.execute(&Caller::OPERATOR, prompt).await.is_ok() {
                    prompted.insert(agent);
                }
            }
        }
    }
}

/// An agent whose time it is.
struct DuePrompt {
    mission: MissionId,
    agent: AgentId,
    /// When it was last prompted for this mission.
    prompted_at: Option<Time>,
}

/// Whose time it is, as far as the store knows. Costs as much as there are agents in the rooms of missions that are on:
/// nothing where there is none.
fn due(now: Time, store: &mut dyn Snapshot) -> Result<Vec<DuePrompt>, Fault> {
    let mut due = Vec::new();
    for mission in store.missions_on()? {
        let room = store.room(&mission.room)?;
        let holds =
            room.is_some_and(|room| MissionScope::of(&room) == mission.mission_scope && !room.is_frozen());
        if !holds || mission.prompts >= Mission::MOST_PROMPTS {
            continue;
        }
        for agent in store.agents_in(&mission.room)? {
            if is_due(&mission, &agent, now, store)? {
                let prompted_at = mission.agent(&agent).and_then(|known| known.prompted_at);
                due.push(DuePrompt { mission: mission.id.clone(), agent, prompted_at });
            }
        }
    }
    Ok(due)
}

/// Whether an agent has had nothing to do for so long that it is prompted.
fn is_due(mission: &Mission, agent: &AgentId, now: Time, store: &mut dyn Snapshot) -> Result<bool, Fault> {
    let (overridden, own) =
        (store.idle(&mission.mission_scope, agent)?, store.idle(&MissionScope::Global, agent)?);
    let Some(idle) = mission.idle(agent, overridden.as_ref(), own.as_ref()) else { return Ok(false) };
    let latest = store.latest_runs(agent, 1)?.pop();
    if latest.as_ref().is_some_and(|run| !matches!(run.state, RunState::Ended(_))) {
        return Ok(false);
    }
    let prompted = mission.agent(agent).and_then(|known| known.prompted_at);
    let since = prompted.max(latest.and_then(|run| run.ended_at));
    Ok(since.is_none_or(|since| now >= since.plus(idle.idle_timeout())))
}
