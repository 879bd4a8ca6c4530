//! Lists the pinned messages of a room.

use crate::permission::{CallerContext, InRoom, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::queries::answer_budget::count_within_budget;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::{ListPins, PinnedMessages};
use parlor_model::{RoomRole, Scope};

impl Query for ListPins {
    type Facts = InRoom;
    type Answer = PinnedMessages;

    /// Allowed for every member of the room.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<InRoom, PermitError> {
        view.in_room(caller, &self.room, RoomRole::Member, Scope::Read)
    }

    fn answer(
        &self,
        reader: InRoom,
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<PinnedMessages, Fault> {
        let mut pins = store.pins(&self.room, reader.member.room_preferences.cleared_through)?;
        pins.truncate(count_within_budget(pins.iter().map(|(_, message)| message.length())));
        Ok(pins)
    }
}
