//! Members of rooms: a new membership, and the members that an event lists.

use super::names::OwnNames;
use crate::Fault;
use crate::read_view::ReadView;
use parlor_model::{Member, MemberId, Room, RoomId, RoomPreferences, RoomRole, Seq, Time};
use std::sync::Arc;

/// Maximum number of members listed in the event of a membership change.
pub const MAX_MEMBERS_IN_EVENT: usize = 100;

/// A membership that begins now, with this name in the room, without a description and with nothing read.
pub fn member(
    room: &Room,
    member: MemberId,
    role: RoomRole,
    (name, names): (Box<str>, &OwnNames),
    joined_at: Time,
) -> Member {
    Member {
        room: room.id.clone(),
        member,
        role,
        role_description: None,
        name,
        handle: names.handle.clone(),
        joined_at,
        read_through: Seq(0),
        read_at: None,
        room_preferences: RoomPreferences::default(),
    }
}

/// The members of a room, as far as [`members_for_event`] needs them.
pub fn load_for_event(room: &RoomId, view: &mut ReadView<'_>) -> Result<Vec<Member>, Fault> {
    // One more than an event must not list, because a removed member is still among them.
    view.store.members(room, MAX_MEMBERS_IN_EVENT + 2, 0)
}

/// Members as included in a `MembersChanged` event: all of them in a small room, none in a large one, whose
/// members clients read page by page.
pub fn members_for_event(members: &[Member]) -> Arc<[Member]> {
    if members.len() > MAX_MEMBERS_IN_EVENT {
        return Arc::new([]);
    }
    members.iter().map(Member::seen_by_others).collect()
}
