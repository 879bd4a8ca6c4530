//! Offers the first-run setup, with which the first admin is created.

use crate::changes::AccountChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::command::OfferSetup;
use parlor_model::{EntityKind, Refusal};

impl Command for OfferSetup {
    /// Number of site admins.
    type Facts = u64;
    type Receipt = ();

    /// Allowed for the operator.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<u64, PermitError> {
        caller.operator()?;
        Ok(view.store.admins()?)
    }

    fn decide(self, admins: u64, effects: &mut EffectsBuilder<'_>) -> Result<(), Refusal> {
        if admins > 0 {
            return Err(Refusal::AlreadyExists(EntityKind::User));
        }
        effects.change(AccountChange::OfferSetup(Some((self.token, self.expires_at))));
        Ok(())
    }
}
