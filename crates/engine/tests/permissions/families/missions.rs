//! Permissions of the family `missions`, with the verdicts described in `families`.

use crate::callers::{CallerKind, coder_member, lobby, member, other_member, other_user, room};
use crate::fixtures::agent;
use crate::requests::{AGENTS, PERSON, READ, WRITE, at_root};
use crate::stored::*;
use crate::table::table;
use parlor_engine::changes::{AgentChange, Change, MissionChange, RoomChange};
use parlor_engine::commands::AnyCommand;
use parlor_engine::queries::AnyQuery;
use parlor_model::command::{EndMission, PromptIdle, SetIdlePrompt, SetMission};
use parlor_model::query::{GetIdlePrompt, ListMissions};
use parlor_model::{
    Agent, AgentHost, AgentId, GatewayId, IdlePrompt, Mission, MissionId, MissionScope, Room, RoomId,
    RoomRole, RoomSelection, Time, UserId, Visibility,
};
use std::sync::Arc;

table! { commands: AnyCommand;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyCommand::SetMission(_) => {
        "who   who   out   no    yes   yes   out   out   out   no    yes   who  ", WRITE,   set_mission(lobby().into()), READY;
        "who   who   out   no    no    no    out   out   out   no    no    who  ", WRITE,   set_mission(lobby().into()), MISSION_OF_ANOTHER_ROOM;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", WRITE,   set_mission(lobby().into()), NO_ROOM;
        "who   who   no    no    yes   yes   no    no    no    no    yes   who  ", PERSON,  set_mission(at_root("/srv/code", None)), LOBBY_AT_ROOT;
        "who   who   no    many  many  many  no    no    no    no    many  who  ", PERSON,  set_mission(at_root("/srv/code", None)), LOBBY_AND_OTHER_AT_ROOT;
        "who   who   none  none  none  none  none  none  none  no    none  who  ", PERSON,  set_mission(RoomSelection::EMPTY), READY;
    }
    AnyCommand::EndMission(_) => {
        "who   who   out   no    yes   yes   out   out   out   no    yes   who  ", WRITE,   end_mission(lobby().into()), READY;
        "who   who   out   no    no    no    out   out   out   no    no    who  ", WRITE,   end_mission(lobby().into()), MISSION_OF_ANOTHER_ROOM;
        "who   who   no    many  many  many  no    no    no    no    many  who  ", PERSON,  end_mission(at_root("/srv/code", None)), LOBBY_AND_OTHER_AT_ROOT;
    }
    AnyCommand::SetIdlePrompt(_) => {
        "who   who   out   no    yes   yes   out   out   out   no    yes   who  ", WRITE,   set_idle(lobby().into()), ANOTHERS_AGENT_IN_ROOM;
        "who   who   out   no    ?bot  ?bot  out   out   out   no    ?bot  who  ", WRITE,   set_idle(lobby().into()), AGENT_OWNERS_AGENT;
        "who   who   out   no    no    no    out   out   out   no    no    who  ", WRITE,   set_idle(lobby().into()), AGENT_IN_ROOM_WITH_ROOT;
        "who   who   out   no    no    no    out   out   out   no    yes   who  ", PERSON,  set_idle(lobby().into()), AGENT_IN_ROOM_WITH_ROOT;
        "who   who   out   no    yes   yes   out   out   out   no    yes   who  ", WRITE,   set_idle(lobby().into()), OWN_MISSION_AT_ROOT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  set_idle(RoomSelection::EMPTY), AGENT_OWNERS_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  set_idle(RoomSelection::EMPTY), AGENT_SHARED_WITH_ALL;
    }
    AnyCommand::PromptIdle(_) => {
        "no    no    no    no    no    no    no    no    no    no    no    yes  ", PERSON,  prompt_idle(), MISSION_WITH_HOSTED_AGENT;
        "no    no    no    no    no    no    no    no    no    no    no    ?bot ", PERSON,  prompt_idle(), MISSION_WITHOUT_AGENT;
        "no    no    no    no    no    no    no    no    no    no    no    ?goal", PERSON,  prompt_idle(), MISSION_OF_MEMBER;
        "no    no    no    no    no    no    no    no    no    no    no    ?goal", PERSON,  prompt_idle(), ENDED_MISSION;
        "no    no    no    no    no    no    no    no    no    no    no    ?goal", PERSON,  prompt_idle(), READY;
    }
}

table! { queries: AnyQuery;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyQuery::ListMissions(_) => {
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", READ,    missions(lobby().into()), READY;
        "who   who   no    yes   yes   yes   no    no    no    no    yes   who  ", READ,    missions(at_root("/srv/code", None)), LOBBY_AND_OTHER_AT_ROOT;
        "who   who   none  none  none  none  none  none  none  no    none  who  ", READ,    missions(RoomSelection::EMPTY), READY;
    }
    AnyQuery::GetIdlePrompt(_) => {
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", READ,    idle(lobby().into()), ANOTHERS_AGENT_IN_ROOM;
        "who   who   out   ?bot  ?bot  ?bot  out   out   out   no    ?bot  who  ", READ,    idle(lobby().into()), AGENT_OWNERS_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", READ,    idle(RoomSelection::EMPTY), AGENT_OWNERS_AGENT;
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", READ,    idle(RoomSelection::EMPTY), AGENT_SHARED_WITH_ALL;
    }
}

const MISSION_OF_ANOTHER_ROOM: Stored = |_| mission_at_root(UserId::stored("ann"));
const ANOTHERS_AGENT_IN_ROOM: Stored = |_| vec![put_agent(agent(other_user())), put_agent_in_room()];
/// An agent of the column `AgentOwner`, which is also the owner of the keys. It is in no room.
const AGENT_OWNERS_AGENT: Stored =
    |_| CallerKind::AgentOwner.user().map(|owner| put_agent(agent(owner))).into_iter().collect();
/// Another user's agent, shared with all users.
const AGENT_SHARED_WITH_ALL: Stored =
    |_| vec![put_agent(Agent { visibility: Visibility::All, ..agent(other_user()) })];
/// Another user's agent in a room with a project root, and a mission of another user for that root.
const AGENT_IN_ROOM_WITH_ROOT: Stored = |who| {
    let mut changes = ANOTHERS_AGENT_IN_ROOM(who);
    changes.extend(MISSION_OF_ANOTHER_ROOM(who));
    changes
};
const OWN_MISSION_AT_ROOT: Stored = |who| {
    let mut changes = ANOTHERS_AGENT_IN_ROOM(who);
    changes.extend(mission_at_root(who.user().unwrap_or_else(other_user)));
    changes
};

/// An active mission of an admin of the room, and a hosted agent in the room.
const MISSION_WITH_HOSTED_AGENT: Stored = |who| {
    let mut changes = MISSION_WITHOUT_AGENT(who);
    let host = AgentHost { gateway: Some(GatewayId::stored("laptop")), ..AgentHost::default() };
    changes.extend([put_agent(Agent { host, ..agent(other_user()) }), put_agent_in_room()]);
    changes
};
const MISSION_WITHOUT_AGENT: Stored = |_| {
    let creator = member(other_member(), RoomRole::Admin);
    vec![Change::Room(RoomChange::PutMember(Arc::new(creator))), put_mission(mission())]
};
/// A mission whose creator is not an admin of the room any more.
const MISSION_OF_MEMBER: Stored = |who| {
    let mut changes = MISSION_WITH_HOSTED_AGENT(who);
    changes.push(Change::Room(RoomChange::PutMember(Arc::new(member(other_member(), RoomRole::Member)))));
    changes
};
const ENDED_MISSION: Stored = |who| {
    let mut changes = MISSION_WITH_HOSTED_AGENT(who);
    changes.push(put_mission(Mission { ended_at: Some(Time(2)), ..mission() }));
    changes
};

/// Gives the room a project root, for which this user has set a mission in another room.
fn mission_at_root(created_by: UserId) -> Vec<Change> {
    let root: Box<str> = "/srv/code".into();
    let lobby = Room { project_root: Some(root.clone()), ..room() };
    let kitchen = Room { id: RoomId::stored("kitchen"), ..lobby.clone() };
    let mission_scope = MissionScope::Root(root);
    let mission = Mission { mission_scope, room: kitchen.id.clone(), created_by, ..mission() };
    vec![
        Change::Room(RoomChange::PutRoom(Arc::new(lobby))),
        Change::Room(RoomChange::PutRoom(Arc::new(kitchen))),
        put_mission(mission),
    ]
}

fn mission() -> Mission {
    Mission {
        id: MissionId::stored("mission"),
        mission_scope: MissionScope::Room(lobby()),
        room: lobby(),
        text: "Tea".into(),
        agents: Vec::new(),
        created_by: other_user(),
        created_at: Time(1),
        ended_at: None,
        prompts: 0,
    }
}

fn put_mission(mission: Mission) -> Change {
    Change::Mission(MissionChange::PutMission(Arc::new(mission)))
}

fn put_agent(agent: Agent) -> Change {
    Change::Agent(AgentChange::PutAgent(Arc::new(agent)))
}

fn put_agent_in_room() -> Change {
    Change::Room(RoomChange::PutMember(Arc::new(member(coder_member(), RoomRole::Member))))
}

fn set_mission(rooms: RoomSelection) -> SetMission {
    SetMission { rooms, text: "Tea".into(), agents: Vec::new() }
}

fn end_mission(rooms: RoomSelection) -> EndMission {
    EndMission { rooms }
}

fn set_idle(rooms: RoomSelection) -> SetIdlePrompt {
    SetIdlePrompt { agent: AgentId::stored("coder"), rooms, idle: Some(IdlePrompt::default()) }
}

fn prompt_idle() -> PromptIdle {
    PromptIdle { mission: MissionId::stored("mission"), agent: AgentId::stored("coder") }
}

fn missions(rooms: RoomSelection) -> ListMissions {
    ListMissions { rooms, limit: 1 }
}

fn idle(rooms: RoomSelection) -> GetIdlePrompt {
    GetIdlePrompt { agent: AgentId::stored("coder"), rooms }
}
