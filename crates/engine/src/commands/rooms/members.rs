//! Members of rooms: a new membership, and the members that an event lists.

use crate::Fault;
use crate::read_view::ReadView;
use parlor_model::{Agent, Member, MemberId, Room, RoomId, RoomPreferences, RoomRole, Seq, Time, User};
use std::sync::Arc;

/// Maximum number of members listed in the event of a membership change.
pub const MAX_MEMBERS_IN_EVENT: usize = 100;

/// Display name of a user or agent, and the handle that mentions may use instead.
#[derive(Debug, Clone)]
pub struct NameAndHandle {
    pub name: Box<str>,
    pub handle: Box<str>,
}

impl From<&User> for NameAndHandle {
    fn from(user: &User) -> Self {
        Self { name: user.display_name.clone(), handle: user.username.clone() }
    }
}

impl From<&Agent> for NameAndHandle {
    fn from(agent: &Agent) -> Self {
        Self { name: agent.name.clone(), handle: agent.id.as_str().into() }
    }
}

/// A membership that begins now, without a description and with nothing read.
pub fn member(
    room: &Room,
    member: MemberId,
    role: RoomRole,
    names: &NameAndHandle,
    joined_at: Time,
) -> Member {
    Member {
        room: room.id.clone(),
        member,
        role,
        role_description: None,
        name: names.name.clone(),
        handle: names.handle.clone(),
        joined_at,
        read_through: Seq(0),
        read_at: None,
        room_preferences: RoomPreferences::default(),
    }
}

/// The members of a room, as far as [`members_for_event`] needs them.
pub fn load_for_event(room: &RoomId, view: &mut ReadView<'_>) -> Result<Vec<Member>, Fault> {
    view.store.members(room, MAX_MEMBERS_IN_EVENT + 1, 0)
}

/// Members as included in a `MembersChanged` event: all of them in a small room, none in a large one, whose
/// members clients read page by page.
pub fn members_for_event(members: &[Member]) -> Arc<[Member]> {
    if members.len() > MAX_MEMBERS_IN_EVENT {
        return Arc::new([]);
    }
    members.iter().map(Member::seen_by_others).collect()
}
