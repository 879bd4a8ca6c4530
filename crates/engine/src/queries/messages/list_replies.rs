//! Lists the replies to a message, page by page.

use super::page::page;
use crate::permission::{CallerContext, PermitError, SeenMessage};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::Scope;
use parlor_model::query::{ListReplies, MessagePage};

impl Query for ListReplies {
    type Facts = SeenMessage;
    type Answer = MessagePage;

    /// Allowed for every member who can see the message.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<SeenMessage, PermitError> {
        view.seen_message(caller, &self.message, Scope::Read)
    }

    fn answer(
        &self,
        seen: SeenMessage,
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<MessagePage, Fault> {
        let after = self.after.max(seen.member.room_preferences.cleared_through);
        Ok(page(store.answers(&seen.message, after, self.limit + 1)?, self.limit))
    }
}
