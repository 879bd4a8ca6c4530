//! Removes all dead letters of the hub.

use crate::changes::MailChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::audit::Action;
use parlor_model::command::ClearDeadLetters;
use parlor_model::{Refusal, Scope};

impl Command for ClearDeadLetters {
    type Facts = ();
    type Receipt = ();

    /// Allowed for site admins and keys with the dead-letter scope: an undelivered message may have been meant
    /// for any user.
    fn permit(&self, caller: &CallerContext, _view: &mut WriterView<'_>) -> Result<(), PermitError> {
        Ok(caller.site_admin_or_key(Scope::DeadLetters)?)
    }

    fn decide(self, (): (), effects: &mut EffectsBuilder<'_>) -> Result<(), Refusal> {
        effects.change(MailChange::ClearDeadLetters);
        effects.audit(Action::DeadLettersCleared, None, None);
        Ok(())
    }
}
