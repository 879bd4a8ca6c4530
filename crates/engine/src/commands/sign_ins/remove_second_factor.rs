//! Removes the second factor of a user.

use super::second_factor::set_enabled;
use crate::audit;
use crate::changes::CredentialChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::audit::Action;
use parlor_model::command::RemoveSecondFactor;
use parlor_model::{EntityKind, Refusal, User};
use std::sync::Arc;

pub struct Facts {
    user: Arc<User>,
    /// Whether the operator removes the second factor, who needs no password.
    by_operator: bool,
    has_second_factor: bool,
}

impl Command for RemoveSecondFactor {
    type Facts = Facts;
    type Receipt = Arc<User>;

    /// Users remove their own second factor, the operator that of any user. Keys remove none.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let by_operator = caller.is_operator();
        let user = if by_operator {
            view.user(&self.user)?.ok_or(Refusal::NotFound(EntityKind::User))?
        } else {
            caller.person()?.user.clone()
        };
        if user.id != self.user {
            return Err(Refusal::Forbidden.into());
        }
        Ok(Facts { has_second_factor: view.store.second_factor(&user.id)?.is_some(), user, by_operator })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Arc<User>, Refusal> {
        let Facts { user, by_operator, has_second_factor } = facts;
        if !by_operator && self.verified_password_hash.as_ref() != Some(&user.password_hash) {
            return Err(Refusal::WrongCredentials);
        }
        if !has_second_factor {
            return Err(Refusal::NotFound(EntityKind::SecondFactor));
        }
        effects.change(CredentialChange::RemoveSecondFactor(user.id.clone()));
        let user = set_enabled(&user, false, effects);
        effects.audit(Action::SecondFactorOff, Some(audit::user(&user)), None);
        Ok(user)
    }
}
