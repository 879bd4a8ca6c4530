//! Heartbeats: when each agent with a cron expression gets its next message.
//!
//! Times that passed while the hub was not running are not made up for.

use super::cron::Schedule;
use parlor_model::{AgentId, Time};
use std::collections::BTreeMap;

#[derive(Default)]
pub struct Heartbeats {
    agents: BTreeMap<AgentId, Heartbeat>,
}

struct Heartbeat {
    cron: Box<str>,
    schedule: Schedule,
    next: Option<Time>,
}

impl Heartbeats {
    /// Replaces the agents with a heartbeat. Agents whose expression did not change keep their next time; invalid
    /// expressions are left out.
    pub fn configure(&mut self, crons: BTreeMap<AgentId, Box<str>>, now: Time) {
        self.agents.retain(|agent, heartbeat| crons.get(agent) == Some(&heartbeat.cron));
        for (agent, cron) in crons {
            if self.agents.contains_key(&agent) {
                continue;
            }
            match Schedule::parse(&cron) {
                Some(schedule) => {
                    let next = schedule.next_after(now);
                    self.agents.insert(agent, Heartbeat { cron, schedule, next });
                }
                None => {
                    tracing::warn!(%agent, %cron, "the heartbeat of an agent is no valid cron expression")
                }
            }
        }
    }

    /// Returns the agents whose heartbeat is due, with their cron expressions, and computes their next times.
    pub fn take_due(&mut self, now: Time) -> Vec<(AgentId, Box<str>)> {
        let mut due = Vec::new();
        for (agent, heartbeat) in &mut self.agents {
            if heartbeat.next.is_some_and(|next| next <= now) {
                heartbeat.next = heartbeat.schedule.next_after(now);
                due.push((agent.clone(), heartbeat.cron.clone()));
            }
        }
        due
    }

    pub fn next(&self) -> Option<Time> {
        self.agents.values().filter_map(|heartbeat| heartbeat.next).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000_000;

    fn configure(heartbeats: &mut Heartbeats, crons: &[(&str, &str)], now: i64) {
        let crons = crons.iter().map(|(agent, cron)| (AgentId::stored(*agent), (*cron).into())).collect();
        heartbeats.configure(crons, Time(now));
    }

    fn due(heartbeats: &mut Heartbeats, now: i64) -> Vec<String> {
        heartbeats.take_due(Time(now)).into_iter().map(|(agent, _)| agent.to_string()).collect()
    }

    #[test]
    fn each_agent_is_due_once_per_time_of_its_schedule() {
        let mut heartbeats = Heartbeats::default();
        configure(&mut heartbeats, &[("a", "* * * * *"), ("b", "*/2 * * * *"), ("c", "nonsense")], 1);
        assert_eq!(heartbeats.next(), Some(Time(MINUTE)));
        assert_eq!(due(&mut heartbeats, MINUTE - 1), [""; 0]);
        assert_eq!(due(&mut heartbeats, MINUTE), ["a"]);
        assert_eq!(due(&mut heartbeats, MINUTE), [""; 0]);
        assert_eq!(due(&mut heartbeats, 7 * MINUTE), ["a", "b"], "missed times are not made up for");
        assert_eq!(heartbeats.next(), Some(Time(8 * MINUTE)));
    }

    #[test]
    fn a_changed_expression_begins_a_new_schedule_and_an_equal_one_continues() {
        let mut heartbeats = Heartbeats::default();
        configure(&mut heartbeats, &[("a", "* * * * *"), ("b", "* * * * *")], 1);
        configure(&mut heartbeats, &[("a", "* * * * *"), ("b", "0 * * * *")], 3 * MINUTE);
        assert_eq!(due(&mut heartbeats, 3 * MINUTE), ["a"]);
        configure(&mut heartbeats, &[], 3 * MINUTE);
        assert_eq!(heartbeats.next(), None);
    }
}
