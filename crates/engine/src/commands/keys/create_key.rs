//! Creates an API key.

use crate::Limits;
use crate::audit;
use crate::changes::CredentialChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::audit::Action;
use parlor_model::command::CreateKey;
use parlor_model::{ApiKey, EntityKind, Field, KeyId, Refusal, Scope, SecretHash, SiteRole, UserId};
use std::sync::Arc;

pub struct Facts {
    owner: UserId,
}

impl Command for CreateKey {
    type Facts = Facts;
    type Receipt = Arc<ApiKey>;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        field_errors.line(Field::Name, &self.name, 100);
        field_errors.unless(!self.scopes.is_empty(), Field::Scopes, "at least one scope is required");
        field_errors.into_result()
    }

    /// Users create keys for themselves, the operator for any user. Keys cannot create keys: their scopes would
    /// not limit them. A key may not do more than its owner: the scopes for sources, dead letters and metrics
    /// are for admins only.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let admins_only = self.scopes.iter().any(|scope| scope.is_for_admins() && *scope != Scope::Admin);
        if caller.is_operator() {
            let owner = match &self.owner {
                Some(owner) => view.user(owner)?,
                None => None,
            };
            let owner = owner.ok_or(Refusal::NotFound(EntityKind::User))?;
            if admins_only && owner.role != SiteRole::Admin {
                let rule = "sources, dead-letters and metrics are for keys of admins";
                return Err(Refusal::invalid(Field::Scope, rule).into());
            }
            return Ok(Facts { owner: owner.id.clone() });
        }
        let person = caller.person()?;
        let for_another = self.owner.as_ref().is_some_and(|owner| *owner != person.user.id);
        let beyond = admins_only && !person.is_site_admin();
        if for_another || beyond {
            return Err(Refusal::Forbidden.into());
        }
        Ok(Facts { owner: person.user.id.clone() })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Arc<ApiKey>, Refusal> {
        let key = put_key(facts.owner, self.name, self.scopes, self.secret, effects);
        let detail = format!("for {}: {}", key.owner, audit::scopes(&key.scopes));
        effects.audit(Action::KeyCreated, Some(audit::key(&key)), Some(detail.into()));
        Ok(key)
    }
}

/// Stores a new API key.
pub(crate) fn put_key(
    owner: UserId,
    name: Box<str>,
    scopes: Vec<Scope>,
    secret: SecretHash,
    effects: &mut EffectsBuilder<'_>,
) -> Arc<ApiKey> {
    let id = KeyId::stored(effects.new_id());
    let key = Arc::new(ApiKey { id, owner, name, scopes, grant: None, created_at: effects.now });
    effects.change(CredentialChange::PutKey(key.clone(), secret));
    key
}
