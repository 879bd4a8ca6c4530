//! Counts the replies to a message.

use crate::permission::{CallerContext, PermitError, SeenMessage};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::Scope;
use parlor_model::query::CountReplies;

impl Query for CountReplies {
    type Facts = SeenMessage;
    type Answer = u64;

    /// Allowed for every member who can see the message.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<SeenMessage, PermitError> {
        view.seen_message(caller, &self.message, Scope::Read)
    }

    fn answer(&self, seen: SeenMessage, store: &mut dyn Snapshot, _limits: &Limits) -> Result<u64, Fault> {
        store.answer_count(&seen.message, seen.member.room_preferences.cleared_through)
    }
}
