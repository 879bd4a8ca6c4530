//! Checks whether the caller may follow the runs in the sessions of its agents.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::MayFollowSessions;

impl Query for MayFollowSessions {
    type Facts = ();
    type Answer = ();

    /// Allowed for every user.
    fn permit(&self, caller: &CallerContext, _view: &mut ReadView<'_>) -> Result<(), PermitError> {
        super::owner(caller).map(drop).map_err(Into::into)
    }

    fn answer(&self, (): (), _store: &mut dyn Snapshot, _limits: &Limits) -> Result<(), Fault> {
        Ok(())
    }
}
