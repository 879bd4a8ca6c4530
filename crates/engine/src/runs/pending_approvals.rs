//! Deadlines of open approvals, and decisions that wait for their gateway.
//!
//! Owns: a decision is delivered once. Deadlines use the monotonic clock, so that clock changes do not move
//! them. Pure state without I/O: callers pass in events and the current time.

use super::scheduler::STORE_RETRY_DELAY;
use parlor_model::{AgentId, Approval, ApprovalId, RoomId, RunId, RunPlace};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Default)]
pub struct PendingApprovals {
    open: HashMap<ApprovalId, OpenApproval>,
    /// Decided approvals that have not been delivered to their gateway yet.
    undelivered: HashMap<ApprovalId, Arc<Approval>>,
}

struct OpenApproval {
    agent: AgentId,
    place: RunPlace,
    deadline: Instant,
    /// Time of the last attempt to commit the expiry.
    expiry_submitted_at: Option<Instant>,
}

impl PendingApprovals {
    pub fn add(&mut self, approval: &Approval, open_for: Duration, now: Instant) {
        let Approval { id, agent, place, .. } = approval;
        // A repeated request does not extend the deadline.
        self.open.entry(id.clone()).or_insert_with(|| OpenApproval {
            agent: agent.clone(),
            place: place.clone(),
            deadline: now + open_for,
            expiry_submitted_at: None,
        });
    }

    pub fn decided(&mut self, approval: &Arc<Approval>) {
        self.open.remove(&approval.id);
        self.undelivered.insert(approval.id.clone(), approval.clone());
    }

    /// Takes the undelivered decisions that satisfy `is_deliverable`; each is returned once.
    pub fn take_deliverable(&mut self, is_deliverable: impl Fn(&Approval) -> bool) -> Vec<Arc<Approval>> {
        let deliverable: Vec<_> =
            self.undelivered.values().filter(|approval| is_deliverable(approval)).cloned().collect();
        for approval in &deliverable {
            self.undelivered.remove(&approval.id);
        }
        deliverable
    }

    /// Drops the undelivered decisions of an ended run: the agent no longer waits for them.
    pub fn run_ended(&mut self, run: &RunId) {
        self.undelivered.retain(|_, approval| approval.run != *run);
    }

    pub fn agent_removed(&mut self, agent: &AgentId) {
        self.open.retain(|_, open| open.agent != *agent);
        self.undelivered.retain(|_, approval| approval.agent != *agent);
    }

    pub fn room_removed(&mut self, room: &RoomId) {
        self.open.retain(|_, open| open.place.room() != Some(room));
        self.undelivered.retain(|_, approval| approval.place.room() != Some(room));
    }

    pub fn forget(&mut self, id: &ApprovalId) {
        self.open.remove(id);
    }

    /// Returns the approvals to expire now. Each is returned once, and again after `STORE_RETRY_DELAY` while
    /// it is open.
    pub fn overdue(&mut self, now: Instant) -> Vec<ApprovalId> {
        let mut overdue = Vec::new();
        for (id, open) in &mut self.open {
            if open.next_attempt() <= now {
                open.expiry_submitted_at = Some(now);
                overdue.push(id.clone());
            }
        }
        overdue
    }

    pub fn next_deadline(&self) -> Option<Instant> {
        self.open.values().map(OpenApproval::next_attempt).min()
    }
}

impl OpenApproval {
    fn next_attempt(&self) -> Instant {
        self.expiry_submitted_at.map_or(self.deadline, |at| at + STORE_RETRY_DELAY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_model::ApprovalSubject;
    use parlor_model::{Decision, GatewayId, InputDigest, Payload, Time};

    const MINUTE: Duration = Duration::from_secs(60);

    fn approval(id: &str, run: &str) -> Approval {
        Approval {
            id: ApprovalId::stored(id),
            run: RunId::stored(run),
            place: RunPlace::Room(RoomId::stored("room")),
            agent: AgentId::stored("coder"),
            agent_name: "Coder".into(),
            gateway: GatewayId::stored("laptop"),
            request: id.into(),
            tool: "Bash".into(),
            subject: ApprovalSubject::Tool(Payload("{}".into())),
            digest: InputDigest([0; 32]),
            asked_at: Time(0),
            expires_at: Time(0).plus(MINUTE),
            decision: None,
            decided_at: None,
        }
    }

    fn decided(id: &str, run: &str) -> Arc<Approval> {
        Arc::new(approval(id, run).decided(Decision::AllowedByRule, Time(1)).unwrap())
    }

    #[test]
    fn an_undecided_approval_expires_once_and_is_retried_if_the_commit_fails() {
        let (mut pending_approvals, start, id) =
            (PendingApprovals::default(), Instant::now(), ApprovalId::stored("1"));
        pending_approvals.add(&approval("1", "run"), MINUTE, start);
        pending_approvals.add(&approval("1", "run"), MINUTE, start + MINUTE / 2);
        assert_eq!(
            pending_approvals.next_deadline(),
            Some(start + MINUTE),
            "a repeated request does not extend the deadline"
        );
        assert_eq!(pending_approvals.overdue(start + MINUTE / 2), []);
        let expired = [id];
        assert_eq!(pending_approvals.overdue(start + MINUTE), expired);
        assert_eq!(pending_approvals.overdue(start + MINUTE), []);
        assert_eq!(pending_approvals.overdue(start + MINUTE + STORE_RETRY_DELAY), expired);
        pending_approvals.decided(&decided("1", "run"));
        assert_eq!(pending_approvals.next_deadline(), None);
    }

    #[test]
    fn a_decision_is_delivered_once_and_not_after_its_run_ended() {
        let mut pending_approvals = PendingApprovals::default();
        pending_approvals.decided(&decided("1", "run"));
        pending_approvals.decided(&decided("2", "other"));
        assert_eq!(pending_approvals.take_deliverable(|_| false), []);
        pending_approvals.run_ended(&RunId::stored("other"));
        assert_eq!(pending_approvals.take_deliverable(|_| true), [decided("1", "run")]);
        assert_eq!(pending_approvals.take_deliverable(|_| true), []);
    }
}
