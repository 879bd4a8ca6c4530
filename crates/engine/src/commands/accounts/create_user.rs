//! Creates an account.

use super::new_account::{AccountFacts, create_account, validate_account};
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use crate::{Limits, audit};
use parlor_model::audit::Action;
use parlor_model::command::CreateUser;
use parlor_model::{Refusal, User};
use std::sync::Arc;

impl Command for CreateUser {
    type Facts = AccountFacts;
    type Receipt = Arc<User>;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        validate_account(&self.account)
    }

    /// Allowed for site admins and the operator.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<AccountFacts, PermitError> {
        caller.site_admin()?;
        Ok(AccountFacts::load(&self.account, view)?)
    }

    fn decide(self, facts: AccountFacts, effects: &mut EffectsBuilder<'_>) -> Result<Arc<User>, Refusal> {
        let user = create_account(self.account, facts, effects)?;
        let detail = format!("as {}", user.role.as_str());
        effects.audit(Action::UserCreated, Some(audit::user(&user)), Some(detail.into()));
        Ok(user)
    }
}
