//! Helpers of room commands for commands that are still variants of `parlor_model::Command`.

pub use crate::commands::rooms::members::{member, members_for_event};

use super::{EffectsBuilder, approvals};
use crate::commands::rooms::leave_all;

/// Removes a deleted user, and the user's agents, from every room.
pub fn leave_all(effects_builder: &mut EffectsBuilder) {
    approvals::withdraw(effects_builder);
    leave_all::leave_all(&effects_builder.facts.memberships, &mut effects_builder.effects);
}
