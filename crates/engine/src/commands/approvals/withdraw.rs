//! Withdraws the open approvals of a run, agent or room that ends.

use crate::audit;
use crate::decide::Change;
use crate::effects::EffectsBuilder;
use parlor_model::audit::Action;
use parlor_model::{Approval, ApprovalKind, Decision, Event};
use std::sync::Arc;

/// Withdraws open approvals and returns them as decided, for [`audit_withdrawn`].
pub fn withdraw(open: &[Approval], effects: &mut EffectsBuilder<'_>) -> Vec<Arc<Approval>> {
    let mut withdrawn = Vec::new();
    for approval in open {
        // Cannot fail: an open approval can be decided.
        let Ok(decided) = approval.decided(Decision::Withdrawn, effects.now) else { continue };
        let decided = Arc::new(decided);
        effects.change(Change::PutApproval(decided.clone()));
        effects.publish(Event::ApprovalDecided(decided.clone()));
        withdrawn.push(decided);
    }
    withdrawn
}

/// Records withdrawn approvals in the audit log, at the end of a decision. Question sets grant no permission, so
/// they are not recorded.
pub fn audit_withdrawn(withdrawn: &[Arc<Approval>], effects: &mut EffectsBuilder<'_>) {
    for approval in withdrawn.iter().filter(|approval| approval.subject.kind() == ApprovalKind::Tool) {
        let subject = audit::agent(&approval.agent, Some(&approval.agent_name));
        let tool = audit::in_use(&approval.tool, &approval.room);
        let detail = format!("{tool}, approval {}, input {}", approval.id, approval.digest);
        effects.audit(Action::ApprovalWithdrawn, Some(subject), Some(detail.into()));
    }
}
