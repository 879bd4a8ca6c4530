//! Lists a page of the audit log.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::audit::AuditFilter;
use parlor_model::query::{AuditPage, ListAuditRecords};

impl Query for ListAuditRecords {
    type Facts = ();
    type Answer = AuditPage;

    /// Allowed for site admins and the operator.
    fn permit(&self, caller: &CallerContext, _view: &mut ReadView<'_>) -> Result<(), PermitError> {
        Ok(caller.site_admin()?)
    }

    fn answer(&self, (): (), store: &mut dyn Snapshot, _limits: &Limits) -> Result<AuditPage, Fault> {
        // The extra record shows that there are more.
        let limit = self.filter.limit;
        let mut records = store.audit(&AuditFilter { limit: limit + 1, ..self.filter.clone() })?;
        let more = records.len() > limit;
        records.truncate(limit);
        Ok(AuditPage { records, more })
    }
}
