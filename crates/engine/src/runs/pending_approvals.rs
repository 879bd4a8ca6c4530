//! The questions of agents: how long each is open, and who is to hear the answer.
//!
//! Owns: an answer is handed out once, and only to the gateway that asked; time is that of a clock that nobody sets.
//! Pure: it is told what happened and asked what to do.

use super::scheduler::STORE_RETRY_DELAY;
use parlor_model::{AgentId, Approval, ApprovalId, RoomId, RunId};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Default)]
pub struct PendingApprovals {
    open: HashMap<ApprovalId, OpenApproval>,
    /// Decided while the gateway that asked was away.
    unheard: HashMap<ApprovalId, Arc<Approval>>,
}

struct OpenApproval {
    agent: AgentId,
    room: RoomId,
    deadline: Instant,
    /// When the store was asked to close it.
    asked_at: Option<Instant>,
}

impl PendingApprovals {
    pub fn asked(&mut self, approval: &Approval, open_for: Duration, now: Instant) {
        let Approval { id, agent, room, .. } = approval;
        // Asked again, it is open no longer for that.
        self.open.entry(id.clone()).or_insert_with(|| OpenApproval {
            agent: agent.clone(),
            room: room.clone(),
            deadline: now + open_for,
            asked_at: None,
        });
    }

    pub fn decided(&mut self, approval: &Arc<Approval>) {
        self.open.remove(&approval.id);
        self.unheard.insert(approval.id.clone(), approval.clone());
    }

    /// What was decided and is heard now, each once.
    pub fn take_deliverable(&mut self, hears: impl Fn(&Approval) -> bool) -> Vec<Arc<Approval>> {
        let heard: Vec<_> = self.unheard.values().filter(|approval| hears(approval)).cloned().collect();
        for approval in &heard {
            self.unheard.remove(&approval.id);
        }
        heard
    }

    /// Nobody waits any more for what was asked in this turn.
    pub fn run_ended(&mut self, run: &RunId) {
        self.unheard.retain(|_, approval| approval.run != *run);
    }

    pub fn agent_gone(&mut self, agent: &AgentId) {
        self.open.retain(|_, open| open.agent != *agent);
        self.unheard.retain(|_, approval| approval.agent != *agent);
    }

    pub fn room_gone(&mut self, room: &RoomId) {
        self.open.retain(|_, open| open.room != *room);
        self.unheard.retain(|_, approval| approval.room != *room);
    }

    pub fn forget(&mut self, id: &ApprovalId) {
        self.open.remove(id);
    }

    pub fn is_overdue(&self, id: &ApprovalId, now: Instant) -> bool {
        self.open.get(id).is_some_and(|open| open.deadline <= now)
    }

    /// Those to close now; each is given once, and again if the store did not take it.
    pub fn overdue(&mut self, now: Instant) -> Vec<ApprovalId> {
        let mut overdue = Vec::new();
        for (id, open) in &mut self.open {
            if open.next_look() <= now {
                open.asked_at = Some(now);
                overdue.push(id.clone());
            }
        }
        overdue
    }

    pub fn next_deadline(&self) -> Option<Instant> {
        self.open.values().map(OpenApproval::next_look).min()
    }
}

impl OpenApproval {
    fn next_look(&self) -> Instant {
        self.asked_at.map_or(self.deadline, |asked| asked + STORE_RETRY_DELAY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_model::ApprovalKind;
    use parlor_model::{Decision, GatewayId, InputDigest, Payload, Time};

    const MINUTE: Duration = Duration::from_secs(60);

    fn approval(id: &str, run: &str) -> Approval {
        Approval {
            id: ApprovalId::stored(id),
            run: RunId::stored(run),
            room: RoomId::stored("room"),
            agent: AgentId::stored("coder"),
            agent_name: "Coder".into(),
            gateway: GatewayId::stored("laptop"),
            request: id.into(),
            tool: "Bash".into(),
            kind: ApprovalKind::Tool,
            input: Payload("{}".into()),
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
    fn what_nobody_answered_is_closed_once_and_again_if_that_was_not_taken() {
        let (mut pending_approvals, start, one) =
            (PendingApprovals::default(), Instant::now(), ApprovalId::stored("1"));
        pending_approvals.asked(&approval("1", "run"), MINUTE, start);
        pending_approvals.asked(&approval("1", "run"), MINUTE, start + MINUTE / 2);
        assert_eq!(
            pending_approvals.next_deadline(),
            Some(start + MINUTE),
            "asked again it is open no longer"
        );
        assert_eq!(pending_approvals.overdue(start + MINUTE / 2), []);
        assert!(!pending_approvals.is_overdue(&one, start + MINUTE / 2));
        assert!(pending_approvals.is_overdue(&one, start + MINUTE));
        let all = [one];
        assert_eq!(pending_approvals.overdue(start + MINUTE), all);
        assert_eq!(pending_approvals.overdue(start + MINUTE), []);
        assert_eq!(pending_approvals.overdue(start + MINUTE + STORE_RETRY_DELAY), all);
        pending_approvals.decided(&decided("1", "run"));
        assert_eq!(pending_approvals.next_deadline(), None);
    }

    #[test]
    fn an_answer_is_heard_once_and_not_after_its_turn() {
        let mut pending_approvals = PendingApprovals::default();
        pending_approvals.decided(&decided("1", "run"));
        pending_approvals.decided(&decided("2", "other"));
        assert_eq!(pending_approvals.take_deliverable(|_| false), []);
        pending_approvals.run_ended(&RunId::stored("other"));
        assert_eq!(pending_approvals.take_deliverable(|_| true), [decided("1", "run")]);
        assert_eq!(pending_approvals.take_deliverable(|_| true), []);
    }
}
