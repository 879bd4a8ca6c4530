//! Decides commands on accounts, sign-ins, API keys and gateway pairing.

use super::{Change, Effects, EffectsBuilder, second_factor};
use crate::commands::accounts::new_account;
use parlor_model::command::NewSignIn;
use parlor_model::{
    ApiKey, Command, EntityKind, Event, KeyId, Receipt, Refusal, RoomId, Scope, SecretHash, SignIn, SignInId,
    Time, User, UserId,
};
use std::sync::Arc;
use std::time::Duration;

pub fn decide(command: &Command, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    match command {
        // The backup was made elsewhere; only its audit record is written.
        Command::NoteBackup { .. } => effects_builder.done(Receipt::Done),
        Command::AppendNoop => {
            effects_builder.publish(Event::Tombstone);
            effects_builder.done(Receipt::Done)
        }
        Command::SignIn(new) => sign_in(new, effects_builder),
        Command::SignInFailed { user, lock_after, lock_until, .. } => match user {
            Some(_) => sign_in_failed(*lock_after, *lock_until, effects_builder),
            None => effects_builder.done(Receipt::Done),
        },
        Command::Refresh { next, expires_at, grace, .. } => {
            refresh(next, *expires_at, *grace, effects_builder)
        }
        Command::EndSignIn { sign_in } => {
            let user = effects_builder.actor()?.id.clone();
            effects_builder.change(Change::EndSignIn(sign_in.clone()));
            effects_builder.publish(Event::SignInEnded { user, sign_in: sign_in.clone() });
            effects_builder.done(Receipt::Done)
        }
        Command::CreateKey { owner, name, scopes, secret } => {
            create_key(owner.as_ref(), name, scopes, secret, effects_builder)
        }
        Command::RevokeKey { key } => {
            let found = effects_builder.facts.key.as_ref().ok_or(Refusal::NotFound(EntityKind::Key))?;
            effects_builder.change(Change::RemoveKey(key.clone()));
            effects_builder.publish(Event::KeyRevoked { user: found.owner.clone(), key: key.clone() });
            effects_builder.done(Receipt::Done)
        }
        _ => unreachable!("the dispatcher sends only account commands here"),
    }
}

/// Publishes a changed account to the user and to the members of these rooms.
pub fn publish_user(
    user: &Arc<User>,
    rooms: impl IntoIterator<Item = RoomId>,
    effects_builder: &mut EffectsBuilder,
) {
    new_account::publish_user(user, rooms, effects_builder);
}

fn sign_in(new: &NewSignIn, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let now = effects_builder.facts.now;
    let mut user = effects_builder.facts.user.clone().ok_or(Refusal::WrongCredentials)?;
    if user.password_hash != new.verified_password_hash || user.is_locked(now) {
        return Err(Refusal::WrongCredentials);
    }
    if user.second_factor {
        second_factor::spend(&user, new.second.as_ref(), &mut effects_builder)?;
    }
    if user.failed_sign_ins > 0 {
        user.failed_sign_ins = 0;
        user.locked_until = None;
        effects_builder.change(Change::PutUser(Arc::new(user.clone())));
    }
    let sign_in = Arc::new(SignIn {
        id: SignInId::stored(effects_builder.decide_context.ids.next()),
        user: user.id.clone(),
        device: new.device.clone(),
        address: new.address.clone(),
        created_at: now,
        used_at: now,
        expires_at: new.expires_at,
        generation: 0,
    });
    effects_builder.change(Change::PutSignIn(sign_in.clone(), new.refresh));
    effects_builder.done(Receipt::SignedIn { user: Arc::new(user), sign_in })
}

fn sign_in_failed(
    lock_after: u32,
    lock_until: Time,
    mut effects_builder: EffectsBuilder,
) -> Result<Effects, Refusal> {
    let mut user = effects_builder.facts.user.clone().ok_or(Refusal::NotFound(EntityKind::User))?;
    if user.is_locked(effects_builder.facts.now) {
        return effects_builder.done(Receipt::Done);
    }
    user.failed_sign_ins = user.failed_sign_ins.saturating_add(1);
    if user.failed_sign_ins >= lock_after {
        user.failed_sign_ins = 0;
        user.locked_until = Some(lock_until);
    }
    effects_builder.change(Change::PutUser(Arc::new(user)));
    effects_builder.done(Receipt::Done)
}

/// Exchanges a refresh token. Within the grace period the previous token is accepted too, as long as its
/// successor was not used: a reloaded page may never have received the answer. Any older token indicates
/// theft and ends the whole sign-in.
fn refresh(
    next: &SecretHash,
    expires_at: Time,
    grace: Duration,
    mut effects_builder: EffectsBuilder,
) -> Result<Effects, Refusal> {
    let facts = effects_builder.facts;
    let (Some(refresh), Some(sign_in), Some(user)) = (&facts.refresh, &facts.sign_in, &facts.user) else {
        return Err(Refusal::TokenRevoked);
    };
    let is_newest = refresh.generation == sign_in.generation;
    // The grace period counts from the exchange, not from the last use; otherwise it could be extended for
    // ever.
    let in_grace = refresh.generation + 1 == sign_in.generation && facts.now < sign_in.used_at.plus(grace);
    if !is_newest && !in_grace {
        effects_builder.change(Change::EndSignIn(sign_in.id.clone()));
        effects_builder.publish(Event::SignInEnded { user: user.id.clone(), sign_in: sign_in.id.clone() });
        return effects_builder.done(Receipt::FamilyRevoked);
    }
    if sign_in.expires_at <= facts.now {
        return Err(Refusal::TokenRevoked);
    }
    let mut sign_in = sign_in.clone();
    if is_newest {
        sign_in.generation += 1;
        sign_in.used_at = facts.now;
        sign_in.expires_at = expires_at;
    }
    let sign_in = Arc::new(sign_in);
    effects_builder.change(Change::PutSignIn(sign_in.clone(), *next));
    effects_builder.done(Receipt::SignedIn { user: Arc::new(user.clone()), sign_in })
}

fn create_key(
    owner: Option<&UserId>,
    name: &str,
    scopes: &[Scope],
    secret: &SecretHash,
    mut effects_builder: EffectsBuilder,
) -> Result<Effects, Refusal> {
    let owner = match owner {
        Some(owner) => owner.clone(),
        None => effects_builder.actor()?.id.clone(),
    };
    let key = Arc::new(ApiKey {
        id: KeyId::stored(effects_builder.decide_context.ids.next()),
        owner,
        name: name.into(),
        scopes: scopes.to_vec(),
        created_at: effects_builder.facts.now,
    });
    effects_builder.change(Change::PutKey(key.clone(), *secret));
    effects_builder.done(Receipt::Key(key))
}
