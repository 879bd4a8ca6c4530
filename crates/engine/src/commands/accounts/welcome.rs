//! The welcome room and its guide: created for the first admin, and joined by every new user.

use crate::Fault;
use crate::changes::RoomChange;
use crate::commands::agents::existing_agent::publish_agent;
use crate::commands::agents::new_agent::{new_agent, store_new_agent};
use crate::commands::rooms::members::{load_for_event, member, members_for_event};
use crate::commands::rooms::names::OwnNames;
use crate::commands::runs;
use crate::effects::EffectsBuilder;
use crate::read_view::WriterView;
use parlor_model::{
    AddressedBy, Agent, AgentHost, AgentId, ConversationId, Event, GatewayId, Lineage, Member, MemberChange,
    MemberId, Room, RoomId, RoomKind, RoomRole, Run, RunCause, RunState, Seq, SiteRole, User, UserId,
    Visibility,
};
use std::sync::Arc;

pub const ROOM: &str = "welcome";
pub const GUIDE: &str = "guide";
/// Id of the gateway that stands for the hub itself, which hosts built-in agents.
pub const HUB: &str = "hub";

/// The welcome room and its guide, as stored now.
pub struct Welcome {
    room: Option<Arc<Room>>,
    /// Name of the new user in the existing room.
    name: Option<Box<str>>,
    members: Vec<Member>,
    guide_exists: bool,
    guide_is_member: bool,
    /// `Seq` of the newest event. Earlier messages count as read for a new member.
    head: Seq,
}

impl Welcome {
    /// Returns `None` if the hub does not welcome new users.
    pub fn load(names: &OwnNames, view: &mut WriterView<'_>) -> Result<Option<Self>, Fault> {
        if !view.limits.welcome {
            return Ok(None);
        }
        let (room, guide) = (RoomId::stored(ROOM), AgentId::stored(GUIDE));
        let found = view.room(&room)?;
        // The new account has no id yet.
        let new = MemberId::User(UserId::stored(""));
        let name = found.as_ref().map(|room| names.in_room(room, &new, view)).transpose()?;
        Ok(Some(Self {
            room: found,
            name,
            members: load_for_event(&room, view)?,
            guide_exists: view.agent(&guide)?.is_some(),
            guide_is_member: view.store.member(&room, &MemberId::Agent(guide))?.is_some(),
            head: view.head.seq,
        }))
    }

    /// Adds a new user to the welcome room, which is created for the first admin, and queues a greeting by the
    /// guide.
    pub fn join(mut self, user: &User, admins: u64, effects: &mut EffectsBuilder<'_>) {
        let first = admins == 0 && user.role == SiteRole::Admin;
        let room = match self.room {
            Some(room) => room,
            None if first && !self.guide_exists => create_room(user, &mut self.members, effects),
            // The room was removed on purpose; it is not created again.
            None => return,
        };
        let role = if first { RoomRole::Owner } else { RoomRole::Member };
        let new = MemberId::User(user.id.clone());
        let names = OwnNames::from(user);
        let name = self.name.take().unwrap_or_else(|| names.among(&self.members));
        let mut member = member(&room, new.clone(), role, (name, &names), effects.now);
        member.read_through = self.head;
        self.members.push(member.clone());
        effects.change(RoomChange::PutMember(Arc::new(member)));
        let members = members_for_event(&self.members);
        effects.publish(Event::MembersChanged {
            room: room.clone(),
            change: MemberChange::Added(new),
            members,
        });
        if first || self.guide_is_member {
            queue_greeting(&room, &user.id, effects);
        }
    }
}

/// Creates the welcome room with the guide as its first member, and adds the guide to `members`.
fn create_room(owner: &User, members: &mut Vec<Member>, effects: &mut EffectsBuilder<'_>) -> Arc<Room> {
    let guide = create_guide(owner, effects);
    let now = effects.now;
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
        description: None,
        created_by: owner.id.clone(),
        created_at: now,
        updated_at: now,
    });
    effects.change(RoomChange::PutRoom(room.clone()));
    let new = MemberId::Agent(guide.id.clone());
    let names = OwnNames::of_agent(&guide, owner);
    let membership = member(&room, new.clone(), RoomRole::Member, (names.name.clone(), &names), now);
    members.push(membership.clone());
    let members = members_for_event(members);
    effects.change(RoomChange::PutMember(Arc::new(membership)));
    let change = MemberChange::Added(new);
    effects.publish(Event::MembersChanged { room: room.clone(), change, members });
    room
}

fn create_guide(owner: &User, effects: &mut EffectsBuilder<'_>) -> Arc<Agent> {
    let host =
        AgentHost { gateway: Some(GatewayId::stored(HUB)), kind: GUIDE.into(), ..AgentHost::default() };
    let guide = Agent {
        description: "Shows what agents can do here".into(),
        host,
        visibility: Visibility::All,
        ..new_agent(AgentId::stored(GUIDE), owner.id.clone(), GUIDE, effects.now)
    };
    let guide = store_new_agent(guide, effects);
    publish_agent(&guide, None, &[], effects);
    guide
}

/// Queues a run in which the guide greets a new user.
fn queue_greeting(room: &Room, arrival: &UserId, effects: &mut EffectsBuilder<'_>) {
    let guide = AgentId::stored(GUIDE);
    let conversation = ConversationId::stored(effects.new_id());
    let lineage = Lineage::start(conversation, guide.clone());
    let run = Run {
        cause: RunCause::Arrival(arrival.clone()),
        addressed: AddressedBy::Directly,
        state: RunState::Queued,
        started_at: None,
        ..runs::new_run(&guide, &room.id, lineage, effects)
    };
    runs::put(run, effects);
}
