//! Exchanges a pairing code for an API key that may host agents.

use crate::changes::AccountChange;
use crate::commands::Command;
use crate::commands::keys::put_key;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use crate::{Limits, audit};
use parlor_model::audit::Action;
use parlor_model::command::RedeemPairingCode;
use parlor_model::{ApiKey, EntityKind, Field, Refusal, Scope, UserId};
use std::sync::Arc;

impl Command for RedeemPairingCode {
    /// The user who offered the code.
    type Facts = UserId;
    type Receipt = Arc<ApiKey>;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        field_errors.line(Field::Name, &self.name, 100);
        field_errors.into_result()
    }

    /// Allowed for everyone with an unexpired pairing code of an existing account. All other codes yield the
    /// same refusal.
    fn permit(&self, _caller: &CallerContext, view: &mut WriterView<'_>) -> Result<UserId, PermitError> {
        let now = view.now;
        let not_found = Refusal::NotFound(EntityKind::Pairing);
        let pairing = view.store.pairing(&self.code)?.filter(|pairing| pairing.expires_at > now);
        let Some(pairing) = pairing else { return Err(not_found.into()) };
        match view.user(&pairing.user)? {
            Some(_) => Ok(pairing.user),
            None => Err(not_found.into()),
        }
    }

    fn decide(self, owner: UserId, effects: &mut EffectsBuilder<'_>) -> Result<Arc<ApiKey>, Refusal> {
        // The only place where a code is spent: of two concurrent requests with the same code, the second is
        // refused.
        effects.change(AccountChange::RemovePairing(owner.clone()));
        let key = put_key(owner, self.name, vec![Scope::Hosting], self.secret, effects);
        let detail = format!("for {}, by a pairing code: agents", key.owner);
        effects.audit(Action::KeyCreated, Some(audit::key(&key)), Some(detail.into()));
        Ok(key)
    }
}
