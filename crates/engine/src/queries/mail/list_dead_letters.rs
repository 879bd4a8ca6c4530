//! Lists the dead letters of the hub.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::queries::answer_budget::count_within_budget;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::ListDeadLetters;
use parlor_model::{DeadLetter, Scope};

impl Query for ListDeadLetters {
    type Facts = ();
    type Answer = Vec<DeadLetter>;

    /// Allowed for the operator, site admins and keys with the dead-letter scope: an undelivered message may have been
    /// meant for any user.
    fn permit(&self, caller: &CallerContext, _view: &mut ReadView<'_>) -> Result<(), PermitError> {
        if caller.is_operator() {
            return Ok(());
        }
        Ok(caller.site_admin_or_key(Scope::DeadLetters)?)
    }

    fn answer(&self, (): (), store: &mut dyn Snapshot, _limits: &Limits) -> Result<Vec<DeadLetter>, Fault> {
        let mut letters = store.dead_letters(self.page)?;
        letters.truncate(count_within_budget(letters.iter().map(|letter| letter.message.length())));
        Ok(letters)
    }
}
