//! Records decisions on approvals. An approval is decided once.

use crate::changes::ApprovalChange;
use crate::effects::EffectsBuilder;
use crate::permission::AuthContext;
use parlor_model::{Approval, Decider, Decision, EntityKind, Event, Refusal};
use std::sync::Arc;

/// Stores and publishes a decision.
pub fn record_decision(
    approval: &Approval,
    decision: Decision,
    effects: &mut EffectsBuilder<'_>,
) -> Result<Arc<Approval>, Refusal> {
    let decided = approval.decided(decision, effects.now);
    let decided = Arc::new(decided.map_err(|_| Refusal::AlreadyExists(EntityKind::Approval))?);
    effects.change(ApprovalChange::PutApproval(decided.clone()));
    effects.publish(Event::ApprovalDecided(decided.clone()));
    Ok(decided)
}

/// The user who decides, as the approval names them.
pub fn decider(caller: &AuthContext) -> Decider {
    let user = &caller.user;
    Decider { user: user.id.clone(), name: user.display_name.clone() }
}
