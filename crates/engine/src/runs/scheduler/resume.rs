//! Runs addressed by id: Parlor gateways name the run of each reply, can resume runs after a reconnect, and
//! are notified when the end of a run is committed.

use super::super::host::HostCommand;
use super::{ReplyBinding, Scheduler};
use parlor_model::{AgentId, MessageId, Run, RunContext, RunId, RunState};

/// State of a run that a reconnected gateway wants to resume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResumeStatus {
    Active,
    /// The end of the run is being committed; the gateway is notified when it is.
    Ending,
    Unknown,
}

impl Scheduler {
    /// Like [`Scheduler::bind`], for a gateway that names the run.
    pub fn bind_named(
        &mut self,
        agent: &AgentId,
        context: &RunContext,
        reply: &MessageId,
        run: &RunId,
    ) -> ReplyBinding {
        let own = self.runs_of.get(agent).is_some_and(|runs| runs.contains(run));
        let Some(live) = self.running.get_mut(run).filter(|live| own && live.place.is_in(context)) else {
            return ReplyBinding::UnknownRun;
        };
        if live.ending.is_some() {
            return ReplyBinding::Ended;
        }
        live.lost_since = None;
        let first = live.reply.is_none();
        live.reply.get_or_insert_with(|| reply.clone());
        ReplyBinding::Run(run.clone(), first)
    }

    pub fn resume(&mut self, agent: &AgentId, run: &RunId) -> ResumeStatus {
        let own = self.runs_of.get(agent).is_some_and(|runs| runs.contains(run));
        match self.running.get_mut(run).filter(|_| own) {
            Some(live) if live.ending.is_some() => ResumeStatus::Ending,
            Some(live) => {
                live.lost_since = None;
                ResumeStatus::Active
            }
            None => ResumeStatus::Unknown,
        }
    }

    /// Reports the committed end of an active run to its Parlor gateway.
    pub(super) fn report_ended_run(&mut self, run: &Run) {
        let RunState::Ended(outcome) = &run.state else { return };
        let Some(connection) = self.online_agents.get(&run.agent).map(|online| online.connection) else {
            return;
        };
        let names_runs = self.links.get(&connection).is_some_and(|connection| connection.abilities.by_room);
        if names_runs && self.running.contains_key(&run.id) {
            let (agent, context) = (run.agent.clone(), run.place.context());
            let (run, outcome) = (run.id.clone(), outcome.clone());
            self.commands.push((connection, HostCommand::Ended { agent, context, run, outcome }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::PendingEnd;
    use super::super::tests::{agent, at, over, scheduler_with};
    use super::*;
    use parlor_model::RunOutcome;
    use std::time::{Duration, Instant};

    const GRACE_PERIOD: Duration = Duration::from_secs(60);

    fn run(id: &str) -> RunId {
        RunId::stored(id)
    }

    fn reply(id: &str) -> MessageId {
        MessageId::stored(id)
    }

    #[test]
    fn a_reply_with_a_run_id_is_bound_to_no_other_run() {
        let (mut scheduler, _) =
            scheduler_with(Some(true), &[("1", "a", RunState::Running), ("2", "b", RunState::Running)]);
        let mut bind =
            |place: &str, id: &str| scheduler.bind_named(&agent(), &at(place), &reply("r"), &run(id));
        assert_eq!(bind("a", "1"), ReplyBinding::Run(run("1"), true));
        assert_eq!(bind("a", "1"), ReplyBinding::Run(run("1"), false));
        assert_eq!(bind("a", "2"), ReplyBinding::UnknownRun, "the run is in another room");
        assert_eq!(bind("a", "3"), ReplyBinding::UnknownRun);
        assert_eq!(
            scheduler.bind_named(&AgentId::stored("x"), &at("b"), &reply("r"), &run("2")),
            ReplyBinding::UnknownRun
        );
        scheduler.end(&run("1"), PendingEnd::plain(RunOutcome::Complete));
        assert_eq!(scheduler.bind_named(&agent(), &at("a"), &reply("r"), &run("1")), ReplyBinding::Ended);
    }

    #[test]
    fn a_reconnected_gateway_resumes_only_the_runs_it_names() {
        let (mut scheduler, connection) =
            scheduler_with(Some(true), &[("1", "a", RunState::Running), ("2", "b", RunState::Running)]);
        let now = Instant::now();
        scheduler.disconnect_gateway(connection, now);
        let again = super::super::tests::connection(&mut scheduler, "g", true);
        scheduler.agent_online(&agent(), again, "Coder", now);
        assert_eq!(scheduler.resume(&agent(), &run("1")), ResumeStatus::Active);
        assert_eq!(scheduler.resume(&agent(), &run("9")), ResumeStatus::Unknown);
        assert_eq!(scheduler.resume(&AgentId::stored("x"), &run("1")), ResumeStatus::Unknown);
        scheduler.mark_alive(&agent(), Some(&at("a")));
        let due = scheduler.take_runs_to_finish(GRACE_PERIOD, now + GRACE_PERIOD);
        let ended: Vec<&str> = due.iter().map(|due| due.run.as_str()).collect();
        assert_eq!(ended, ["2"], "it was not resumed");
        assert_eq!(scheduler.resume(&agent(), &run("2")), ResumeStatus::Ending);
    }

    #[test]
    fn the_end_of_a_run_is_reported_once_and_only_to_parlor_gateways() {
        for (by_room, expected) in [(true, 1), (false, 0)] {
            let (mut scheduler, _) = scheduler_with(Some(by_room), &[("1", "a", RunState::Running)]);
            let ended = over("1");
            scheduler.apply_event(&ended, Instant::now());
            scheduler.apply_event(&ended, Instant::now());
            assert_eq!(scheduler.take_commands().len(), expected);
        }
    }
}
