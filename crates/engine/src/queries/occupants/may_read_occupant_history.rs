//! Checks whether the caller may read the recent changes of a presence set.

use super::at_place;
use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::Operation;
use parlor_model::query::MayReadOccupantHistory;

impl Query for MayReadOccupantHistory {
    type Facts = ();
    type Answer = ();

    /// Allowed for callers that may read the history of the room or path.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<(), PermitError> {
        at_place(caller, Operation::History, &self.place, view).map(drop)
    }

    fn answer(&self, _facts: (), _store: &mut dyn Snapshot, _limits: &Limits) -> Result<(), Fault> {
        Ok(())
    }
}
