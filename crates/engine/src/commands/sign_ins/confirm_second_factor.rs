//! Confirms the second factor that the caller was offered.

use super::second_factor::set_enabled;
use crate::audit;
use crate::changes::CredentialChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::AuthContext;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::audit::Action;
use parlor_model::command::ConfirmSecondFactor;
use parlor_model::{EntityKind, Refusal, SecondFactor, User};
use std::sync::Arc;

pub struct Facts {
    caller: Arc<AuthContext>,
    /// The caller's second factor, confirmed or offered, if any.
    factor: Option<SecondFactor>,
}

impl Command for ConfirmSecondFactor {
    type Facts = Facts;
    type Receipt = Arc<User>;

    /// Users set up their own second factor. Keys set up none.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let caller = caller.person()?;
        Ok(Facts { factor: view.store.second_factor(&caller.user.id)?, caller })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Arc<User>, Refusal> {
        let user = &facts.caller.user;
        let factor = facts.factor.ok_or(Refusal::WrongCredentials)?;
        if factor.confirmed {
            return Err(Refusal::AlreadyExists(EntityKind::SecondFactor));
        }
        // A new secret was offered since, so the code belongs to a discarded one.
        if factor.sealed != self.sealed {
            return Err(Refusal::WrongCredentials);
        }
        let confirmed = SecondFactor { confirmed: true, last_step: self.step, ..factor };
        effects.change(CredentialChange::PutSecondFactor(Arc::new(confirmed)));
        effects.change(CredentialChange::PutBackupCodes(user.id.clone(), self.backup_codes));
        let user = set_enabled(user, true, effects);
        effects.audit(Action::SecondFactorOn, Some(audit::user(&user)), None);
        Ok(user)
    }
}
