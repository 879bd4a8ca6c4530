//! Checks whether the caller may send a message to an agent, before images of the message are stored.

use crate::commands::messages::addressee::Addressee;
use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::MayPromptAgent;

impl Query for MayPromptAgent {
    type Facts = ();
    type Answer = ();

    /// Allowed for members of the selected room with the agent; without a room, for every user.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<(), PermitError> {
        Addressee::find(&self.agent, &self.rooms, &self.text, caller, view).map(drop)
    }

    fn answer(&self, (): (), _store: &mut dyn Snapshot, _limits: &Limits) -> Result<(), Fault> {
        Ok(())
    }
}
