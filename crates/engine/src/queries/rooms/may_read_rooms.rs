//! Checks whether the caller may read the selected rooms.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::Scope;
use parlor_model::query::MayReadRooms;

impl Query for MayReadRooms {
    type Facts = ();
    type Answer = ();

    /// Allowed for members of the selected rooms; without a selection, for every user.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<(), PermitError> {
        view.selected_rooms(caller, &self.rooms, Scope::Read).map(drop)
    }

    fn answer(&self, (): (), _store: &mut dyn Snapshot, _limits: &Limits) -> Result<(), Fault> {
        Ok(())
    }
}
