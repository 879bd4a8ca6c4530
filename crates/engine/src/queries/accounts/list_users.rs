//! Lists all accounts, page by page.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::{ListUsers, UserPage};

impl Query for ListUsers {
    type Facts = ();
    type Answer = UserPage;

    /// Allowed for site admins and the operator.
    fn permit(&self, caller: &CallerContext, _view: &mut ReadView<'_>) -> Result<(), PermitError> {
        Ok(caller.site_admin()?)
    }

    fn answer(&self, (): (), store: &mut dyn Snapshot, _limits: &Limits) -> Result<UserPage, Fault> {
        let (users, total) = store.users(self.limit, self.offset)?;
        Ok(UserPage { users, total })
    }
}
