//! Creates an API key that is limited to a grant and whose secret signs tokens.

use crate::Limits;
use crate::audit;
use crate::changes::CredentialChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::audit::Action;
use parlor_model::command::CreateSigningKey;
use parlor_model::{ApiKey, EntityKind, Field, Refusal, Scope, SiteRole, UserId};
use std::sync::Arc;

/// Maximum number of keys with a grant of one owner.
const MAX_KEYS: usize = 100;
/// Maximum bytes of the text of a grant (`KeyGrant::notation`).
const MAX_NOTATION_BYTES: usize = 16 * 1024;
/// Maximum number of entries of a grant.
const MAX_ENTRIES: usize = 500;

pub struct Facts {
    owner: UserId,
    key_count: usize,
    id_exists: bool,
}

impl Command for CreateSigningKey {
    type Facts = Facts;
    type Receipt = Arc<ApiKey>;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        field_errors.line(Field::Name, &self.name, 100);
        let fits = self.grant.notation.len() <= MAX_NOTATION_BYTES
            && self.grant.places.entries().len() <= MAX_ENTRIES;
        field_errors.unless(fits, Field::Scopes, "must have at most 16 KB and 500 entries");
        field_errors.into_result()
    }

    /// Allowed for site admins, for themselves, and for the operator, for a site admin: a grant may cover places
    /// outside rooms, which only site admins may use. API keys cannot create keys.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let owner = if caller.is_operator() {
            let owner = match &self.owner {
                Some(owner) => view.user(owner)?,
                None => None,
            };
            let owner = owner.ok_or(Refusal::NotFound(EntityKind::User))?;
            if owner.role != SiteRole::Admin {
                let rule = "sources, dead-letters and metrics are for keys of admins";
                return Err(Refusal::invalid(Field::Scope, rule).into());
            }
            owner.id.clone()
        } else {
            let person = caller.person()?;
            let for_another = self.owner.as_ref().is_some_and(|owner| *owner != person.user.id);
            if for_another || !person.is_site_admin() {
                return Err(Refusal::Forbidden.into());
            }
            person.user.id.clone()
        };
        let key_count = view.store.signing_key_count(&owner)?;
        let id_exists = view.store.key(&self.id)?.is_some();
        Ok(Facts { owner, key_count, id_exists })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Arc<ApiKey>, Refusal> {
        let Facts { owner, key_count, id_exists } = facts;
        if id_exists {
            return Err(Refusal::AlreadyExists(EntityKind::Key));
        }
        if key_count >= MAX_KEYS {
            return Err(Refusal::invalid(Field::Name, "exceeds the limit of 100 keys with a grant"));
        }
        let key = Arc::new(ApiKey {
            id: self.id,
            owner,
            name: self.name,
            scopes: vec![Scope::Read, Scope::Write],
            grant: Some(Arc::new(self.grant)),
            created_at: effects.now,
        });
        effects.change(CredentialChange::PutSigningKey(key.clone(), self.secret, self.sealed));
        let notation = key.grant.as_ref().map(|grant| &*grant.notation).unwrap_or_default();
        let notation: String = notation.chars().take(200).collect();
        let detail = format!("for {}: {notation}", key.owner);
        effects.audit(Action::KeyCreated, Some(audit::key(&key)), Some(detail.into()));
        Ok(key)
    }
}
