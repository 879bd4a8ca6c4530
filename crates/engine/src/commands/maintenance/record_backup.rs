//! Records in the audit log that a backup was made.

use crate::audit;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::Refusal;
use parlor_model::audit::Action;
use parlor_model::command::RecordBackup;

impl Command for RecordBackup {
    type Facts = ();
    type Receipt = ();

    /// Allowed for the operator.
    fn permit(&self, caller: &CallerContext, _view: &mut WriterView<'_>) -> Result<(), PermitError> {
        Ok(caller.operator()?)
    }

    fn decide(self, (): (), effects: &mut EffectsBuilder<'_>) -> Result<(), Refusal> {
        effects.audit(Action::BackedUp, None, Some(audit::up_to(self.through).into()));
        Ok(())
    }
}
