//! Withdraws the open approvals of a room that is deleted.

use crate::decide::Change;
use crate::effects::EffectsBuilder;
use parlor_model::audit::{Action, Subject, SubjectKind};
use parlor_model::{Approval, ApprovalKind, Decision, Event};
use std::sync::Arc;

/// Withdraws open approvals and returns them as decided.
pub fn withdraw(open: &[Approval], effects: &mut EffectsBuilder<'_>) -> Vec<Arc<Approval>> {
    // Skips none of them: an open approval can be decided.
    let decided = open.iter().filter_map(|open| open.decided(Decision::Withdrawn, effects.now).ok());
    let withdrawn: Vec<Arc<Approval>> = decided.map(Arc::new).collect();
    for approval in &withdrawn {
        effects.change(Change::PutApproval(approval.clone()));
        effects.publish(Event::ApprovalDecided(approval.clone()));
    }
    withdrawn
}

/// Records withdrawn permission requests in the audit log. Question sets grant no permission, so they are not
/// recorded.
pub fn audit_withdrawn(withdrawn: &[Arc<Approval>], effects: &mut EffectsBuilder<'_>) {
    for approval in withdrawn.iter().filter(|approval| approval.subject.kind() == ApprovalKind::Tool) {
        let Approval { tool, room, id, digest, agent, agent_name, .. } = &**approval;
        let (id_of_agent, name) = (agent.as_str().into(), Some(agent_name.clone()));
        let subject = Subject { kind: SubjectKind::Agent, id: id_of_agent, name };
        let detail = format!("{tool} in room {room}, approval {id}, input {digest}");
        effects.audit(Action::ApprovalWithdrawn, Some(subject), Some(detail.into()));
    }
}
