//! Withdraws approvals for commands that have no file of their own yet.

use super::EffectsBuilder;
use crate::commands::approvals::withdrawal;

/// Withdraws the open approvals of a run, agent or room that ends.
pub fn withdraw(effects_builder: &mut EffectsBuilder) {
    // The audit entries are derived from the changes.
    let _ = withdrawal::withdraw(&effects_builder.facts.approvals, effects_builder);
}
