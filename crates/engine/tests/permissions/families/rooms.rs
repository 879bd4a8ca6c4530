//! Permissions of the family `rooms`, with the verdicts described in `families`.

use crate::callers::{CallerKind, coder_member, lobby, member, other_member, other_user, person, room, user};
use crate::fixtures::{agent, router};
use crate::requests::{ADMINS, PERSON, READ, WRITE, at_root};
use crate::stored::*;
use crate::table::table;
use RoomRole::{Admin as ADMIN, Member as MEMBER, Owner as OWNER};
use parlor_engine::changes::{AccountChange, AgentChange, Change, ModelChange, RoomChange};
use parlor_engine::commands::AnyCommand;
use parlor_engine::queries::AnyQuery;
use parlor_model::command::{
    AddMember, ChangeMember, ChangeRoom, ChangeRoomPreferences, CreateRoom, DeleteRoom, FreezeRoom,
    RemoveMember, RoomChanges, SetProjectRoot, ThawRoom,
};
use parlor_model::query::{
    GetRoom, GetWorkspaceRoot, ListMembers, ListProjectRoots, ListRooms, ListRoomsWithAgent, MayFollowRoom,
    MayReadRooms,
};
use parlor_model::{
    Agent, AgentId, Edit, Frozen, Member, MemberId, Room, RoomId, RoomPreferenceChange, RoomRole,
    RoomSelection, RouterId, SiteRole, Time, UserId, Visibility,
};
use std::sync::Arc;

table! { commands: AnyCommand;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyCommand::CreateRoom(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", WRITE,   create_routed_room(), OWN_ROUTER;
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", WRITE,   create_routed_room(), SHARED_ROUTER;
        "who   who   ?rout ?rout ?rout ?rout ?rout ?rout ?rout no    ?rout who  ", WRITE,   create_routed_room(), ANOTHERS_ROUTER;
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", WRITE,   create_room(other_member()), READY;
        "who   who   no    no    no    no    no    no    no    no    no    who  ", WRITE,   create_room(coder_member()), READY;
    }
    AnyCommand::ChangeRoom(_) => {
        "who   who   out   no    yes   yes   out   out   out   no    yes   who  ", WRITE,   route_room(), OWN_ROUTER;
        "who   who   out   no    yes   yes   out   out   out   no    yes   who  ", WRITE,   route_room(), SHARED_ROUTER;
        "who   who   out   no    ?rout ?rout out   out   out   no    ?rout who  ", WRITE,   route_room(), ANOTHERS_ROUTER;
        "who   who   out   no    ?rout ?rout out   out   out   no    ?rout who  ", WRITE,   route_room(), READY;
        "who   who   out   no    yes   yes   out   out   out   no    yes   who  ", WRITE,   change_room(), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", WRITE,   change_room(), NO_ROOM;
    }
    AnyCommand::SetProjectRoot(_) => {
        "who   who   no    no    no    no    out   no    no    no    yes   yes  ", ADMINS,  set_project_root("/srv/code", true), READY;
        "who   who   no    no    no    no    out   no    no    no    no    no   ", ADMINS,  set_project_root("/srv/other", true), READY;
        "who   who   no    no    no    no    out   no    no    no    no    no   ", ADMINS,  set_project_root("/srv/code", false), READY;
        "who   who   no    no    no    no    ?room no    no    no    ?room ?room", ADMINS,  set_project_root("/srv/code", true), NO_ROOM;
    }
    AnyCommand::DeleteRoom(_) => {
        "who   who   out   no    no    yes   out   out   out   no    yes   who  ", WRITE,   delete_room(), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", WRITE,   delete_room(), NO_ROOM;
    }
    AnyCommand::FreezeRoom(_) => {
        "who   who   out   yes   yes   yes   out   out   out   no    no    yes  ", PERSON,  freeze(), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    no    ?room", PERSON,  freeze(), NO_ROOM;
    }
    AnyCommand::ThawRoom(_) => {
        "who   who   out   no    yes   yes   out   out   out   no    no    yes  ", PERSON,  thaw(), READY;
        "who   who   out   yes   yes   yes   out   out   out   no    no    yes  ", PERSON,  thaw(), FROZEN_BY_MEMBER;
        "who   who   out   no    yes   yes   out   out   out   no    no    yes  ", PERSON,  thaw(), FROZEN_BY_OPERATOR;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    no    ?room", PERSON,  thaw(), NO_ROOM;
    }
    AnyCommand::AddMember(_) => {
        "who   who   out   no    yes   yes   out   out   out   no    yes   who  ", WRITE,   add(other_member(), MEMBER), READY;
        "who   who   out   no    no    yes   out   out   out   no    yes   who  ", WRITE,   add(other_member(), ADMIN), READY;
        "who   who   out   no    no    no    out   out   out   no    no    who  ", WRITE,   add(other_member(), OWNER), READY;
        "who   who   out   no    yes   yes   out   out   out   no    yes   who  ", WRITE,   add(coder_member(), MEMBER), OWN_AGENT;
        "who   who   out   no    no    no    out   out   out   no    no    who  ", WRITE,   add(coder_member(), OWNER), OWN_AGENT;
        "who   who   out   no    ?bot  ?bot  out   out   out   no    ?bot  who  ", WRITE,   add(coder_member(), MEMBER), ANOTHERS_AGENT;
        "who   who   out   no    yes   yes   out   out   out   no    yes   who  ", WRITE,   add(coder_member(), MEMBER), AGENT_SHARED_WITH_ALL;
        "who   who   out   no    yes   ?bot  out   out   out   no    ?bot  who  ", WRITE,   add(coder_member(), MEMBER), AGENT_SHARED_WITH_ADMIN;
        "who   who   out   no    ?bot  ?bot  out   out   out   no    ?bot  who  ", WRITE,   add(coder_member(), MEMBER), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", WRITE,   add(other_member(), MEMBER), NO_ROOM;
    }
    AnyCommand::ChangeMember(_) => {
        "who   who   out   no    no    yes   out   out   out   no    yes   who  ", WRITE,   change(other_member(), ADMIN), A_MEMBER;
        "who   who   out   no    no    yes   out   out   out   no    yes   who  ", WRITE,   change(other_member(), MEMBER), AN_ADMIN;
        "who   who   out   no    no    yes   out   out   out   no    yes   who  ", WRITE,   change(other_member(), OWNER), AN_ADMIN;
        "who   who   out   no    no    no    out   out   out   no    no    who  ", WRITE,   change(coder_member(), OWNER), ANOTHERS_AGENT_IN_ROOM;
        "who   who   out   no    no    keep  out   out   out   no    keep  who  ", WRITE,   change(other_member(), MEMBER), THE_OWNER;
        "who   who   out   no    no    ?mate out   out   out   no    ?mate who  ", WRITE,   change(other_member(), ADMIN), READY;
        "who   who   out   no    yes   yes   out   out   out   no    yes   who  ", WRITE,   describe(other_member()), A_MEMBER;
        "who   who   out   no    yes   yes   out   out   out   no    yes   who  ", WRITE,   describe(other_member()), THE_OWNER;
        "who   who   out   no    ?mate ?mate out   out   out   no    ?mate who  ", WRITE,   describe(other_member()), READY;
    }
    AnyCommand::RemoveMember(_) => {
        "who   who   out   no    yes   yes   out   out   out   no    yes   who  ", WRITE,   remove(other_member()), A_MEMBER;
        "who   who   out   no    no    yes   out   out   out   no    yes   who  ", WRITE,   remove(other_member()), AN_ADMIN;
        "who   who   out   keep  keep  keep  out   out   out   no    keep  who  ", WRITE,   remove(other_member()), THE_OWNER;
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", WRITE,   remove(person("member")), THE_MEMBER_COLUMN;
        "who   who   out   no    yes   yes   out   out   out   no    yes   who  ", WRITE,   remove(person("admin")), THE_ADMIN_COLUMN;
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", WRITE,   remove(coder_member()), OWN_AGENT_IN_ROOM;
        "who   who   out   no    yes   yes   out   out   out   no    yes   who  ", WRITE,   remove(coder_member()), ANOTHERS_AGENT_IN_ROOM;
        "who   who   out   ?mate ?mate ?mate out   out   out   no    ?mate who  ", WRITE,   remove(other_member()), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", WRITE,   remove(other_member()), NO_ROOM;
    }
    AnyCommand::ChangeRoomPreferences(_) => {
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", WRITE,   change_preferences(RoomPreferenceChange::Pin), READY;
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", WRITE,   change_preferences(RoomPreferenceChange::Clear), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", WRITE,   change_preferences(RoomPreferenceChange::Archive), NO_ROOM;
    }
}

table! { queries: AnyQuery;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyQuery::ListRooms(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", READ,    ListRooms, READY;
    }
    AnyQuery::ListProjectRoots(_) => {
        "who   who   no    no    no    no    yes   no    no    no    yes   yes  ", ADMINS,  ListProjectRoots, READY;
    }
    AnyQuery::MayReadRooms(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", READ,    may_read(RoomSelection::EMPTY), READY;
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", READ,    may_read(lobby().into()), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", READ,    may_read(lobby().into()), NO_ROOM;
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", READ,    may_read(at_root("/srv/code", None)), MEMBER_OF_DEN_AT_ROOT;
        "who   who   no    yes   yes   yes   no    no    no    no    yes   who  ", READ,    may_read(at_root("/srv/code", None)), LOBBY_AT_ROOT;
        "who   who   no    no    no    no    no    no    no    no    no    who  ", READ,    may_read(at_root("/srv/other", None)), MEMBER_OF_DEN_AT_DISALLOWED_ROOT;
        "who   who   no    no    no    no    no    no    no    no    no    who  ", READ,    may_read(at_root("/srv/code", None)), READY;
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", READ,    may_read(at_root("/srv/code", Some(lobby()))), LOBBY_AT_ROOT;
        "who   who   out   no    no    no    out   out   out   no    no    who  ", READ,    may_read(at_root("/srv/code", Some(lobby()))), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", READ,    may_read(at_root("/srv/code", Some(lobby()))), NO_ROOM;
    }
    AnyQuery::GetWorkspaceRoot(_) => {
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", READ,    workspace(lobby().into()), LOBBY_AT_ROOT;
        "who   who   out   no    no    no    out   out   out   no    no    who  ", READ,    workspace(lobby().into()), LOBBY_AT_DISALLOWED_ROOT;
        "who   who   out   ?dir  ?dir  ?dir  out   out   out   no    ?dir  who  ", READ,    workspace(lobby().into()), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", READ,    workspace(lobby().into()), NO_ROOM;
        "who   who   no    yes   yes   yes   no    no    no    no    yes   who  ", READ,    workspace(at_root("/srv/code", None)), LOBBY_AT_ROOT;
        "who   who   none  none  none  none  none  none  none  no    none  who  ", READ,    workspace(RoomSelection::EMPTY), LOBBY_AT_ROOT;
    }
    AnyQuery::GetRoom(_) => {
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", READ,    get_room(), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", READ,    get_room(), NO_ROOM;
    }
    AnyQuery::ListMembers(_) => {
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", READ,    members(), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", READ,    members(), NO_ROOM;
    }
    AnyQuery::MayFollowRoom(_) => {
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", READ,    may_follow(), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", READ,    may_follow(), NO_ROOM;
    }
    AnyQuery::ListRoomsWithAgent(_) => {
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", READ,    rooms_with(), AGENT_OWNERS_AGENT;
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", READ,    rooms_with(), ANOTHERS_AGENT_IN_DEN;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", READ,    rooms_with(), ANOTHERS_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", READ,    rooms_with(), READY;
    }
}

const OWN_ROUTER: Stored = |who| routed_by(who.user().unwrap_or_else(other_user), false);
const ANOTHERS_ROUTER: Stored = |_| routed_by(other_user(), false);
const SHARED_ROUTER: Stored = |_| routed_by(other_user(), true);

const FROZEN_BY_MEMBER: Stored = |_| frozen_by(CallerKind::Member.user());
const FROZEN_BY_OPERATOR: Stored = |_| frozen_by(None);

const A_MEMBER: Stored = |_| in_lobby("other_user", RoomRole::Member);
const AN_ADMIN: Stored = |_| in_lobby("other_user", RoomRole::Admin);
const THE_OWNER: Stored = |_| in_lobby("other_user", RoomRole::Owner);
const THE_MEMBER_COLUMN: Stored = |_| in_lobby("member", RoomRole::Member);
const THE_ADMIN_COLUMN: Stored = |_| in_lobby("admin", RoomRole::Admin);

const OWN_AGENT: Stored = |who| owned_by(who.user().unwrap_or_else(other_user));
const ANOTHERS_AGENT: Stored = |_| owned_by(other_user());
const AGENT_OWNERS_AGENT: Stored = |_| CallerKind::AgentOwner.user().map(owned_by).unwrap_or_default();
const OWN_AGENT_IN_ROOM: Stored = |who| with_coder_in_lobby(OWN_AGENT(who));
const ANOTHERS_AGENT_IN_ROOM: Stored = |who| with_coder_in_lobby(ANOTHERS_AGENT(who));
const AGENT_SHARED_WITH_ALL: Stored = |_| shared_with(Visibility::All);
/// Another user's agent, shared with the column `RoomAdmin`.
const AGENT_SHARED_WITH_ADMIN: Stored = |_| shared_with(Visibility::List(vec![UserId::stored("admin")]));
/// Another user's agent, in a room of the caller.
const ANOTHERS_AGENT_IN_DEN: Stored = |who| {
    let mut changes = ANOTHERS_AGENT(who);
    changes.extend(den(who, None));
    changes.push(put_member(Member { room: den_id(), ..member(coder_member(), RoomRole::Member) }));
    changes
};

const LOBBY_AT_DISALLOWED_ROOT: Stored =
    |_| vec![put_room(Room { project_root: Some("/srv/other".into()), ..room() })];
const MEMBER_OF_DEN_AT_ROOT: Stored = |who| den(who, Some("/srv/code"));
const MEMBER_OF_DEN_AT_DISALLOWED_ROOT: Stored = |who| den(who, Some("/srv/other"));

fn put_room(room: Room) -> Change {
    Change::Room(RoomChange::PutRoom(Arc::new(room)))
}

fn put_member(member: Member) -> Change {
    Change::Room(RoomChange::PutMember(Arc::new(member)))
}

fn routed_by(created_by: UserId, shared: bool) -> Vec<Change> {
    vec![Change::Model(ModelChange::PutRouter(Arc::new(router(created_by, shared))))]
}

fn frozen_by(by: Option<UserId>) -> Vec<Change> {
    vec![put_room(Room { frozen: Some(Frozen { by, at: Time(1) }), ..room() })]
}

/// A user with this role in the room.
fn in_lobby(id: &str, role: RoomRole) -> Vec<Change> {
    let account = user(&UserId::stored(id), SiteRole::User);
    vec![Change::Account(AccountChange::PutUser(Arc::new(account))), put_member(member(person(id), role))]
}

fn owned_by(owner: UserId) -> Vec<Change> {
    vec![Change::Agent(AgentChange::PutAgent(Arc::new(agent(owner))))]
}

fn shared_with(visibility: Visibility) -> Vec<Change> {
    vec![Change::Agent(AgentChange::PutAgent(Arc::new(Agent { visibility, ..agent(other_user()) })))]
}

fn with_coder_in_lobby(mut changes: Vec<Change>) -> Vec<Change> {
    changes.push(put_member(member(coder_member(), RoomRole::Member)));
    changes
}

fn den_id() -> RoomId {
    RoomId::stored("den")
}

/// Another room, of which every signed-in caller is a member.
fn den(who: CallerKind, root: Option<&str>) -> Vec<Change> {
    let mut changes = vec![put_room(Room { id: den_id(), project_root: root.map(Into::into), ..room() })];
    let own = who.user().map(|user| member(MemberId::User(user), RoomRole::Member));
    changes.extend(own.map(|own| put_member(Member { room: den_id(), ..own })));
    changes
}

fn create_room(member: MemberId) -> CreateRoom {
    CreateRoom { changes: RoomChanges::default(), members: vec![member] }
}

fn with_router() -> RoomChanges {
    RoomChanges { router: Edit::Set(RouterId::stored("router")), ..RoomChanges::default() }
}

fn create_routed_room() -> CreateRoom {
    CreateRoom { changes: with_router(), members: Vec::new() }
}

fn route_room() -> ChangeRoom {
    ChangeRoom { room: lobby(), changes: with_router() }
}

fn change_room() -> ChangeRoom {
    ChangeRoom { room: lobby(), changes: RoomChanges::default() }
}

fn set_project_root(root: &str, there: bool) -> SetProjectRoot {
    SetProjectRoot { room: lobby(), root: Some(root.into()), there }
}

fn delete_room() -> DeleteRoom {
    DeleteRoom { room: lobby() }
}

fn freeze() -> FreezeRoom {
    FreezeRoom { room: lobby() }
}

fn thaw() -> ThawRoom {
    ThawRoom { room: lobby() }
}

fn add(member: MemberId, role: RoomRole) -> AddMember {
    AddMember { room: lobby(), member, role, description: None }
}

fn change(member: MemberId, role: RoomRole) -> ChangeMember {
    ChangeMember { room: lobby(), member, role: Some(role), description: Edit::Keep }
}

fn describe(member: MemberId) -> ChangeMember {
    ChangeMember { room: lobby(), member, role: None, description: Edit::Set("takes notes".into()) }
}

fn remove(member: MemberId) -> RemoveMember {
    RemoveMember { room: lobby(), member }
}

fn change_preferences(how: RoomPreferenceChange) -> ChangeRoomPreferences {
    ChangeRoomPreferences { room: lobby(), how }
}

fn may_read(rooms: RoomSelection) -> MayReadRooms {
    MayReadRooms { rooms }
}

fn workspace(rooms: RoomSelection) -> GetWorkspaceRoot {
    GetWorkspaceRoot { rooms }
}

fn get_room() -> GetRoom {
    GetRoom { room: lobby() }
}

fn members() -> ListMembers {
    ListMembers { room: lobby(), limit: 10, offset: 0 }
}

fn may_follow() -> MayFollowRoom {
    MayFollowRoom { room: lobby() }
}

fn rooms_with() -> ListRoomsWithAgent {
    ListRoomsWithAgent { agent: AgentId::stored("coder") }
}
