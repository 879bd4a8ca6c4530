//! Withdrawal of open approvals, in the transaction that ends their run.

use super::audit::audit_decision;
use super::decision::record_decision;
use crate::effects::EffectsBuilder;
use parlor_model::{Approval, Decision};
use std::sync::Arc;

/// Withdraws these open approvals and returns them. The caller passes them to [`audit_withdrawn`] after all
/// other changes.
#[must_use = "each withdrawal must be recorded in the audit log"]
pub fn withdraw(open: &[Approval], effects: &mut EffectsBuilder<'_>) -> Vec<Arc<Approval>> {
    // An open approval can be decided, so none is skipped.
    open.iter().filter_map(|open| record_decision(open, Decision::Withdrawn, effects).ok()).collect()
}

/// Records withdrawn approvals in the audit log.
pub fn audit_withdrawn(withdrawn: &[Arc<Approval>], effects: &mut EffectsBuilder<'_>) {
    for approval in withdrawn {
        audit_decision(approval, None, effects);
    }
}
