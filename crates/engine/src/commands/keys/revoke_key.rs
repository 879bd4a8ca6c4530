//! Revokes an API key.

use crate::audit;
use crate::changes::CredentialChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::audit::Action;
use parlor_model::command::RevokeKey;
use parlor_model::{ApiKey, EntityKind, Event, Refusal};

pub struct Facts {
    key: ApiKey,
}

impl Command for RevokeKey {
    type Facts = Facts;
    type Receipt = ();

    /// Users revoke their own keys, the operator any key. Keys cannot revoke keys. Another user's key and a
    /// missing one yield the same refusal.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let person = if caller.is_operator() { None } else { Some(caller.person()?) };
        let key = view.store.key(&self.key)?;
        let key = key.filter(|key| person.is_none_or(|person| key.owner == person.user.id));
        Ok(Facts { key: key.ok_or(Refusal::NotFound(EntityKind::Key))? })
    }

    fn decide(self, Facts { key }: Facts, effects: &mut EffectsBuilder<'_>) -> Result<(), Refusal> {
        effects.change(CredentialChange::RemoveKey(self.key.clone()));
        effects.publish(Event::KeyRevoked { user: key.owner.clone(), key: self.key });
        let detail = format!("of {}", key.owner);
        effects.audit(Action::KeyRevoked, Some(audit::key(&key)), Some(detail.into()));
        Ok(())
    }
}
