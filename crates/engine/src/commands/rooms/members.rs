//! Members of rooms: a new membership, and the members that an event lists.

use super::audit::{in_room_as, member_subject};
use super::names::OwnNames;
use crate::Fault;
use crate::changes::RoomChange;
use crate::effects::EffectsBuilder;
use crate::read_view::ReadView;
use parlor_model::audit::Action;
use parlor_model::{
    EntityKind, Event, Member, MemberChange, MemberId, Refusal, Room, RoomId, RoomPreferences, RoomRole, Seq,
    Time,
};
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

/// A user or an agent that a command adds to a room.
pub struct NewMember {
    member: MemberId,
    names: OwnNames,
    /// Name of the new member in the room.
    name: Box<str>,
    /// Whether the user or agent is a member already.
    is_member: bool,
    /// Current members, as far as the event needs them.
    members: Vec<Member>,
    /// `Seq` of the newest event.
    head: Seq,
}

impl NewMember {
    pub fn load(
        room: &Room,
        member: MemberId,
        names: OwnNames,
        view: &mut ReadView<'_>,
    ) -> Result<Self, Fault> {
        let name = names.in_room(room, &member, view)?;
        let is_member = view.store.member(&room.id, &member)?.is_some();
        let members = load_for_event(&room.id, view)?;
        Ok(Self { member, names, name, is_member, members, head: view.head.seq })
    }
}

/// Adds a member to a room, announces it and records it. Refuses a user or agent that is a member already.
pub fn add_member(
    room: &Arc<Room>,
    new: NewMember,
    role: RoomRole,
    description: Option<Box<str>>,
    effects: &mut EffectsBuilder<'_>,
) -> Result<Arc<Member>, Refusal> {
    let NewMember { member: id, names, name, is_member, mut members, head } = new;
    if is_member {
        return Err(Refusal::AlreadyExists(EntityKind::Member));
    }
    let new = Member {
        // Earlier messages count as read for a new member.
        read_through: head,
        role_description: description,
        ..member(room, id.clone(), role, (name, &names), effects.now)
    };
    members.push(new.clone());
    let new = Arc::new(new);
    effects.change(RoomChange::PutMember(new.clone()));
    let (change, members) = (MemberChange::Added(id), members_for_event(&members));
    effects.publish(Event::MembersChanged { room: room.clone(), change, members });
    effects.audit(Action::MemberAdded, member_subject(&new), in_room_as(&room.id, new.role));
    Ok(new)
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
