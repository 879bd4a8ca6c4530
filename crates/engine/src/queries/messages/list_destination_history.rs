//! Lists the messages of a room or a path by time or position, page by page.

use super::page::page;
use crate::paths::on_path;
use crate::permission::{CallerContext, PermitError};
use crate::ports::{MessageRange, Snapshot};
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::{ListDestinationHistory, MessagePage};
use parlor_model::{Destination, Operation, Seq};

impl Query for ListDestinationHistory {
    /// Position through which the caller has cleared the history.
    type Facts = Seq;
    type Answer = MessagePage;

    /// Allowed for every member of the room. On a path, allowed with a grant for its history, and for site admins and
    /// keys with the `sources` scope.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<Seq, PermitError> {
        match &self.destination {
            Destination::Room(room) => {
                let reader = view.at_room(caller, Operation::History, room)?;
                Ok(reader.member.room_preferences.cleared_through)
            }
            Destination::Path(path) => {
                on_path(caller, Operation::History, path)?;
                Ok(Seq(0))
            }
        }
    }

    fn answer(
        &self,
        cleared_through: Seq,
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<MessagePage, Fault> {
        let (after, before) = if self.forwards { (self.cursor, None) } else { (None, self.cursor) };
        let until = self.until.map(Seq::next);
        let range = MessageRange {
            destination: &self.destination,
            after: after.unwrap_or_default().max(cleared_through),
            before: before.into_iter().chain(until).min(),
            start: self.start,
            end: self.end,
            forwards: self.forwards,
        };
        let messages = store.messages_in_range(&range, self.limit + 1)?;
        Ok(page(messages, self.limit))
    }
}
