//! Checks whether the caller may read how many subscribers and members a place has.

use super::at_place;
use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::Operation;
use parlor_model::query::MayReadOccupancy;

impl Query for MayReadOccupancy {
    type Facts = ();
    type Answer = ();

    /// Allowed for every member of the room. On a path, allowed with a grant for its state, and for site admins and
    /// keys with the `sources` scope.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<(), PermitError> {
        at_place(caller, Operation::Metadata, &self.place, view).map(drop)
    }

    fn answer(&self, _facts: (), _store: &mut dyn Snapshot, _limits: &Limits) -> Result<(), Fault> {
        Ok(())
    }
}
