//! Offers the caller a second factor.

use crate::changes::CredentialChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::AuthContext;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::command::OfferSecondFactor;
use parlor_model::{EntityKind, Refusal, SecondFactor};
use std::sync::Arc;

impl Command for OfferSecondFactor {
    type Facts = Arc<AuthContext>;
    type Receipt = ();

    /// Users set up their own second factor. Keys set up none.
    fn permit(
        &self,
        caller: &CallerContext,
        _view: &mut WriterView<'_>,
    ) -> Result<Arc<AuthContext>, PermitError> {
        Ok(caller.person()?)
    }

    fn decide(self, caller: Arc<AuthContext>, effects: &mut EffectsBuilder<'_>) -> Result<(), Refusal> {
        if caller.user.second_factor {
            return Err(Refusal::AlreadyExists(EntityKind::SecondFactor));
        }
        effects.change(CredentialChange::PutSecondFactor(Arc::new(SecondFactor {
            user: caller.user.id.clone(),
            sealed: self.sealed,
            confirmed: false,
            last_step: 0,
        })));
        Ok(())
    }
}
