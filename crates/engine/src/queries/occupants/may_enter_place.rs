//! Checks whether the caller may be a member of the presence set of a place.

use super::at_place;
use crate::feed::Access;
use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::Operation;
use parlor_model::query::MayEnterPlace;

impl Query for MayEnterPlace {
    type Facts = Access;
    type Answer = ();

    /// Allowed for members of the room and, outside rooms, with a grant or the scope for sources.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<Access, PermitError> {
        at_place(caller, Operation::Presence, &self.place, view)
    }

    fn answer(&self, _facts: Access, _store: &mut dyn Snapshot, _limits: &Limits) -> Result<(), Fault> {
        Ok(())
    }
}
