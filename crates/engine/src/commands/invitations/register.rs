//! Creates an account with an invitation, or without one if registration is open.

use crate::changes::AccountChange;
use crate::commands::Command;
use crate::commands::accounts::new_account::{AccountFacts, create_account, validate_account};
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use crate::{Limits, audit};
use parlor_model::audit::Action;
use parlor_model::command::{NewUser, Register};
use parlor_model::{Invitation, Refusal, SiteRole, User};
use std::sync::Arc;

pub struct Facts {
    /// `None` if registration is open to everyone.
    invitation: Option<Invitation>,
    account: AccountFacts,
}

impl Command for Register {
    type Facts = Facts;
    type Receipt = Arc<User>;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        validate_account(&self.account)
    }

    /// Allowed for everyone with the token of an open invitation, and for everyone if registration is open.
    fn permit(&self, _caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let invitation = view.registration(self.token.as_ref())?;
        Ok(Facts { invitation, account: AccountFacts::load(&self.account, view)? })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Arc<User>, Refusal> {
        let invitation = facts.invitation;
        let role = invitation.as_ref().map_or(SiteRole::User, |invitation| invitation.role);
        let user = create_account(NewUser { role, ..self.account }, facts.account, effects)?;
        let detail = match invitation {
            Some(invitation) => {
                let detail = format!("as {}, by invitation {}", user.role.as_str(), invitation.id);
                // The only place where a use is spent: of two concurrent registrations with one use left, the
                // second is refused.
                effects.change(AccountChange::UseInvitation(invitation.id));
                detail
            }
            None => format!("as {}, by open registration", user.role.as_str()),
        };
        effects.audit(Action::UserCreated, Some(audit::user(&user)), Some(detail.into()));
        Ok(user)
    }
}
