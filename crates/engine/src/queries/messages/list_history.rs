//! Lists the messages of a room, page by page.

use super::page::page;
use crate::permission::{CallerContext, InRoom, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::Operation;
use parlor_model::query::{ListHistory, MessagePage};

impl Query for ListHistory {
    type Facts = InRoom;
    type Answer = MessagePage;

    /// Allowed for every member of the room.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<InRoom, PermitError> {
        view.at_room(caller, Operation::History, &self.room)
    }

    fn answer(
        &self,
        reader: InRoom,
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<MessagePage, Fault> {
        let cleared_through = reader.member.room_preferences.cleared_through;
        let messages = store.history(&self.room, cleared_through, self.page, self.limit + 1)?;
        Ok(page(messages, self.limit))
    }
}
