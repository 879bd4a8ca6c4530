//! Lists the caller's sign-ins.

use crate::permission::AuthContext;
use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::ListSignIns;
use parlor_model::{SignIn, Time};
use std::sync::Arc;

pub struct Facts {
    caller: Arc<AuthContext>,
    now: Time,
}

impl Query for ListSignIns {
    type Facts = Facts;
    type Answer = Vec<SignIn>;

    /// Users see their own sign-ins. Keys see none.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<Facts, PermitError> {
        Ok(Facts { caller: caller.person()?, now: view.now })
    }

    fn answer(&self, facts: Facts, store: &mut dyn Snapshot, _limits: &Limits) -> Result<Vec<SignIn>, Fault> {
        store.sign_ins(&facts.caller.user.id, facts.now)
    }
}
