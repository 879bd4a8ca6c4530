//! Approvals in the scheduler: the run that an approval belongs to, and the delivery of decisions to
//! gateways.

use super::super::host::Host;
use super::Scheduler;
use parlor_model::{AgentId, Approval, ApprovalId, RunContext, RunId};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The run in which an agent requests an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunForApproval {
    In(RunId),
    /// The run was stopped: the request is withdrawn.
    Stopped,
    /// The agent has no active run in the context.
    NoRun,
}

impl Scheduler {
    /// Finds the run in which an agent requests an approval in a context. The request proves that the agent is
    /// alive, so it ends the grace period of that run.
    pub fn run_for_approval(&mut self, agent: &AgentId, context: &RunContext) -> RunForApproval {
        let runs = self.runs_of.get(agent).into_iter().flatten();
        let mut found = RunForApproval::NoRun;
        for run in runs {
            let Some(live) = self.running.get_mut(run).filter(|live| live.place.is_in(context)) else {
                continue;
            };
            if live.ending.is_none() {
                live.lost_since = None;
                return RunForApproval::In(run.clone());
            }
            found = RunForApproval::Stopped;
        }
        let stopped = self.stopped.contains_key(&(agent.clone(), context.clone()));
        if stopped { RunForApproval::Stopped } else { found }
    }

    /// Expires an approval immediately. Used at start-up for approvals that were open when the hub stopped.
    pub fn close_question(&mut self, approval: &Approval, now: Instant) {
        self.pending_approvals.add(approval, Duration::ZERO, now);
    }

    pub fn forget_approval(&mut self, approval: &ApprovalId) {
        self.pending_approvals.forget(approval);
    }

    pub(super) fn overdue(&mut self, now: Instant) -> Vec<ApprovalId> {
        self.pending_approvals.overdue(now)
    }

    /// Queues decisions for sending. A decision goes only to the gateway that requested the approval, and
    /// only while that gateway hosts the agent.
    pub(super) fn queue_decisions(&mut self) {
        let Self { pending_approvals, online_agents, links, decisions_to_send, .. } = self;
        let host = |approval: &Approval| {
            let connection = online_agents.get(&approval.agent)?.connection;
            links.get(&connection).filter(|found| found.gateway == approval.gateway).map(|_| connection)
        };
        for approval in pending_approvals.take_deliverable(|approval| host(approval).is_some()) {
            decisions_to_send.extend(host(&approval).map(|connection| (connection, approval)));
        }
    }

    pub(super) fn take_decisions(&mut self) -> Vec<(Arc<dyn Host>, Arc<Approval>)> {
        let mut decisions = Vec::new();
        for (connection, approval) in std::mem::take(&mut self.decisions_to_send) {
            match self.host(connection) {
                Some(host) => decisions.push((host, approval)),
                // The connection was just lost: keep the decision for when the gateway reconnects.
                None => self.pending_approvals.decided(&approval),
            }
        }
        decisions
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{agent, at, connection, over, room, scheduler_with};
    use super::*;
    use parlor_model::ApprovalSubject;
    use parlor_model::{Decision, Event, GatewayId, InputDigest, Payload, RunPlace, RunState, Time};

    fn answered(request: &str) -> Event {
        let approval = Approval {
            id: ApprovalId::stored(request),
            run: RunId::stored("1"),
            place: RunPlace::Room(room("a")),
            agent: agent(),
            agent_name: "Coder".into(),
            gateway: GatewayId::stored("g"),
            request: request.into(),
            tool: "Bash".into(),
            subject: ApprovalSubject::Tool(Payload("{}".into())),
            digest: InputDigest([0; 32]),
            asked_at: Time(0),
            expires_at: Time(1),
            decision: Some(Decision::Expired),
            decided_at: Some(Time(1)),
        };
        Event::ApprovalDecided(Arc::new(approval))
    }

    #[test]
    fn a_decision_is_sent_only_to_the_requesting_gateway_even_after_a_reconnect() {
        let (mut scheduler, first) = scheduler_with(Some(false), &[("1", "a", RunState::Running)]);
        let delivered = |scheduler: &mut Scheduler| -> Vec<String> {
            scheduler.take_decisions().iter().map(|(_, approval)| approval.request.to_string()).collect()
        };
        scheduler.apply_event(&answered("here"), Instant::now());
        assert_eq!(delivered(&mut scheduler), ["here"]);
        assert_eq!(delivered(&mut scheduler), [""; 0], "delivered once");
        scheduler.disconnect_gateway(first, Instant::now());
        scheduler.apply_event(&answered("away"), Instant::now());
        let other = connection(&mut scheduler, "h", false);
        scheduler.agent_online(&agent(), other, "Coder", Instant::now());
        assert_eq!(delivered(&mut scheduler), [""; 0], "another gateway hosts the agent");
        let back = connection(&mut scheduler, "g", false);
        scheduler.agent_online(&agent(), back, "Coder", Instant::now());
        scheduler.disconnect_gateway(back, Instant::now());
        assert_eq!(delivered(&mut scheduler), [""; 0], "disconnected before the delivery");
        let back = connection(&mut scheduler, "g", false);
        scheduler.agent_online(&agent(), back, "Coder", Instant::now());
        assert_eq!(delivered(&mut scheduler), ["away"]);
    }

    #[test]
    fn an_approval_belongs_to_the_active_run_and_is_not_requested_after_a_stop() {
        let (mut scheduler, _) = scheduler_with(Some(false), &[("1", "a", RunState::Running)]);
        assert_eq!(scheduler.run_for_approval(&agent(), &at("a")), RunForApproval::In(RunId::stored("1")));
        assert_eq!(scheduler.run_for_approval(&agent(), &at("b")), RunForApproval::NoRun);
        scheduler.cancel_runs(&room("a"), Some(&agent()), Instant::now());
        assert_eq!(scheduler.run_for_approval(&agent(), &at("a")), RunForApproval::Stopped);
        scheduler.apply_event(&over("1"), Instant::now());
        assert_eq!(
            scheduler.run_for_approval(&agent(), &at("a")),
            RunForApproval::Stopped,
            "the stop is not confirmed yet"
        );
        scheduler.stopped(&agent(), Some(&at("a")));
        assert_eq!(scheduler.run_for_approval(&agent(), &at("a")), RunForApproval::NoRun);
    }
}
