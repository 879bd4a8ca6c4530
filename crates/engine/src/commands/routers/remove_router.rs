//! Removes a router. Rooms that used it have none afterwards.

use super::subject;
use crate::changes::ModelChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, OwnRouter, PermitError};
use crate::read_view::WriterView;
use parlor_model::audit::Action;
use parlor_model::command::RemoveRouter;
use parlor_model::{Refusal, Scope};

impl Command for RemoveRouter {
    type Facts = OwnRouter;
    type Receipt = ();

    /// Allowed for the user who created the router and, if it is shared, for site admins.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<OwnRouter, PermitError> {
        view.own_router(caller, &self.router, Scope::Write)
    }

    fn decide(self, own: OwnRouter, effects: &mut EffectsBuilder<'_>) -> Result<(), Refusal> {
        effects.change(ModelChange::RemoveRouter(self.router));
        effects.audit(Action::RouterRemoved, Some(subject(&own.router)), None);
        Ok(())
    }
}
