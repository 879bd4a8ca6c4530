//! Changes of an existing account: by an admin, or by its user.

use super::new_account::publish_user;
use crate::Fault;
use crate::changes::{AccountChange, CredentialChange};
use crate::commands::rooms::names::{OwnNames, RoomNames};
use crate::effects::EffectsBuilder;
use crate::read_view::ReadView;
use parlor_model::command::UserChanges;
use parlor_model::{Event, MemberId, RoomId, User};
use std::sync::Arc;

/// Rooms of a user, and the user's names there after a change of the profile.
#[derive(Debug, Default)]
pub struct ProfileRooms {
    /// The changed profile is published in these rooms.
    rooms: Vec<RoomId>,
    names: RoomNames,
}

impl ProfileRooms {
    pub fn load(user: &User, new_name: Option<&str>, view: &mut ReadView<'_>) -> Result<Self, Fault> {
        let memberships = view.store.memberships(&MemberId::User(user.id.clone()))?;
        let names = match new_name {
            Some(name) => {
                let names = OwnNames { name: name.into(), ..OwnNames::from(user) };
                RoomNames::load(&names, &user.display_name, &memberships, view)?
            }
            None => RoomNames::default(),
        };
        Ok(Self { rooms: memberships.into_iter().map(|member| member.room).collect(), names })
    }
}

/// Stores and publishes an account with these changes.
pub fn change_account(
    mut user: User,
    changes: UserChanges,
    places: ProfileRooms,
    effects: &mut EffectsBuilder<'_>,
) -> Arc<User> {
    let profile = (user.display_name.clone(), user.avatar_url.clone());
    if let Some(name) = changes.display_name {
        user.display_name = name;
    }
    if let Some(role) = changes.role {
        user.role = role;
    }
    changes.max_connections.apply_to(&mut user.max_connections);
    if let Some(patterns) = changes.hears {
        user.source_patterns = patterns;
    }
    if let Some(hash) = changes.password_hash {
        user.password_hash = hash;
        user.failed_sign_ins = 0;
        user.locked_until = None;
        user.agent_tokens_valid_from = effects.now;
        // A new password ends all sign-ins, so that a session with the old password does not survive.
        effects.change(CredentialChange::EndSignInsOf(user.id.clone()));
        effects.publish(Event::SignInsEnded(user.id.clone()));
    }
    user.updated_at = effects.now;
    let user = Arc::new(user);
    effects.change(AccountChange::PutUser(user.clone()));
    let profile_changed = profile != (user.display_name.clone(), user.avatar_url.clone());
    publish_user(&user, places.rooms.into_iter().filter(|_| profile_changed), effects);
    places.names.apply(effects);
    user
}

/// Revokes the tokens that programs of the user's agents hold. The event closes their connections.
pub fn revoke_agent_tokens(user: &User, effects: &mut EffectsBuilder<'_>) {
    let user = User { agent_tokens_valid_from: effects.now, ..user.clone() };
    let user = Arc::new(user);
    effects.change(AccountChange::PutUser(user.clone()));
    publish_user(&user, [], effects);
}
