//! Creates a pairing code, with which another machine gets an API key of the caller.

use crate::changes::AccountChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::AuthContext;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::command::OfferPairing;
use parlor_model::{Pairing, Refusal};
use std::sync::Arc;

impl Command for OfferPairing {
    type Facts = Arc<AuthContext>;
    type Receipt = ();

    /// Allowed for every user, but not for API keys: a key that could create further keys would not be limited
    /// by its scopes.
    fn permit(
        &self,
        caller: &CallerContext,
        _view: &mut WriterView<'_>,
    ) -> Result<Arc<AuthContext>, PermitError> {
        Ok(caller.person()?)
    }

    fn decide(self, caller: Arc<AuthContext>, effects: &mut EffectsBuilder<'_>) -> Result<(), Refusal> {
        let pairing = Pairing { user: caller.user.id.clone(), expires_at: self.expires_at };
        effects.change(AccountChange::PutPairing(pairing, self.code));
        Ok(())
    }
}
