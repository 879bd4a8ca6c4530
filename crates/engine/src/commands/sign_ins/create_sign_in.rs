//! Signs a user in on a device.

use crate::audit;
use crate::changes::{AccountChange, CredentialChange};
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::audit::{Action, Actor};
use parlor_model::command::{CreateSignIn, SignedIn};
use parlor_model::{Refusal, SecondFactor, SecondProof, SignIn, SignInId, User};
use std::sync::Arc;

pub struct Facts {
    user: Arc<User>,
    second_factor: Option<SecondFactor>,
    /// Whether the given backup code of the second factor is valid.
    backup_code: bool,
}

impl Command for CreateSignIn {
    type Facts = Facts;
    type Receipt = SignedIn;

    /// Allowed for every caller: the command carries the proof, which `decide` compares with the account.
    fn permit(&self, _caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let user = view.user(&self.user)?.ok_or(Refusal::WrongCredentials)?;
        let second_factor = view.store.second_factor(&self.user)?;
        let backup_code = match &self.second {
            Some(SecondProof::Backup(code)) => view.store.has_backup_code(&self.user, code)?,
            Some(SecondProof::Code { .. }) | None => false,
        };
        Ok(Facts { user, second_factor, backup_code })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<SignedIn, Refusal> {
        let mut user = facts.user.clone();
        if user.password_hash != self.verified_password_hash || user.is_locked(effects.now) {
            return Err(Refusal::WrongCredentials);
        }
        if user.second_factor {
            spend(self.second.as_ref(), &facts, effects)?;
        }
        if user.failed_sign_ins > 0 {
            user = Arc::new(User { failed_sign_ins: 0, locked_until: None, ..User::clone(&user) });
            effects.change(AccountChange::PutUser(user.clone()));
        }
        let sign_in = Arc::new(SignIn {
            id: SignInId::stored(effects.new_id()),
            user: user.id.clone(),
            device: self.device,
            address: self.address,
            created_at: effects.now,
            used_at: effects.now,
            expires_at: self.expires_at,
            generation: 0,
        });
        effects.change(CredentialChange::PutSignIn(sign_in.clone(), self.refresh));
        let detail = match self.second {
            Some(SecondProof::Backup(_)) if user.second_factor => Some("with a backup code".into()),
            Some(SecondProof::Code { .. }) if user.second_factor => Some("with a second factor".into()),
            _ => None,
        };
        // The caller was anonymous; the record names the user who signed in.
        let actor = Actor::Person { id: user.id.clone(), name: user.username.clone() };
        effects.audit_by(actor, Action::SignedIn, Some(audit::user(&user)), detail);
        Ok(SignedIn { user, sign_in })
    }
}

/// Accepts the second proof of a sign-in and marks it as used. This happens in the deciding transaction, so
/// that no concurrent sign-in can use the same code.
fn spend(
    proof: Option<&SecondProof>,
    facts: &Facts,
    effects: &mut EffectsBuilder<'_>,
) -> Result<(), Refusal> {
    let (Some(factor), Some(proof)) = (&facts.second_factor, proof) else {
        return Err(Refusal::WrongCredentials);
    };
    match proof {
        SecondProof::Code { sealed, step } if *sealed == factor.sealed && *step > factor.last_step => {
            let spent = SecondFactor { last_step: *step, ..factor.clone() };
            effects.change(CredentialChange::PutSecondFactor(Arc::new(spent)));
            Ok(())
        }
        SecondProof::Backup(code) if facts.backup_code => {
            effects.change(CredentialChange::SpendBackupCode(facts.user.id.clone(), *code));
            Ok(())
        }
        _ => Err(Refusal::WrongCredentials),
    }
}
