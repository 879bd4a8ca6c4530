//! The welcome room and its guide: created for the first admin, and joined by every new user.

use super::{Change, EffectsBuilder, rooms, runs};
use crate::commands::agents::new_agent::put_new_agent;
use crate::facts::NameAndHandle;
use parlor_model::{
    Agent, AgentHost, AgentId, Event, GatewayId, MemberChange, MemberId, Refusal, Room, RoomId, RoomKind,
    RoomRole, SiteRole, User, Visibility,
};
use std::sync::Arc;

pub const ROOM: &str = "welcome";
pub const GUIDE: &str = "guide";
/// Id of the gateway that stands for the hub itself, which hosts built-in agents.
pub const HUB: &str = "hub";

/// Adds a new user to the welcome room, which is created for the first admin, and queues a greeting by the
/// guide.
pub fn welcome(user: &User, effects_builder: &mut EffectsBuilder) -> Result<(), Refusal> {
    if !effects_builder.decide_context.limits.welcome {
        return Ok(());
    }
    let first = effects_builder.facts.admins == 0 && user.role == SiteRole::Admin;
    let room = match &effects_builder.facts.room {
        Some(room) => room.clone(),
        None if first && effects_builder.facts.agent.is_none() => create_room(user, effects_builder)?,
        // The room was removed on purpose; it is not created again.
        None => return Ok(()),
    };
    let names = NameAndHandle { name: user.display_name.clone(), handle: user.username.clone() };
    let role = if first { RoomRole::Owner } else { RoomRole::Member };
    let new = MemberId::User(user.id.clone());
    let mut member = rooms::member(&room, new.clone(), role, &names, effects_builder.facts.now);
    member.read_through = effects_builder.facts.head;
    let mut members = effects_builder.facts.members.to_vec();
    members.push(member.clone());
    effects_builder.change(Change::PutMember(Arc::new(member)));
    let event_members = rooms::members_for_event(&members);
    effects_builder.publish(Event::MembersChanged {
        room: room.clone(),
        change: MemberChange::Added(new),
        members: event_members,
    });
    let has_guide = first || effects_builder.facts.target.is_some();
    if has_guide {
        runs::greet(&AgentId::stored(GUIDE), &room, &user.id, effects_builder);
    }
    Ok(())
}

fn create_room(owner: &User, effects_builder: &mut EffectsBuilder) -> Result<Arc<Room>, Refusal> {
    let now = effects_builder.facts.now;
    let guide = Agent {
        id: AgentId::stored(GUIDE),
        owner: owner.id.clone(),
        name: GUIDE.into(),
        description: "Shows what agents can do here".into(),
        settings: Default::default(),
        host: AgentHost { gateway: Some(GatewayId::stored(HUB)), kind: GUIDE.into(), ..AgentHost::default() },
        visibility: Visibility::All,
        created_at: now,
    };
    let room = Arc::new(Room {
        id: RoomId::stored(ROOM),
        name: ROOM.into(),
        kind: RoomKind::Group,
        policy: Default::default(),
        system_prompt: None,
        agent_command_role: RoomRole::Member,
        approve_role: RoomRole::Member,
        router: None,
        frozen: None,
        project_root: None,
        created_by: owner.id.clone(),
        created_at: now,
        updated_at: now,
    });
    let guide = put_new_agent(guide, &[], 0, effects_builder)?.agent;
    effects_builder.change(Change::PutRoom(room.clone()));
    let names = NameAndHandle { name: guide.name.clone(), handle: guide.name.clone() };
    let member = MemberId::Agent(guide.id.clone());
    let membership = rooms::member(&room, member.clone(), RoomRole::Member, &names, now);
    let members = rooms::members_for_event(std::slice::from_ref(&membership));
    effects_builder.change(Change::PutMember(Arc::new(membership)));
    effects_builder.publish(Event::MembersChanged {
        room: room.clone(),
        change: MemberChange::Added(member),
        members,
    });
    Ok(room)
}
