//! Removes a deleted user or agent from every room.

use super::members::members_for_event;
use crate::changes::RoomChange;
use crate::effects::EffectsBuilder;
use parlor_model::{Event, Member, MemberChange, MemberId, Room, RoomId, RoomRole};
use std::collections::HashSet;
use std::sync::Arc;

/// A membership that ends, with its room.
#[derive(Debug, Clone)]
pub struct Membership {
    pub room: Room,
    pub member: Member,
    /// All members of the room.
    pub everyone: Arc<[Member]>,
}

/// Removes these members, such as a user and the user's agents, from all their rooms. Ownership of a room
/// passes to the remaining user with the highest role, by time of joining among equals; a room without users
/// is removed.
pub fn leave_all(memberships: &[Membership], effects: &mut EffectsBuilder<'_>) {
    let leaving: HashSet<&MemberId> = memberships.iter().map(|m| &m.member.member).collect();
    let mut ended: HashSet<&RoomId> = HashSet::new();
    for Membership { room, member, everyone, .. } in memberships {
        if ended.contains(&room.id) {
            continue;
        }
        let mut staying: Vec<Member> =
            everyone.iter().filter(|other| !leaving.contains(&other.member)).cloned().collect();
        let successor = staying
            .iter()
            .enumerate()
            .filter(|(_, member)| member.member.user().is_some())
            .max_by_key(|(index, member)| (member.role, std::cmp::Reverse(*index)))
            .map(|(index, _)| index);
        let Some(successor) = successor else {
            ended.insert(&room.id);
            effects.change(RoomChange::RemoveRoom(room.id.clone()));
            effects.publish(Event::RoomRemoved { room: room.id.clone(), people: Arc::new([]) });
            continue;
        };
        let mut departing = everyone.iter().filter(|other| leaving.contains(&other.member));
        if departing.any(|departing| departing.role == RoomRole::Owner) {
            staying[successor].role = RoomRole::Owner;
        }
        let room = Arc::new(room.clone());
        effects.change(RoomChange::RemoveMember(room.id.clone(), member.member.clone()));
        if member.role == RoomRole::Owner {
            let successor = staying[successor].clone();
            let change = MemberChange::Changed(successor.member.clone());
            effects.change(RoomChange::PutMember(Arc::new(successor)));
            let members = members_for_event(&staying);
            effects.publish(Event::MembersChanged { room: room.clone(), change, members });
        }
        let change = MemberChange::Removed(member.member.clone());
        effects.publish(Event::MembersChanged { room, change, members: members_for_event(&staying) });
    }
}
