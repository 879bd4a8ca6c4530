//! Decides enabling and disabling of a second factor, and spends its codes at sign-in.

use super::{Change, Effects, EffectsBuilder, accounts};
use parlor_model::{Command, EntityKind, Receipt, Refusal, SecondFactor, SecondProof, SecretHash, User};
use std::sync::Arc;

pub fn decide(command: &Command, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    match command {
        Command::OfferSecondFactor { sealed } => {
            let user = effects_builder.actor()?;
            if user.second_factor {
                return Err(Refusal::AlreadyExists(EntityKind::SecondFactor));
            }
            effects_builder.change(Change::PutSecondFactor(Arc::new(SecondFactor {
                user: user.id.clone(),
                sealed: sealed.clone(),
                confirmed: false,
                last_step: 0,
            })));
            effects_builder.done(Receipt::Done)
        }
        Command::ConfirmSecondFactor { sealed, step, backup_codes } => {
            confirm(sealed, *step, backup_codes, effects_builder)
        }
        Command::DropSecondFactor { verified_password_hash: verified_hash, .. } => {
            let user = effects_builder.facts.user.clone().ok_or(Refusal::NotFound(EntityKind::User))?;
            let by_person = effects_builder.facts.standing.is_some();
            if by_person && verified_hash.as_ref() != Some(&user.password_hash) {
                return Err(Refusal::WrongCredentials);
            }
            if effects_builder.facts.second_factor.is_none() {
                return Err(Refusal::NotFound(EntityKind::SecondFactor));
            }
            effects_builder.change(Change::RemoveSecondFactor(user.id.clone()));
            set_enabled(user, false, effects_builder)
        }
        _ => unreachable!("the dispatcher sends only second-factor commands here"),
    }
}

fn confirm(
    sealed: &[u8],
    step: u64,
    backup_codes: &[SecretHash],
    mut effects_builder: EffectsBuilder,
) -> Result<Effects, Refusal> {
    let user = effects_builder.actor()?.clone();
    let factor = effects_builder.facts.second_factor.as_ref().ok_or(Refusal::WrongCredentials)?;
    if factor.confirmed {
        return Err(Refusal::AlreadyExists(EntityKind::SecondFactor));
    }
    // A new secret was offered since, so the code belongs to a discarded one.
    if *factor.sealed != *sealed {
        return Err(Refusal::WrongCredentials);
    }
    let confirmed = SecondFactor { confirmed: true, last_step: step, ..factor.clone() };
    effects_builder.change(Change::PutSecondFactor(Arc::new(confirmed)));
    effects_builder.change(Change::PutBackupCodes(user.id.clone(), backup_codes.to_vec()));
    set_enabled(user, true, effects_builder)
}

fn set_enabled(user: User, on: bool, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let user = Arc::new(User { second_factor: on, updated_at: effects_builder.facts.now, ..user });
    effects_builder.change(Change::PutUser(user.clone()));
    accounts::publish_user(&user, [], &mut effects_builder);
    effects_builder.done(Receipt::User(user))
}

/// Accepts the second proof of a sign-in and marks it as used. This happens in the deciding transaction, so
/// that no concurrent sign-in can use the same code.
pub fn spend(
    user: &User,
    proof: Option<&SecondProof>,
    effects_builder: &mut EffectsBuilder,
) -> Result<(), Refusal> {
    let facts = effects_builder.facts;
    let (Some(factor), Some(proof)) = (&facts.second_factor, proof) else {
        return Err(Refusal::WrongCredentials);
    };
    match proof {
        SecondProof::Code { sealed, step } if *sealed == factor.sealed && *step > factor.last_step => {
            let spent = SecondFactor { last_step: *step, ..factor.clone() };
            effects_builder.change(Change::PutSecondFactor(Arc::new(spent)));
            Ok(())
        }
        SecondProof::Backup(code) if facts.backup_code => {
            effects_builder.change(Change::SpendBackupCode(user.id.clone(), *code));
            Ok(())
        }
        _ => Err(Refusal::WrongCredentials),
    }
}
