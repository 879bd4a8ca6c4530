//! Injection: offers messages for a busy agent to its active run, if the agent supports it.
//!
//! Owns: each message is offered once per registration of the agent, in order. A queued run leaves the queue
//! when the store has merged it into the active run; a message that the agent does not accept starts its own
//! run afterwards.

use super::super::host::Host;
use super::Scheduler;
use parlor_model::{AddressedBy, AgentId, MessageId, Run, RunContext, RunId};
use std::collections::HashSet;
use std::sync::Arc;

#[derive(Default)]
pub(super) struct Injections {
    /// Agents that declared the `inject` capability.
    injectable: HashSet<AgentId>,
    offered: HashSet<RunId>,
}

impl Injections {
    pub fn forget(&mut self, run: &RunId) {
        self.offered.remove(run);
    }
}

/// A message to inject into the active run of an agent.
pub struct InjectionOffer {
    pub host: Arc<dyn Host>,
    pub agent: AgentId,
    pub context: RunContext,
    /// The active run.
    pub run: RunId,
    /// The queued run of the message, which is merged into `run` when the agent accepts the message.
    pub added: RunId,
    pub message: MessageId,
}

/// Whether a queued run may be injected into an active one. A run requested by another agent keeps its own
/// lineage, and for a run by answer policy triage has not decided yet whether the agent should answer.
pub(super) fn may_join(run: &Run) -> bool {
    run.message().is_some() && run.asked_by.is_none() && run.addressed == AddressedBy::Directly
}

/// Whether a text is a slash command for the agent with this name, after any mentions. A command has to start
/// its own run, because an injected message is plain text to the agent.
fn is_command(text: &str, name: &str) -> bool {
    let text = text.trim_start();
    let named = text.strip_prefix('@').and_then(|text| text.strip_prefix(name));
    // In a room with a namesake the agent has a longer name, without further spaces.
    let named = named.filter(|rest| rest.starts_with(char::is_whitespace));
    let mut words = named.unwrap_or(text).split_whitespace().skip_while(|word| word.starts_with('@'));
    let word = words.next().and_then(|word| word.strip_prefix('/')).unwrap_or_default();
    // A path such as `/etc/passwd` is not a command.
    word.starts_with(|first: char| first.is_ascii_alphabetic()) && !word.contains('/')
}

impl Scheduler {
    /// Sets whether an online agent accepts injections. An agent that registers again has lost earlier
    /// offers, so its queued messages are offered again.
    pub fn set_injectable(&mut self, agent: &AgentId, injectable: bool) {
        if injectable {
            self.injections.injectable.insert(agent.clone());
        } else {
            self.injections.injectable.remove(agent);
        }
        for waiting in self.queued.get(agent).into_iter().flatten() {
            self.injections.offered.remove(&waiting.run);
        }
    }

    /// Returns the messages that can be offered now; each is returned once.
    pub(super) fn take_injection_offers(&mut self) -> Vec<InjectionOffer> {
        let mut offers = Vec::new();
        for agent in &self.injections.injectable {
            let Some(online) = self.online_agents.get(agent) else { continue };
            let Some(connection) = self.links.get(&online.connection) else { continue };
            // Only Parlor gateways address runs by id.
            let queue = self.queued.get(agent).filter(|_| connection.abilities.by_room);
            let mut passed_over: HashSet<RunContext> = HashSet::new();
            for waiting in queue.into_iter().flatten() {
                let context = waiting.place.context();
                let runs = self.runs_of.get(agent).into_iter().flatten();
                let mut here = runs.filter(|run| {
                    let live = self.running.get(*run).filter(|live| live.place.is_in(&context));
                    live.is_some_and(|live| live.ending.is_none() && live.lost_since.is_none())
                });
                let (Some(run), Some(message)) = (here.next(), &waiting.message) else { continue };
                // A later message does not overtake an earlier one that cannot be injected.
                let joins = waiting.may_join && !is_command(&waiting.preview, &online.name);
                if !joins || passed_over.contains(&context) {
                    passed_over.insert(context);
                } else if !self.starting.contains(&waiting.run)
                    && self.injections.offered.insert(waiting.run.clone())
                {
                    let (host, agent) = (connection.host.clone(), agent.clone());
                    let (run, added, message) = (run.clone(), waiting.run.clone(), message.clone());
                    offers.push(InjectionOffer { host, agent, context, run, added, message });
                }
            }
        }
        offers
    }

    /// Whether an offer is still valid: the active run is not ending and the message is still queued.
    pub fn is_offer_valid(&self, offer: &InjectionOffer) -> bool {
        let is_queued =
            self.queued.get(&offer.agent).into_iter().flatten().any(|queued| queued.run == offer.added);
        is_queued && self.is_active(&offer.run)
    }

    /// Returns the active runs of an agent that are in their grace period, so that they can be sent again to
    /// a Parlor gateway which may never have received them.
    pub fn lost_runs(&self, agent: &AgentId) -> Vec<RunId> {
        let lost = |run: &&RunId| {
            let live = self.running.get(*run).filter(|live| live.ending.is_none());
            live.is_some_and(|live| live.lost_since.is_some())
        };
        if !self.is_on_parlor_gateway(agent) {
            return Vec::new();
        }
        self.runs_of.get(agent).into_iter().flatten().filter(lost).cloned().collect()
    }

    /// Ends the grace period of a run that is being sent to its gateway again.
    pub fn mark_dispatched(&mut self, run: &RunId) {
        if let Some(live) = self.running.get_mut(run) {
            live.lost_since = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{a_run, agent, over, scheduler_with};
    use super::*;
    use parlor_model::{Event, RunCause, RunState};
    use std::time::Instant;

    fn queued(id: &str, room: &str) -> Run {
        let cause = RunCause::Message(MessageId::stored(format!("m{id}")));
        Run { cause, ..a_run(id, room, RunState::Queued) }
    }

    fn apply(scheduler: &mut Scheduler, run: Run) {
        scheduler.apply_event(&Event::RunChanged(Arc::new(run)), Instant::now());
    }

    fn offered(scheduler: &mut Scheduler) -> Vec<(String, String)> {
        scheduler
            .take_injection_offers()
            .iter()
            .map(|offer| (offer.added.to_string(), offer.run.to_string()))
            .collect()
    }

    fn pair(added: &str, run: &str) -> (String, String) {
        (added.into(), run.into())
    }

    #[test]
    fn messages_for_a_busy_agent_are_offered_once_in_order_and_again_after_a_reconnect() {
        let (mut scheduler, connection) =
            scheduler_with(Some(true), &[("1", "a", RunState::Running), ("2", "b", RunState::Running)]);
        apply(&mut scheduler, queued("3", "a"));
        assert_eq!(offered(&mut scheduler), [], "the agent did not declare the capability");
        scheduler.set_injectable(&agent(), true);
        apply(&mut scheduler, queued("4", "a"));
        assert_eq!(offered(&mut scheduler), [pair("3", "1"), pair("4", "1")]);
        assert_eq!(offered(&mut scheduler), [], "offered once");
        scheduler.disconnect_gateway(connection, Instant::now());
        let again = super::super::tests::connection(&mut scheduler, "g", true);
        scheduler.agent_online(&agent(), again, "Coder", Instant::now());
        scheduler.set_injectable(&agent(), true);
        assert_eq!(offered(&mut scheduler), [], "the active run may be lost");
        scheduler.mark_alive(&agent(), None);
        assert_eq!(offered(&mut scheduler), [pair("3", "1"), pair("4", "1")]);
    }

    #[test]
    fn a_run_that_cannot_be_injected_is_not_overtaken_and_an_ending_run_accepts_none() {
        let (mut scheduler, _) =
            scheduler_with(Some(true), &[("1", "a", RunState::Running), ("2", "b", RunState::Running)]);
        scheduler.set_injectable(&agent(), true);
        apply(&mut scheduler, Run { asked_by: Some(AgentId::stored("another")), ..queued("3", "a") });
        apply(&mut scheduler, queued("4", "a"));
        apply(&mut scheduler, queued("5", "b"));
        apply(&mut scheduler, queued("6", "c"));
        assert_eq!(offered(&mut scheduler), [pair("5", "2")]);
        apply(&mut scheduler, queued("7", "b"));
        scheduler.cancel_runs(&super::super::tests::room("b"), None, Instant::now());
        assert_eq!(offered(&mut scheduler), []);
        apply(&mut scheduler, queued("8", "a"));
        scheduler.apply_event(&over("1"), Instant::now());
        assert_eq!(offered(&mut scheduler), [], "the queued runs start on their own");
    }

    #[test]
    fn a_command_is_recognised_after_mentions_and_a_path_is_not_a_command() {
        let texts = ["/compact", "@coder /compact now", "  @a @b /plan tea", "@Code Reviewer /compact"];
        for text in texts {
            assert!(is_command(text, "Code Reviewer"), "{text}");
        }
        assert!(
            is_command("@coder-ada /compact", "coder"),
            "the name of the agent in a room with a namesake"
        );
        for text in ["", "/", "// no", "/etc/passwd is world readable", "see /compact", "@coder hello"] {
            assert!(!is_command(text, "Code Reviewer"), "{text}");
        }
    }

    #[test]
    fn a_third_party_gateway_gets_no_injection_offers() {
        let (mut scheduler, _) = scheduler_with(Some(false), &[("1", "a", RunState::Running)]);
        scheduler.set_injectable(&agent(), true);
        apply(&mut scheduler, queued("2", "a"));
        assert_eq!(offered(&mut scheduler), []);
    }
}
