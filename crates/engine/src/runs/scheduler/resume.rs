//! Hosts that name the turn they speak in: those are told when its end is kept, and can come back to it.

use super::{GatewayConnectionId, ReplyBinding, Scheduler};
use parlor_model::{AgentId, MessageId, RoomId, Run, RunId, RunOutcome, RunState};

/// A turn whose end is kept, and who is to know.
pub struct EndedRun {
    pub link: GatewayConnectionId,
    pub agent: AgentId,
    pub room: RoomId,
    pub run: RunId,
    pub outcome: RunOutcome,
}

/// What becomes of a turn that its host comes back to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResumeStatus {
    GoesOn,
    /// Its end is on the way to the store; the host is told when it is there.
    Ending,
    Unknown,
}

impl Scheduler {
    /// As [`Scheduler::bind`], for a host that says in which turn.
    pub fn bind_named(
        &mut self,
        agent: &AgentId,
        room: &RoomId,
        reply: &MessageId,
        run: &RunId,
    ) -> ReplyBinding {
        let own = self.runs_of.get(agent).is_some_and(|runs| runs.contains(run));
        let Some(live) = self.running.get_mut(run).filter(|live| own && live.room == *room) else {
            return ReplyBinding::Gone;
        };
        if live.ending.is_some() {
            return ReplyBinding::Over;
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
                ResumeStatus::GoesOn
            }
            None => ResumeStatus::Unknown,
        }
    }

    pub(super) fn note_over(&mut self, run: &Run) {
        let RunState::Ended(outcome) = &run.state else { return };
        let Some(link) = self.seats.get(&run.agent).map(|seat| seat.link) else { return };
        let names_turns = self.links.get(&link).is_some_and(|link| link.by_room);
        if names_turns && self.running.contains_key(&run.id) {
            let (agent, room) = (run.agent.clone(), run.room.clone());
            self.over.push(EndedRun { link, agent, room, run: run.id.clone(), outcome: outcome.clone() });
        }
    }

    pub fn take_over(&mut self) -> Vec<EndedRun> {
        std::mem::take(&mut self.over)
    }
}

#[cfg(test)]
mod tests {
    use super::super::PendingEnd;
    use super::super::tests::{agent, desk, over, room};
    use super::*;
    use std::time::{Duration, Instant};

    const PATIENCE: Duration = Duration::from_secs(60);

    fn run(id: &str) -> RunId {
        RunId::stored(id)
    }

    fn reply(id: &str) -> MessageId {
        MessageId::stored(id)
    }

    #[test]
    fn what_is_said_in_a_turn_of_that_name_is_said_in_no_other() {
        let (mut scheduler, _) =
            desk(Some(true), &[("1", "a", RunState::Running), ("2", "b", RunState::Running)]);
        let mut bind = |at: &str, id: &str| scheduler.bind_named(&agent(), &room(at), &reply("r"), &run(id));
        assert_eq!(bind("a", "1"), ReplyBinding::Run(run("1"), true));
        assert_eq!(bind("a", "1"), ReplyBinding::Run(run("1"), false));
        assert_eq!(bind("a", "2"), ReplyBinding::Gone, "it is elsewhere");
        assert_eq!(bind("a", "3"), ReplyBinding::Gone);
        assert_eq!(
            scheduler.bind_named(&AgentId::stored("x"), &room("b"), &reply("r"), &run("2")),
            ReplyBinding::Gone
        );
        scheduler.end(&run("1"), PendingEnd::plain(RunOutcome::Complete));
        assert_eq!(scheduler.bind_named(&agent(), &room("a"), &reply("r"), &run("1")), ReplyBinding::Over);
    }

    #[test]
    fn a_host_that_comes_back_goes_on_with_what_it_names_and_nothing_else() {
        let (mut scheduler, link) =
            desk(Some(true), &[("1", "a", RunState::Running), ("2", "b", RunState::Running)]);
        let now = Instant::now();
        scheduler.disconnect_gateway(link, now);
        let again = super::super::tests::link(&mut scheduler, "g", true);
        scheduler.agent_online(&agent(), again, "Coder", now);
        assert_eq!(scheduler.resume(&agent(), &run("1")), ResumeStatus::GoesOn);
        assert_eq!(scheduler.resume(&agent(), &run("9")), ResumeStatus::Unknown);
        assert_eq!(scheduler.resume(&AgentId::stored("x"), &run("1")), ResumeStatus::Unknown);
        scheduler.mark_alive(&agent(), Some(&room("a")));
        let due = scheduler.take_runs_to_finish(PATIENCE, now + PATIENCE);
        let ended: Vec<&str> = due.iter().map(|due| due.run.as_str()).collect();
        assert_eq!(ended, ["2"], "nobody came back for it");
        assert_eq!(scheduler.resume(&agent(), &run("2")), ResumeStatus::Ending);
    }

    #[test]
    fn the_end_of_a_turn_is_told_once_and_only_to_hosts_that_name_turns() {
        for (by_room, told) in [(true, 1), (false, 0)] {
            let (mut scheduler, _) = desk(Some(by_room), &[("1", "a", RunState::Running)]);
            let ended = over("1");
            scheduler.apply_event(&ended, Instant::now());
            scheduler.apply_event(&ended, Instant::now());
            assert_eq!(scheduler.take_over().len(), told);
        }
    }
}
