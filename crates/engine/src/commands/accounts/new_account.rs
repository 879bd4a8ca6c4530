//! Creation of an account: with the setup link, by an admin, or with an invitation.

use super::welcome::Welcome;
use crate::Fault;
use crate::changes::AccountChange;
use crate::commands::rooms::names::OwnNames;
use crate::effects::EffectsBuilder;
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::command::NewUser;
use parlor_model::{EntityKind, Event, EventAudience, Field, Refusal, RoomId, Time, User, UserId};
use std::sync::Arc;

/// Facts for the creation of an account.
pub struct AccountFacts {
    /// Whether another account has the username.
    name_taken: bool,
    /// Number of site admins.
    pub admins: u64,
    /// `None` if the hub does not welcome new users.
    welcome: Option<Welcome>,
}

impl AccountFacts {
    pub fn load(account: &NewUser, view: &mut WriterView<'_>) -> Result<Self, Fault> {
        let username = &account.username;
        let names = OwnNames {
            name: account.display_name.as_ref().unwrap_or(username).clone(),
            handle: username.clone(),
            username: username.clone(),
        };
        Ok(Self {
            name_taken: view.store.user_named(username)?.is_some(),
            admins: view.store.admins()?,
            welcome: Welcome::load(&names, view)?,
        })
    }
}

/// Stateless check of a new account. The password itself never enters a command.
pub fn validate_account(account: &NewUser) -> Result<(), Refusal> {
    let mut field_errors = FieldErrors::default();
    let name = &account.username;
    field_errors.unless((3..=50).contains(&name.len()), Field::Username, "must have 3 to 50 characters");
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    field_errors.unless(plain, Field::Username, "may contain letters, digits, _ and - only");
    if let Some(name) = &account.display_name {
        field_errors.line(Field::DisplayName, name, 100);
    }
    field_errors.into_result()
}

/// Creates an account and adds it to the welcome room.
pub fn create_account(
    account: NewUser,
    facts: AccountFacts,
    effects: &mut EffectsBuilder<'_>,
) -> Result<Arc<User>, Refusal> {
    if facts.name_taken {
        return Err(Refusal::AlreadyExists(EntityKind::User));
    }
    let now = effects.now;
    let user = Arc::new(User {
        id: UserId::stored(effects.new_id()),
        display_name: account.display_name.unwrap_or_else(|| account.username.clone()),
        username: account.username,
        role: account.role,
        avatar_url: None,
        password_hash: account.password_hash,
        second_factor: false,
        failed_sign_ins: 0,
        locked_until: None,
        max_connections: None,
        source_patterns: Vec::new(),
        agent_tokens_valid_from: Time(0),
        created_at: now,
        updated_at: now,
    });
    effects.change(AccountChange::PutUser(user.clone()));
    publish_user(&user, [], effects);
    if let Some(welcome) = facts.welcome {
        welcome.join(&user, facts.admins, effects);
    }
    Ok(user)
}

/// Publishes a changed account to the user and to the members of these rooms.
pub fn publish_user(
    user: &Arc<User>,
    rooms: impl IntoIterator<Item = RoomId>,
    effects: &mut EffectsBuilder<'_>,
) {
    let audience = EventAudience::user_and_rooms(&user.id, rooms).into();
    effects.publish(Event::UserChanged { user: user.clone(), audience });
}
