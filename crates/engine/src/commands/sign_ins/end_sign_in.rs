//! Ends a sign-in of the caller.

use crate::audit;
use crate::changes::CredentialChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::AuthContext;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::audit::Action;
use parlor_model::command::EndSignIn;
use parlor_model::{EntityKind, Event, Refusal};
use std::sync::Arc;

impl Command for EndSignIn {
    type Facts = Arc<AuthContext>;
    type Receipt = ();

    /// Users end their own sign-ins, on any of their devices. Keys end none.
    fn permit(
        &self,
        caller: &CallerContext,
        view: &mut WriterView<'_>,
    ) -> Result<Arc<AuthContext>, PermitError> {
        let person = caller.person()?;
        match view.store.sign_in(&self.sign_in)? {
            Some(sign_in) if sign_in.user == person.user.id => Ok(person),
            _ => Err(Refusal::NotFound(EntityKind::SignIn).into()),
        }
    }

    fn decide(self, caller: Arc<AuthContext>, effects: &mut EffectsBuilder<'_>) -> Result<(), Refusal> {
        let detail = format!("session {}", self.sign_in);
        effects.change(CredentialChange::EndSignIn(self.sign_in.clone()));
        effects.publish(Event::SignInEnded { user: caller.user.id.clone(), sign_in: self.sign_in });
        effects.audit(Action::SignedOut, Some(audit::user(&caller.user)), Some(detail.into()));
        Ok(())
    }
}
