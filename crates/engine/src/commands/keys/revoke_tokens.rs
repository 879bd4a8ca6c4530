//! Revokes tokens of an API key.

use crate::Limits;
use crate::audit;
use crate::changes::CredentialChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::audit::Action;
use parlor_model::command::RevokeTokens;
use parlor_model::{EntityKind, Event, Field, Principal, Refusal, Revocation, SigningKey, Time};

/// Maximum number of targets of one command.
const MAX_TARGETS: usize = 100;
/// Maximum number of revocations of one key.
const MAX_REVOCATIONS: usize = 1000;
const MAX_TARGET_BYTES: usize = 1024;

pub struct Facts {
    key: SigningKey,
    now: Time,
}

impl Command for RevokeTokens {
    type Facts = Facts;
    type Receipt = ();

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        let counted = (1..=MAX_TARGETS).contains(&self.targets.len());
        field_errors.unless(counted, Field::Targets, "must contain 1 to 100 targets");
        for target in &self.targets {
            let fits = (1..=MAX_TARGET_BYTES).contains(&target.len());
            field_errors.unless(fits, Field::Targets, "must have 1 to 1024 bytes each");
        }
        field_errors.into_result()
    }

    /// Allowed for the key itself, its owner and the operator; not for a token of the key. Another key and a missing
    /// one yield the same refusal.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let key = view.store.signing_key(&self.key)?;
        let key = match &caller.caller.principal {
            Principal::Operator => key,
            Principal::Program { key: own, .. } => {
                caller.auth.as_ref().ok_or(Refusal::NotSignedIn)?;
                if caller.caller.grant.is_some() || *own != self.key {
                    return Err(Refusal::Forbidden.into());
                }
                key
            }
            _ => {
                let person = caller.person()?;
                key.filter(|key| key.key.owner == person.user.id)
            }
        };
        let key = key.ok_or(Refusal::NotFound(EntityKind::Key))?;
        Ok(Facts { key, now: view.now })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<(), Refusal> {
        let Facts { key: SigningKey { key, revocations, .. }, now } = facts;
        let expired_before = now.minus(Revocation::KEPT);
        let kept = revocations.iter().filter(|kept| kept.issued_before >= expired_before);
        let kept = kept.filter(|kept| !self.targets.contains(&kept.target)).count();
        if kept + self.targets.len() > MAX_REVOCATIONS {
            return Err(Refusal::invalid(Field::Targets, "exceeds the limit of 1000 revocations per key"));
        }
        let issued_before = self.issued_before.min(now);
        let detail = format!("{} targets", self.targets.len());
        let revocation = |target| Revocation { target, issued_before };
        let revocations = self.targets.into_iter().map(revocation).collect();
        effects.change(CredentialChange::RevokeTokens { key: self.key.clone(), revocations, expired_before });
        effects.publish(Event::TokensRevoked { user: key.owner.clone(), key: self.key });
        effects.audit(Action::TokensRevoked, Some(audit::key(&key)), Some(detail.into()));
        Ok(())
    }
}
