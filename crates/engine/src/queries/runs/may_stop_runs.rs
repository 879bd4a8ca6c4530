//! Checks whether the caller may cancel runs in a room.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::MayStopRuns;
use parlor_model::{RoomRole, Scope};

impl Query for MayStopRuns {
    type Facts = ();
    type Answer = ();

    /// Allowed for every member of the room.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<(), PermitError> {
        view.in_room(caller, &self.room, RoomRole::Member, Scope::Write).map(drop)
    }

    fn answer(&self, (): (), _store: &mut dyn Snapshot, _limits: &Limits) -> Result<(), Fault> {
        Ok(())
    }
}
