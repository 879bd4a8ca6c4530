//! Decides commands on accounts and gateway pairing.

use super::{Change, Effects, EffectsBuilder, rooms, uploads, welcome};
use crate::commands::agents::removal::publish_removal;
use crate::commands::keys::put_key;
use crate::routing_index::RouteChange;
use parlor_model::command::{NewUser, UserChanges};
use parlor_model::{
    Command, EntityKind, Event, EventAudience, Pairing, Receipt, Refusal, RoomId, Scope, SecretHash,
    SiteRole, User, UserId,
};
use std::sync::Arc;

pub fn decide(command: &Command, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    match command {
        // The backup was made elsewhere; only its audit record is written.
        Command::NoteBackup { .. } => effects_builder.done(Receipt::Done),
        Command::AppendNoop => {
            effects_builder.publish(Event::Tombstone);
            effects_builder.done(Receipt::Done)
        }
        Command::OfferSetup { token, expires_at } => {
            if effects_builder.facts.admins > 0 {
                return Err(Refusal::AlreadyExists(EntityKind::User));
            }
            effects_builder.change(Change::OfferSetup(Some((*token, *expires_at))));
            effects_builder.done(Receipt::Done)
        }
        Command::SetUp { token, account } => set_up(token, account, effects_builder),
        Command::CreateUser(account) => {
            let user = create_user(account, &mut effects_builder)?;
            effects_builder.done(Receipt::User(user))
        }
        Command::ChangeUser { changes, .. } => {
            let user = effects_builder.facts.user.clone().ok_or(Refusal::NotFound(EntityKind::User))?;
            change_user(user, changes, effects_builder)
        }
        Command::RemoveUser { user } => remove_user(user, effects_builder),
        Command::ChangeProfile(profile) => {
            let mut user = effects_builder.actor()?.clone();
            if !profile.avatar_url.is_keep() {
                let url = profile.avatar_url.new_value().map(|url| &**url);
                uploads::is_own_avatar(url, &effects_builder)?;
                user.avatar_url = url.map(Into::into);
                uploads::forget_avatars(url, &mut effects_builder);
            }
            let changes = UserChanges { display_name: profile.display_name.clone(), ..Default::default() };
            change_user(user, &changes, effects_builder)
        }
        Command::ChangePassword { verified_password_hash: verified_hash, password_hash } => {
            let user = effects_builder.actor()?.clone();
            if user.password_hash != *verified_hash {
                return Err(Refusal::WrongCredentials);
            }
            let changes = UserChanges { password_hash: Some(password_hash.clone()), ..Default::default() };
            change_user(user, &changes, effects_builder)
        }
        Command::OfferPairing { code, expires_at } => {
            let (user, expires_at) = (effects_builder.actor()?.id.clone(), *expires_at);
            effects_builder.change(Change::PutPairing(Pairing { user, expires_at }, *code));
            effects_builder.done(Receipt::Done)
        }
        Command::Pair { name, secret, .. } => {
            let pairing =
                effects_builder.facts.pairing.as_ref().ok_or(Refusal::NotFound(EntityKind::Pairing))?;
            // The only place where a code is spent: of two concurrent requests with the same code, the second
            // is refused.
            effects_builder.change(Change::RemovePairing(pairing.user.clone()));
            let (owner, scopes) = (pairing.user.clone(), vec![Scope::Hosting]);
            let key = put_key(owner, name.clone(), scopes, *secret, &mut effects_builder);
            effects_builder.done(Receipt::Key(key))
        }
        _ => unreachable!("the dispatcher sends only account commands here"),
    }
}

fn set_up(
    token: &SecretHash,
    account: &NewUser,
    mut effects_builder: EffectsBuilder,
) -> Result<Effects, Refusal> {
    let facts = effects_builder.facts;
    let valid =
        facts.setup.as_ref().is_some_and(|(offered, expires)| offered == token && *expires > facts.now);
    if facts.admins > 0 || !valid {
        return Err(Refusal::NotFound(EntityKind::SetupLink));
    }
    let account = NewUser { role: SiteRole::Admin, ..account.clone() };
    let user = create_user(&account, &mut effects_builder)?;
    effects_builder.change(Change::OfferSetup(None));
    effects_builder.done(Receipt::User(user))
}

pub fn create_user(account: &NewUser, effects_builder: &mut EffectsBuilder) -> Result<Arc<User>, Refusal> {
    if effects_builder.facts.name_taken {
        return Err(Refusal::AlreadyExists(EntityKind::User));
    }
    let now = effects_builder.facts.now;
    let user = Arc::new(User {
        id: UserId::stored(effects_builder.decide_context.ids.next()),
        username: account.username.clone(),
        display_name: account.display_name.clone().unwrap_or_else(|| account.username.clone()),
        role: account.role,
        avatar_url: None,
        password_hash: account.password_hash.clone(),
        second_factor: false,
        failed_sign_ins: 0,
        locked_until: None,
        max_connections: None,
        source_patterns: Vec::new(),
        created_at: now,
        updated_at: now,
    });
    effects_builder.change(Change::PutUser(user.clone()));
    publish_user(&user, [], effects_builder);
    welcome::welcome(&user, effects_builder)?;
    Ok(user)
}

/// Publishes a changed account to the user and to the members of these rooms.
pub fn publish_user(
    user: &Arc<User>,
    rooms: impl IntoIterator<Item = RoomId>,
    effects_builder: &mut EffectsBuilder,
) {
    let audience = EventAudience::user_and_rooms(&user.id, rooms).into();
    effects_builder.publish(Event::UserChanged { user: user.clone(), audience });
}

fn change_user(
    mut user: User,
    changes: &UserChanges,
    mut effects_builder: EffectsBuilder,
) -> Result<Effects, Refusal> {
    let profile = (user.display_name.clone(), user.avatar_url.clone());
    let demoted = user.role == SiteRole::Admin && changes.role == Some(SiteRole::User);
    if demoted && effects_builder.facts.admins <= 1 {
        return Err(Refusal::LastOneRequired(EntityKind::User));
    }
    if let Some(name) = &changes.display_name {
        user.display_name = name.clone();
    }
    if let Some(role) = changes.role {
        user.role = role;
    }
    changes.max_connections.apply_to(&mut user.max_connections);
    if let Some(patterns) = &changes.hears {
        user.source_patterns = patterns.clone();
    }
    if let Some(hash) = &changes.password_hash {
        user.password_hash = hash.clone();
        user.failed_sign_ins = 0;
        user.locked_until = None;
        // A new password ends all sign-ins, so that a session with the old password does not survive.
        effects_builder.change(Change::EndSignInsOf(user.id.clone()));
        effects_builder.publish(Event::SignInsEnded(user.id.clone()));
    }
    user.updated_at = effects_builder.facts.now;
    let user = Arc::new(user);
    effects_builder.change(Change::PutUser(user.clone()));
    let profile_changed = profile != (user.display_name.clone(), user.avatar_url.clone());
    let rooms = effects_builder.facts.rooms.clone();
    publish_user(&user, rooms.into_iter().filter(|_| profile_changed), &mut effects_builder);
    effects_builder.done(Receipt::User(user))
}

fn remove_user(id: &UserId, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let user = effects_builder.facts.user.as_ref().ok_or(Refusal::NotFound(EntityKind::User))?;
    if user.role == SiteRole::Admin && effects_builder.facts.admins <= 1 {
        return Err(Refusal::LastOneRequired(EntityKind::User));
    }
    rooms::leave_all(&mut effects_builder);
    effects_builder.change(Change::RemoveUser(id.clone()));
    for agent in &effects_builder.facts.agents {
        effects_builder.routes.push(RouteChange::RemoveAgent(agent.id.clone()));
        publish_removal(agent, &mut effects_builder);
    }
    effects_builder.publish(Event::UserRemoved(id.clone()));
    effects_builder.done(Receipt::Done)
}
