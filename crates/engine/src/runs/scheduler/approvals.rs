//! Agents that ask: in which turn they do, and who hears the answer.

use super::{Host, Scheduler};
use parlor_model::{AgentId, Approval, ApprovalId, RoomId, RunId};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// In which turn an agent asks something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunForApproval {
    In(RunId),
    /// In one that was stopped.
    Stopped,
    /// In none.
    NoRun,
}

impl Scheduler {
    /// The turn in which an agent asks something in a room: it is alive, whatever was thought of it.
    pub fn asks(&mut self, agent: &AgentId, room: &RoomId) -> RunForApproval {
        let runs = self.runs_of.get(agent).into_iter().flatten();
        let mut asks = RunForApproval::NoRun;
        for run in runs {
            let Some(live) = self.running.get_mut(run).filter(|live| live.room == *room) else { continue };
            if live.ending.is_none() {
                live.lost_since = None;
                return RunForApproval::In(run.clone());
            }
            asks = RunForApproval::Stopped;
        }
        let stopped = self.stopped.contains_key(&(agent.clone(), room.clone()));
        if stopped { RunForApproval::Stopped } else { asks }
    }

    /// A question that was open when nobody was here to answer: its time is over.
    pub fn close_question(&mut self, approval: &Approval, now: Instant) {
        self.pending_approvals.asked(approval, Duration::ZERO, now);
    }

    pub fn forget_question(&mut self, approval: &ApprovalId) {
        self.pending_approvals.forget(approval);
    }

    pub fn is_overdue(&self, approval: &ApprovalId, now: Instant) -> bool {
        self.pending_approvals.is_overdue(approval, now)
    }

    pub fn overdue(&mut self, now: Instant) -> Vec<ApprovalId> {
        self.pending_approvals.overdue(now)
    }

    /// Only the gateway that asked, while it hosts the agent, hears the answer.
    pub(super) fn hand_answers_out(&mut self) {
        let Self { pending_approvals, seats, links, answers, .. } = self;
        let host = |approval: &Approval| {
            let link = seats.get(&approval.agent)?.link;
            links.get(&link).filter(|found| found.gateway == approval.gateway).map(|_| link)
        };
        for approval in pending_approvals.take_deliverable(|approval| host(approval).is_some()) {
            answers.extend(host(&approval).map(|link| (link, approval)));
        }
    }

    pub fn take_answers(&mut self) -> Vec<(Arc<dyn Host>, Arc<Approval>)> {
        let mut told = Vec::new();
        for (link, approval) in std::mem::take(&mut self.answers) {
            match self.host(link) {
                Some(host) => told.push((host, approval)),
                // It went just now, and may be back.
                None => self.pending_approvals.decided(&approval),
            }
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{agent, desk, link, over, room};
    use super::*;
    use parlor_model::ApprovalKind;
    use parlor_model::{Decision, Event, GatewayId, InputDigest, Payload, RunState, Time};

    fn answered(request: &str) -> Event {
        let approval = Approval {
            id: ApprovalId::stored(request),
            run: RunId::stored("1"),
            room: room("a"),
            agent: agent(),
            agent_name: "Coder".into(),
            gateway: GatewayId::stored("g"),
            request: request.into(),
            tool: "Bash".into(),
            kind: ApprovalKind::Tool,
            input: Payload("{}".into()),
            digest: InputDigest([0; 32]),
            asked_at: Time(0),
            expires_at: Time(1),
            decision: Some(Decision::Expired),
            decided_at: Some(Time(1)),
        };
        Event::ApprovalDecided(Arc::new(approval))
    }

    #[test]
    fn only_the_gateway_that_asked_hears_the_answer_also_when_it_was_away() {
        let (mut scheduler, first) = desk(Some(false), &[("1", "a", RunState::Running)]);
        let heard = |scheduler: &mut Scheduler| -> Vec<String> {
            scheduler.take_answers().iter().map(|(_, approval)| approval.request.to_string()).collect()
        };
        scheduler.apply_event(&answered("here"), Instant::now());
        assert_eq!(heard(&mut scheduler), ["here"]);
        assert_eq!(heard(&mut scheduler), [""; 0], "once");
        scheduler.disconnect_gateway(first, Instant::now());
        scheduler.apply_event(&answered("away"), Instant::now());
        let other = link(&mut scheduler, "h", false);
        scheduler.agent_online(&agent(), other, "Coder", Instant::now());
        assert_eq!(heard(&mut scheduler), [""; 0], "another gateway has it now");
        let back = link(&mut scheduler, "g", false);
        scheduler.agent_online(&agent(), back, "Coder", Instant::now());
        scheduler.disconnect_gateway(back, Instant::now());
        assert_eq!(heard(&mut scheduler), [""; 0], "it went before it could be told");
        let back = link(&mut scheduler, "g", false);
        scheduler.agent_online(&agent(), back, "Coder", Instant::now());
        assert_eq!(heard(&mut scheduler), ["away"]);
    }

    #[test]
    fn an_agent_asks_in_its_turn_and_not_after_a_stop() {
        let (mut scheduler, _) = desk(Some(false), &[("1", "a", RunState::Running)]);
        assert_eq!(scheduler.asks(&agent(), &room("a")), RunForApproval::In(RunId::stored("1")));
        assert_eq!(scheduler.asks(&agent(), &room("b")), RunForApproval::NoRun);
        scheduler.cancel_runs(&room("a"), Some(&agent()), Instant::now());
        assert_eq!(scheduler.asks(&agent(), &room("a")), RunForApproval::Stopped);
        scheduler.apply_event(&over("1"), Instant::now());
        assert_eq!(
            scheduler.asks(&agent(), &room("a")),
            RunForApproval::Stopped,
            "its host has not said that it is over"
        );
        scheduler.stopped(&agent(), Some(&room("a")));
        assert_eq!(scheduler.asks(&agent(), &room("a")), RunForApproval::NoRun);
    }
}
