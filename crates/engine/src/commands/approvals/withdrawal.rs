//! Withdrawal of open approvals, in the transaction that ends their run.

use crate::decide::Change;
use crate::effects::EffectsBuilder;
use parlor_model::audit::{Action, Subject, SubjectKind};
use parlor_model::{Approval, ApprovalKind, Decision, Event};
use std::sync::Arc;

/// Withdraws these open approvals and returns them. The caller passes them to [`audit_withdrawn`] after all
/// other changes.
#[must_use = "each withdrawal must be recorded in the audit log"]
pub fn withdraw(open: &[Approval], effects: &mut EffectsBuilder<'_>) -> Vec<Arc<Approval>> {
    let mut withdrawn = Vec::new();
    for approval in open {
        // An open approval can be decided, so none is skipped.
        let Ok(approval) = approval.decided(Decision::Withdrawn, effects.now) else { continue };
        let approval = Arc::new(approval);
        effects.change(Change::PutApproval(approval.clone()));
        effects.publish(Event::ApprovalDecided(approval.clone()));
        withdrawn.push(approval);
    }
    withdrawn
}

/// Records withdrawn tool approvals in the audit log. The input is identified only by its digest. Question
/// sets grant no permission, and the room sees them, so they are not recorded.
pub fn audit_withdrawn(withdrawn: &[Arc<Approval>], effects: &mut EffectsBuilder<'_>) {
    for approval in withdrawn.iter().filter(|approval| approval.subject.kind() == ApprovalKind::Tool) {
        let Approval { id, agent, agent_name, tool, room, digest, .. } = &**approval;
        let detail = format!("{tool} in room {room}, approval {id}, input {digest}");
        let (kind, id, name) = (SubjectKind::Agent, agent.as_str().into(), Some(agent_name.clone()));
        effects.audit(Action::ApprovalWithdrawn, Some(Subject { kind, id, name }), Some(detail.into()));
    }
}
