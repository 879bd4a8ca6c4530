//! Decides commands on rooms and their members.

use super::{Change, Effects, EffectsBuilder, approvals, missions};
use crate::facts::{MAX_MEMBERS_IN_EVENT, Membership, NameAndHandle};
use parlor_model::command::RoomChanges;
use parlor_model::{
    AgentId, AnswerPolicy, Command, Edit, EntityKind, Event, Frozen, Member, MemberChange, MemberId, Receipt,
    Refusal, Room, RoomId, RoomKind, RoomPreferences, RoomRole, Seq, Time, UserId,
};
use std::collections::HashSet;
use std::sync::Arc;

pub fn decide(command: &Command, effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    match command {
        Command::CreateRoom { changes, members } => create(changes, members, effects_builder),
        Command::ChangeRoom { changes, .. } => change(changes, effects_builder),
        Command::SetProjectRoot { root, .. } => set_root(root.as_deref(), effects_builder),
        Command::DeleteRoom { room } => delete(room, effects_builder),
        Command::Freeze { .. } => freeze(true, effects_builder),
        Command::Thaw { .. } => freeze(false, effects_builder),
        Command::AddMember { member, role, description, .. } => {
            add(member, *role, description.clone(), effects_builder)
        }
        Command::ChangeMember { role, description, .. } => change_member(*role, description, effects_builder),
        Command::RemoveMember { .. } => remove(effects_builder),
        _ => unreachable!("the dispatcher sends only room commands here"),
    }
}

fn create(
    changes: &RoomChanges,
    invited: &[MemberId],
    mut effects_builder: EffectsBuilder,
) -> Result<Effects, Refusal> {
    let actor = effects_builder.actor()?;
    let now = effects_builder.facts.now;
    let mut room = Room {
        id: RoomId::stored(effects_builder.decide_context.ids.next()),
        name: "".into(),
        kind: RoomKind::Group,
        policy: AnswerPolicy::Mention,
        system_prompt: None,
        agent_command_role: RoomRole::Member,
        approve_role: RoomRole::Member,
        router: None,
        frozen: None,
        project_root: None,
        created_by: actor.id.clone(),
        created_at: now,
        updated_at: now,
    };
    apply(changes, &mut room);
    let room = Arc::new(room);
    let own = NameAndHandle { name: actor.display_name.clone(), handle: actor.username.clone() };
    let mut members = vec![member(&room, MemberId::User(actor.id.clone()), RoomRole::Owner, &own, now)];
    for requested in invited {
        if members.iter().any(|member| member.member == *requested) {
            continue;
        }
        let name = effects_builder
            .facts
            .users
            .iter()
            .find(|(id, _)| id == requested)
            .and_then(|(_, names)| names.as_ref());
        let name = name.ok_or(Refusal::NotFound(EntityKind::User))?;
        members.push(member(&room, requested.clone(), RoomRole::Member, name, now));
    }
    effects_builder.change(Change::PutRoom(room.clone()));
    for member in &members {
        effects_builder.change(Change::PutMember(Arc::new(member.clone())));
    }
    let event_members: Arc<[Member]> = members_for_event(&members);
    for member in members {
        let change = MemberChange::Added(member.member);
        effects_builder.publish(Event::MembersChanged {
            room: room.clone(),
            change,
            members: event_members.clone(),
        });
    }
    effects_builder.done(Receipt::Room(room))
}

fn apply(changes: &RoomChanges, room: &mut Room) {
    if let Some(name) = &changes.name {
        room.name = name.trim().into();
    }
    if let Some(kind) = changes.kind {
        room.kind = kind;
    }
    if let Some(policy) = changes.policy {
        room.policy = policy;
    }
    changes.system_prompt.apply_to(&mut room.system_prompt);
    if let Some(role) = changes.agent_command_role {
        room.agent_command_role = role;
    }
    if let Some(role) = changes.approve_role {
        room.approve_role = role;
    }
    changes.router.apply_to(&mut room.router);
}

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

/// Members as included in a `MembersChanged` event: all of them in a small room, none in a large one, whose
/// members clients read page by page.
pub fn members_for_event(members: &[Member]) -> Arc<[Member]> {
    if members.len() > MAX_MEMBERS_IN_EVENT {
        return Arc::new([]);
    }
    members.iter().map(Member::seen_by_others).collect()
}

fn people(members: &[Member]) -> Arc<[UserId]> {
    members.iter().filter_map(|member| member.member.user().cloned()).collect()
}

fn require_room(effects_builder: &EffectsBuilder) -> Result<Room, Refusal> {
    effects_builder.facts.room.as_deref().cloned().ok_or(Refusal::NotFound(EntityKind::Room))
}

fn change(changes: &RoomChanges, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let mut room = require_room(&effects_builder)?;
    apply(changes, &mut room);
    room.updated_at = effects_builder.facts.now;
    let room = Arc::new(room);
    effects_builder.change(Change::PutRoom(room.clone()));
    effects_builder.publish(Event::RoomChanged(room.clone()));
    effects_builder.done(Receipt::Room(room))
}

/// Freezes or thaws a room. A room that is already frozen keeps its original user and time.
fn freeze(frozen: bool, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let mut room = require_room(&effects_builder)?;
    if room.is_frozen() != frozen {
        let by = effects_builder.facts.standing.as_ref().map(|standing| standing.user.id.clone());
        room.frozen = frozen.then_some(Frozen { by, at: effects_builder.facts.now });
        room.updated_at = effects_builder.facts.now;
        effects_builder.change(Change::PutRoom(Arc::new(room.clone())));
        effects_builder.publish(Event::RoomChanged(Arc::new(room.clone())));
    }
    effects_builder.done(Receipt::Room(Arc::new(room)))
}

fn set_root(root: Option<&str>, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let mut room = require_room(&effects_builder)?;
    if room.project_root.as_deref() != root {
        missions::leave_mission_scope(&room.id, &mut effects_builder);
        room.project_root = root.map(Into::into);
        room.updated_at = effects_builder.facts.now;
        effects_builder.change(Change::PutRoom(Arc::new(room.clone())));
        effects_builder.publish(Event::RoomChanged(Arc::new(room.clone())));
    }
    effects_builder.done(Receipt::Room(Arc::new(room)))
}

fn delete(room: &RoomId, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let people = people(&effects_builder.facts.members);
    approvals::withdraw(&mut effects_builder);
    missions::leave_mission_scope(room, &mut effects_builder);
    effects_builder.change(Change::RemoveRoom(room.clone()));
    effects_builder.publish(Event::RoomRemoved { room: room.clone(), people });
    effects_builder.done(Receipt::Done)
}

fn add(
    requested: &MemberId,
    role: RoomRole,
    description: Option<Box<str>>,
    mut effects_builder: EffectsBuilder,
) -> Result<Effects, Refusal> {
    let room = require_room(&effects_builder)?;
    if effects_builder.facts.target.is_some() {
        return Err(Refusal::AlreadyExists(EntityKind::Member));
    }
    let kind = if requested.user().is_some() { EntityKind::User } else { EntityKind::Agent };
    let name = effects_builder
        .facts
        .users
        .first()
        .and_then(|(_, names)| names.as_ref())
        .ok_or(Refusal::NotFound(kind))?;
    let mut new = member(&room, requested.clone(), role, name, effects_builder.facts.now);
    // Earlier messages count as read for a new member.
    new.read_through = effects_builder.facts.head;
    new.role_description = description;
    let room = Arc::new(room);
    let mut members = effects_builder.facts.members.to_vec();
    members.push(new.clone());
    let new = Arc::new(new);
    effects_builder.change(Change::PutMember(new.clone()));
    let change = MemberChange::Added(requested.clone());
    effects_builder.publish(Event::MembersChanged { room, change, members: members_for_event(&members) });
    effects_builder.done(Receipt::Member(new))
}

fn change_member(
    role: Option<RoomRole>,
    description: &Edit<Box<str>>,
    mut effects_builder: EffectsBuilder,
) -> Result<Effects, Refusal> {
    let room = Arc::new(require_room(&effects_builder)?);
    let target = effects_builder.facts.target.clone().ok_or(Refusal::NotFound(EntityKind::Member))?;
    let mut changed = vec![Member {
        role: role.unwrap_or(target.role),
        role_description: description.apply(&target.role_description),
        ..target
    }];
    if role == Some(RoomRole::Owner) {
        // A room has one owner: the previous owner becomes an admin.
        let giver = effects_builder
            .facts
            .membership
            .as_deref()
            .cloned()
            .ok_or(Refusal::NotFound(EntityKind::Member))?;
        changed.push(Member { role: RoomRole::Admin, ..giver });
    }
    let mut members = effects_builder.facts.members.to_vec();
    for member in &changed {
        if let Some(old) = members.iter_mut().find(|old| old.member == member.member) {
            *old = member.clone();
        }
        effects_builder.change(Change::PutMember(Arc::new(member.clone())));
    }
    let event_members = members_for_event(&members);
    for member in &changed {
        let change = MemberChange::Changed(member.member.clone());
        effects_builder.publish(Event::MembersChanged {
            room: room.clone(),
            change,
            members: event_members.clone(),
        });
    }
    effects_builder.done(Receipt::Member(Arc::new(changed.swap_remove(0))))
}

/// Removes a member. A user's agents leave the room with the user, so that they cannot follow it any longer.
fn remove(mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let room = Arc::new(require_room(&effects_builder)?);
    let target = effects_builder.facts.target.clone().ok_or(Refusal::NotFound(EntityKind::Member))?;
    let own: HashSet<&AgentId> = effects_builder.facts.agents.iter().map(|agent| &agent.id).collect();
    let is_own = |member: &MemberId| member.agent().is_some_and(|agent| own.contains(agent));
    let mut leaving = vec![target.member.clone()];
    leaving.extend(effects_builder.facts.members.iter().map(|member| member.member.clone()).filter(is_own));
    let mut members = effects_builder.facts.members.to_vec();
    members.retain(|member| member.member != target.member && !is_own(&member.member));
    let event_members = members_for_event(&members);
    for member in leaving {
        effects_builder.change(Change::RemoveMember(room.id.clone(), member.clone()));
        let change = MemberChange::Removed(member);
        effects_builder.publish(Event::MembersChanged {
            room: room.clone(),
            change,
            members: event_members.clone(),
        });
    }
    effects_builder.done(Receipt::Done)
}

/// Removes a deleted user, and the user's agents, from every room. Ownership of a room passes to the
/// remaining user with the highest role, by time of joining among equals; a room without users is removed.
pub fn leave_all(effects_builder: &mut EffectsBuilder) {
    let facts = effects_builder.facts;
    approvals::withdraw(effects_builder);
    let leaving: HashSet<&MemberId> = facts.memberships.iter().map(|m| &m.member.member).collect();
    let mut ended: HashSet<&RoomId> = HashSet::new();
    for Membership { room, member, everyone, .. } in &facts.memberships {
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
            effects_builder.change(Change::RemoveRoom(room.id.clone()));
            effects_builder.publish(Event::RoomRemoved { room: room.id.clone(), people: Arc::new([]) });
            continue;
        };
        let mut departing = everyone.iter().filter(|other| leaving.contains(&other.member));
        if departing.any(|departing| departing.role == RoomRole::Owner) {
            staying[successor].role = RoomRole::Owner;
        }
        let room = Arc::new(room.clone());
        effects_builder.change(Change::RemoveMember(room.id.clone(), member.member.clone()));
        if member.role == RoomRole::Owner {
            let successor = staying[successor].clone();
            let change = MemberChange::Changed(successor.member.clone());
            effects_builder.change(Change::PutMember(Arc::new(successor)));
            effects_builder.publish(Event::MembersChanged {
                room: room.clone(),
                change,
                members: members_for_event(&staying),
            });
        }
        let change = MemberChange::Removed(member.member.clone());
        effects_builder.publish(Event::MembersChanged { room, change, members: members_for_event(&staying) });
    }
}
