//! What people say to an agent while it is at work: offered to its running turn, where the agent can take it.
//!
//! Owns: a host is offered each of these once, in order. It leaves the queue when the store has it as part of that
//! turn; whatever is not taken is run next.

use super::super::host::Host;
use super::Scheduler;
use parlor_model::{AddressedBy, AgentId, MessageId, RoomId, Run, RunId};
use std::collections::HashSet;
use std::sync::Arc;

#[derive(Default)]
pub(super) struct Injections {
    /// Agents that take more while they are at work.
    able: HashSet<AgentId>,
    offered: HashSet<RunId>,
}

impl Injections {
    pub fn forget(&mut self, run: &RunId) {
        self.offered.remove(run);
    }
}

/// Something that was said to an agent, for the turn that it is in.
pub struct InjectionOffer {
    pub host: Arc<dyn Host>,
    pub agent: AgentId,
    pub room: RoomId,
    /// The turn that runs.
    pub run: RunId,
    /// The one that waits.
    pub added: RunId,
    pub message: MessageId,
}

/// What another agent asks has a chain of its own, and whether an agent should answer at all what was said to nobody is
/// not known yet.
pub(super) fn may_join(run: &Run) -> bool {
    run.trigger.is_some() && run.asked_by.is_none() && run.addressed == AddressedBy::Directly
}

/// Whether a text is a command to the agent of this name, behind those whom it mentions. Within a turn it would be text.
fn is_command(text: &str, name: &str) -> bool {
    let text = text.trim_start();
    let named = text.strip_prefix('@').and_then(|text| text.strip_prefix(name));
    let mut words = named.unwrap_or(text).split_whitespace().skip_while(|word| word.starts_with('@'));
    let word = words.next().and_then(|word| word.strip_prefix('/')).unwrap_or_default();
    // A path is none.
    word.starts_with(|first: char| first.is_ascii_alphabetic()) && !word.contains('/')
}

impl Scheduler {
    /// An agent that is there takes more while it is at work, or does not. Whoever comes anew was offered nothing.
    pub fn set_injectable(&mut self, agent: &AgentId, able: bool) {
        if able {
            self.adding.able.insert(agent.clone());
        } else {
            self.adding.able.remove(agent);
        }
        for waiting in self.queued.get(agent).into_iter().flatten() {
            self.adding.offered.remove(&waiting.run);
        }
    }

    /// What can be offered now; each is given once.
    pub fn offers(&mut self) -> Vec<InjectionOffer> {
        let mut offers = Vec::new();
        for agent in &self.adding.able {
            let Some(seat) = self.seats.get(agent) else { continue };
            let Some(link) = self.links.get(&seat.link) else { continue };
            // Only hosts of ours know turns by name.
            let queue = self.queued.get(agent).filter(|_| link.by_room);
            let mut passed_over: HashSet<&RoomId> = HashSet::new();
            for waiting in queue.into_iter().flatten() {
                let runs = self.runs_of.get(agent).into_iter().flatten();
                let mut here = runs.filter(|run| {
                    let live = self.running.get(*run).filter(|live| live.room == waiting.room);
                    live.is_some_and(|live| live.ending.is_none() && live.lost_since.is_none())
                });
                let (Some(run), Some(message)) = (here.next(), &waiting.message) else { continue };
                // What was said later does not overtake what has to wait.
                let joins = waiting.may_join && !is_command(&waiting.preview, &seat.name);
                if !joins || passed_over.contains(&waiting.room) {
                    passed_over.insert(&waiting.room);
                } else if !self.starting.contains(&waiting.run)
                    && self.adding.offered.insert(waiting.run.clone())
                {
                    let (host, agent, room) = (link.host.clone(), agent.clone(), waiting.room.clone());
                    let (run, added, message) = (run.clone(), waiting.run.clone(), message.clone());
                    offers.push(InjectionOffer { host, agent, room, run, added, message });
                }
            }
        }
        offers
    }

    /// Whether an offer still stands: what it is made to goes on, and nobody took back what was said.
    pub fn stands(&self, offer: &InjectionOffer) -> bool {
        let waits = self.queued.get(&offer.agent).into_iter().flatten().any(|one| one.run == offer.added);
        waits && self.is_active(&offer.run)
    }

    /// Turns of an agent that go on as far as is known here, for a host that may never have heard of them.
    pub fn unheard(&self, agent: &AgentId) -> Vec<RunId> {
        let lost = |run: &&RunId| {
            let live = self.running.get(*run).filter(|live| live.ending.is_none());
            live.is_some_and(|live| live.lost_since.is_some())
        };
        if !self.is_hosted_by_us(agent) {
            return Vec::new();
        }
        self.runs_of.get(agent).into_iter().flatten().filter(lost).cloned().collect()
    }

    /// Its host is told of it now, and says what becomes of it.
    pub fn heard_of(&mut self, run: &RunId) {
        if let Some(live) = self.running.get_mut(run) {
            live.lost_since = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{a_run, agent, desk, over};
    use super::*;
    use parlor_model::{Event, RunState};
    use std::time::Instant;

    fn said(id: &str, room: &str) -> Run {
        Run { trigger: Some(MessageId::stored(format!("m{id}"))), ..a_run(id, room, RunState::Queued) }
    }

    fn learn(scheduler: &mut Scheduler, run: Run) {
        scheduler.apply_event(&Event::RunChanged(Arc::new(run)), Instant::now());
    }

    fn offered(scheduler: &mut Scheduler) -> Vec<(String, String)> {
        scheduler.offers().iter().map(|offer| (offer.added.to_string(), offer.run.to_string())).collect()
    }

    fn pair(added: &str, run: &str) -> (String, String) {
        (added.into(), run.into())
    }

    #[test]
    fn what_is_said_to_a_busy_agent_is_offered_once_in_order_and_again_to_who_comes_anew() {
        let (mut scheduler, link) =
            desk(Some(true), &[("1", "a", RunState::Running), ("2", "b", RunState::Running)]);
        learn(&mut scheduler, said("3", "a"));
        assert_eq!(offered(&mut scheduler), [], "it has not said that it takes more");
        scheduler.set_injectable(&agent(), true);
        learn(&mut scheduler, said("4", "a"));
        assert_eq!(offered(&mut scheduler), [pair("3", "1"), pair("4", "1")]);
        assert_eq!(offered(&mut scheduler), [], "once");
        scheduler.disconnect_gateway(link, Instant::now());
        let again = super::super::tests::link(&mut scheduler, "g", true);
        scheduler.agent_online(&agent(), again, "Coder", Instant::now());
        scheduler.set_injectable(&agent(), true);
        assert_eq!(offered(&mut scheduler), [], "whether it goes on is not known yet");
        scheduler.mark_alive(&agent(), None);
        assert_eq!(offered(&mut scheduler), [pair("3", "1"), pair("4", "1")]);
    }

    #[test]
    fn what_cannot_join_is_not_overtaken_and_nothing_joins_what_ends() {
        let (mut scheduler, _) =
            desk(Some(true), &[("1", "a", RunState::Running), ("2", "b", RunState::Running)]);
        scheduler.set_injectable(&agent(), true);
        learn(&mut scheduler, Run { asked_by: Some(AgentId::stored("another")), ..said("3", "a") });
        learn(&mut scheduler, said("4", "a"));
        learn(&mut scheduler, said("5", "b"));
        learn(&mut scheduler, said("6", "c"));
        assert_eq!(offered(&mut scheduler), [pair("5", "2")]);
        learn(&mut scheduler, said("7", "b"));
        scheduler.cancel_runs(&super::super::tests::room("b"), None, Instant::now());
        assert_eq!(offered(&mut scheduler), []);
        learn(&mut scheduler, said("8", "a"));
        scheduler.apply_event(&over("1"), Instant::now());
        assert_eq!(offered(&mut scheduler), [], "it is its turn, or will be");
    }

    #[test]
    fn a_command_is_known_behind_mentions_and_a_path_is_none() {
        let texts = ["/compact", "@coder /compact now", "  @a @b /plan tea", "@Code Reviewer /compact"];
        for text in texts {
            assert!(is_command(text, "Code Reviewer"), "{text}");
        }
        for text in ["", "/", "// no", "/etc/passwd is world readable", "see /compact", "@coder hello"] {
            assert!(!is_command(text, "Code Reviewer"), "{text}");
        }
    }

    #[test]
    fn a_foreign_host_is_offered_nothing() {
        let (mut scheduler, _) = desk(Some(false), &[("1", "a", RunState::Running)]);
        scheduler.set_injectable(&agent(), true);
        learn(&mut scheduler, said("2", "a"));
        assert_eq!(offered(&mut scheduler), []);
    }
}
