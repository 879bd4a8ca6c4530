//! Turning a second factor on and off, and what it asks of a sign-in.

use super::{Change, Effects, EffectsBuilder, accounts};
use parlor_model::{Command, EntityKind, Receipt, Refusal, SecondFactor, SecondProof, SecretHash, User};
use std::sync::Arc;

pub fn decide(command: &Command, mut draft: EffectsBuilder) -> Result<Effects, Refusal> {
    match command {
        Command::OfferSecondFactor { sealed } => {
            let user = draft.actor()?;
            if user.second_factor {
                return Err(Refusal::AlreadyExists(EntityKind::SecondFactor));
            }
            draft.change(Change::PutSecondFactor(Arc::new(SecondFactor {
                user: user.id.clone(),
                sealed: sealed.clone(),
                confirmed: false,
                last_step: 0,
            })));
            draft.done(Receipt::Done)
        }
        Command::ConfirmSecondFactor { sealed, step, backup_codes } => {
            confirm(sealed, *step, backup_codes, draft)
        }
        Command::DropSecondFactor { verified_password_hash: proven, .. } => {
            let user = draft.facts.user.clone().ok_or(Refusal::NotFound(EntityKind::User))?;
            let by_person = draft.facts.standing.is_some();
            if by_person && proven.as_ref() != Some(&user.password_hash) {
                return Err(Refusal::WrongCredentials);
            }
            if draft.facts.second_factor.is_none() {
                return Err(Refusal::NotFound(EntityKind::SecondFactor));
            }
            draft.change(Change::RemoveSecondFactor(user.id.clone()));
            turn(user, false, draft)
        }
        _ => unreachable!("the dispatcher sends only second factors here"),
    }
}

fn confirm(
    sealed: &[u8],
    step: u64,
    backup_codes: &[SecretHash],
    mut draft: EffectsBuilder,
) -> Result<Effects, Refusal> {
    let user = draft.actor()?.clone();
    let factor = draft.facts.second_factor.as_ref().ok_or(Refusal::WrongCredentials)?;
    if factor.confirmed {
        return Err(Refusal::AlreadyExists(EntityKind::SecondFactor));
    }
    // Offered anew meanwhile: the code is of a secret that is no more.
    if *factor.sealed != *sealed {
        return Err(Refusal::WrongCredentials);
    }
    let confirmed = SecondFactor { confirmed: true, last_step: step, ..factor.clone() };
    draft.change(Change::PutSecondFactor(Arc::new(confirmed)));
    draft.change(Change::PutBackupCodes(user.id.clone(), backup_codes.to_vec()));
    turn(user, true, draft)
}

fn turn(user: User, on: bool, mut draft: EffectsBuilder) -> Result<Effects, Refusal> {
    let user = Arc::new(User { second_factor: on, updated_at: draft.facts.now, ..user });
    draft.change(Change::PutUser(user.clone()));
    accounts::tell(&user, [], &mut draft);
    draft.done(Receipt::User(user))
}

/// Takes what was shown besides the password, once: a code is spent here, where no other sign-in can be between.
pub fn spend(user: &User, shown: Option<&SecondProof>, draft: &mut EffectsBuilder) -> Result<(), Refusal> {
    let facts = draft.facts;
    let (Some(factor), Some(shown)) = (&facts.second_factor, shown) else {
        return Err(Refusal::WrongCredentials);
    };
    match shown {
        SecondProof::Code { sealed, step } if *sealed == factor.sealed && *step > factor.last_step => {
            let spent = SecondFactor { last_step: *step, ..factor.clone() };
            draft.change(Change::PutSecondFactor(Arc::new(spent)));
            Ok(())
        }
        SecondProof::Backup(code) if facts.backup_code => {
            draft.change(Change::SpendBackupCode(user.id.clone(), *code));
            Ok(())
        }
        _ => Err(Refusal::WrongCredentials),
    }
}
