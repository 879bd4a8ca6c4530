//! Turns a second factor on and off.

use crate::changes::AccountChange;
use crate::effects::EffectsBuilder;
use parlor_model::{Event, EventAudience, User};
use std::sync::Arc;

/// Stores and publishes whether the account requires a second factor.
pub fn set_enabled(user: &User, enabled: bool, effects: &mut EffectsBuilder<'_>) -> Arc<User> {
    let user = Arc::new(User { second_factor: enabled, updated_at: effects.now, ..user.clone() });
    effects.change(AccountChange::PutUser(user.clone()));
    let audience = EventAudience::user_and_rooms(&user.id, []).into();
    effects.publish(Event::UserChanged { user: user.clone(), audience });
    user
}
