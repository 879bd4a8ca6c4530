//! Creates the first admin, with the token of the setup link.

use super::new_account::{AccountFacts, create_account, validate_account};
use crate::changes::AccountChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use crate::{Limits, audit};
use parlor_model::audit::Action;
use parlor_model::command::{NewUser, SetUp};
use parlor_model::{EntityKind, Refusal, SecretHash, SiteRole, Time, User};
use std::sync::Arc;

pub struct Facts {
    account: AccountFacts,
    /// Token and expiry of the offered setup, if any.
    offer: Option<(SecretHash, Time)>,
}

impl Command for SetUp {
    type Facts = Facts;
    type Receipt = Arc<User>;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        validate_account(&self.account)
    }

    /// Allowed for everyone. `decide` checks the token, which is the permission.
    fn permit(&self, _caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let account = AccountFacts::load(&self.account, view)?;
        Ok(Facts { account, offer: view.store.setup()? })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Arc<User>, Refusal> {
        let is_valid =
            facts.offer.is_some_and(|(offered, expires)| offered == self.token && expires > effects.now);
        if facts.account.admins > 0 || !is_valid {
            return Err(Refusal::NotFound(EntityKind::SetupLink));
        }
        let account = NewUser { role: SiteRole::Admin, ..self.account };
        let user = create_account(account, facts.account, effects)?;
        effects.change(AccountChange::OfferSetup(None));
        let detail = Some("as admin, by the setup link".into());
        effects.audit(Action::UserCreated, Some(audit::user(&user)), detail);
        Ok(user)
    }
}
