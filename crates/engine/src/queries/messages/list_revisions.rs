//! Lists the earlier versions of a message.

use crate::permission::{CallerContext, PermitError, SeenMessage};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::queries::answer_budget::count_within_budget;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::ListRevisions;
use parlor_model::{Revision, Scope};

/// Maximum number of earlier versions of a message in one answer.
const MAX_REVISIONS: usize = 100;

impl Query for ListRevisions {
    type Facts = SeenMessage;
    type Answer = Vec<Revision>;

    /// Allowed for every member who can see the message.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<SeenMessage, PermitError> {
        view.seen_message(caller, &self.message, Scope::Read)
    }

    fn answer(
        &self,
        _seen: SeenMessage,
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<Vec<Revision>, Fault> {
        let mut revisions = store.revisions(&self.message, MAX_REVISIONS)?;
        revisions.truncate(count_within_budget(revisions.iter().map(|revision| revision.text.len())));
        Ok(revisions)
    }
}
