//! Checks whether the caller may subscribe to the events of a room.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::Operation;
use parlor_model::query::MayFollowRoom;

impl Query for MayFollowRoom {
    type Facts = ();
    type Answer = ();

    /// Allowed for every member of the room.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<(), PermitError> {
        view.at_room(caller, Operation::Subscribe, &self.room).map(drop)
    }

    fn answer(&self, _facts: (), _store: &mut dyn Snapshot, _limits: &Limits) -> Result<(), Fault> {
        Ok(())
    }
}
