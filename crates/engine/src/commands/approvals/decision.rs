//! Records decisions on approvals. An approval is decided once.

use crate::decide::Change;
use crate::effects::EffectsBuilder;
use crate::permission::InRoom;
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
    effects.change(Change::PutApproval(decided.clone()));
    effects.publish(Event::ApprovalDecided(decided.clone()));
    Ok(decided)
}

/// Withdraws the open approvals of a run, agent or room that ends. Returns the withdrawn approvals, for which
/// the caller records audit entries.
pub fn withdraw(open: &[Approval], effects: &mut EffectsBuilder<'_>) -> Vec<Arc<Approval>> {
    // An open approval can be decided, so none is left out.
    open.iter().filter_map(|open| record_decision(open, Decision::Withdrawn, effects).ok()).collect()
}

/// The user who decides, as the approval names them.
pub fn decider(user: &InRoom) -> Decider {
    let user = &user.caller.user;
    Decider { user: user.id.clone(), name: user.display_name.clone() }
}
