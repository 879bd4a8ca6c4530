//! Audit entries about approvals and approval rules. An entry identifies the input of a tool only by its digest.

use crate::effects::EffectsBuilder;
use parlor_model::audit::{Action, Subject, SubjectKind};
use parlor_model::{AgentId, Approval, ApprovalKind, ApprovalRule, Decision, RunContext};

/// Records a decision, whether by a user, a rule or a timeout. `rule` is the rule that allowed the tool.
pub fn audit_decision(decided: &Approval, rule: Option<&ApprovalRule>, effects: &mut EffectsBuilder<'_>) {
    if let Some((action, agent, detail)) = decision_entry(decided, rule) {
        effects.audit(action, Some(agent), Some(detail.into()));
    }
}

/// Parts of the audit entry of a decision; `None` if the decision is not recorded.
pub fn decision_entry(decided: &Approval, rule: Option<&ApprovalRule>) -> Option<(Action, Subject, String)> {
    // Decisions on question sets grant no permission, and the room sees them, so they are not recorded.
    if decided.subject.kind() != ApprovalKind::Tool {
        return None;
    }
    let action = match decided.decision.as_ref()? {
        Decision::Allowed { .. } | Decision::AllowedByRule => Action::ApprovalAllowed,
        Decision::Denied { .. } => Action::ApprovalDenied,
        Decision::Expired => Action::ApprovalExpired,
        Decision::Answered { .. } => return None,
        Decision::Withdrawn => Action::ApprovalWithdrawn,
    };
    let rule = rule.map(|rule| format!(", by a rule of {}", rule.by)).unwrap_or_default();
    let Approval { id, tool, place, digest, .. } = decided;
    let location = match place.room() {
        Some(room) => RunContext::Room(room.clone()),
        None => place.context(),
    };
    let detail = format!("{tool} in {location}, approval {id}, input {digest}{rule}");
    Some((action, agent(&decided.agent, Some(&decided.agent_name)), detail))
}

/// Records that a rule was created or revoked.
pub fn audit_rule(action: Action, rule: &ApprovalRule, effects: &mut EffectsBuilder<'_>) {
    let detail = format!("{} in room {}", rule.tool, rule.room);
    effects.audit(action, Some(agent(&rule.agent, None)), Some(detail.into()));
}

fn agent(id: &AgentId, name: Option<&str>) -> Subject {
    Subject { kind: SubjectKind::Agent, id: id.as_str().into(), name: name.map(Into::into) }
}
