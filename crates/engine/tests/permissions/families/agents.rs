//! Permissions of the family `agents`, with the verdicts described in `families`.

use super::gateways::{AGENT_OWNERS_GATEWAY, OWN_GATEWAY};
use crate::callers::{CallerKind, member, other_user};
use crate::requests::{AGENTS, HOSTING, PERSON, READ};
use crate::stored::*;
use crate::table::table;
use parlor_engine::changes::{AgentChange, Change, RoomChange};
use parlor_engine::commands::AnyCommand;
use parlor_engine::queries::AnyQuery;
use parlor_model::command::{
    AgentProfile, AgentRegistration, ChangeAgent, ChangeSession, ConfigureAgent, CreateAgent, HostAgent,
    MoveAgent, RegisterAgent, RemoveAgent, SessionChanges, SessionConfig,
};
use parlor_model::query::{GetAgent, GetAgentCard, ListAgentCards, ListAgents, ListSharedAgentCards};
use parlor_model::{
    Agent, AgentHost, AgentId, Edit, GatewayId, MemberId, Pattern, RoomId, RoomRole, SessionId, Time, UserId,
    Visibility,
};
use std::sync::Arc;

table! { commands: AnyCommand;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyCommand::CreateAgent(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", AGENTS,  create_agent(&[]), READY;
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", AGENTS,  create_agent(&[]), OWN_AGENTS_AROUND;
        "who   who   no    no    no    no    no    yes   no    no    yes   who  ", AGENTS,  create_agent(&[]), AGENT_OWNERS_AGENTS_AROUND;
        "who   who   no    no    no    no    no    no    no    no    no    who  ", AGENTS,  create_agent(&[]), ANOTHERS_AGENT_BELOW_OWN;
        "who   who   no    no    no    no    no    no    no    no    no    who  ", AGENTS,  create_agent(&[]), OWN_AGENT_BELOW_ANOTHERS;
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", AGENTS,  create_agent(&["slack/**", "room/*", "**"]), READY;
        "who   who   out   out   out   out   out   out   out   no    out   who  ", AGENTS,  create_agent(&["slack/**", "room/lobby"]), READY;
    }
    AnyCommand::ChangeAgent(_) => {
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  change_agent(), AGENT_OWNERS_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  change_agent(), READY;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  change_agent(), OWN_AGENT_OF_ANOTHER_NAME;
    }
    AnyCommand::ChangeSession(_) => {
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  change_session(None), AGENT_OWNERS_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  change_session(Some("lobby")), AGENT_OWNERS_AGENT_IN_ROOM;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  out   ?bot  no    out   who  ", AGENTS,  change_session(Some("lobby")), AGENT_OWNERS_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  change_session(None), READY;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  change_session(None), OWN_AGENT_OF_ANOTHER_NAME;
    }
    AnyCommand::RemoveAgent(_) => {
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  remove_agent(), AGENT_OWNERS_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   yes  ", AGENTS,  remove_agent(), HUBS_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  remove_agent(), READY;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  remove_agent(), OWN_AGENT_OF_ANOTHER_NAME;
    }
    AnyCommand::HostAgent(_) => {
        "no    no    no    no    no    no    no    no    no    no    no    yes  ", PERSON,  host_agent(), READY;
        "no    no    no    no    no    no    no    no    no    no    no    ?user", PERSON,  host_agent(), NO_OTHER_USER;
        "no    no    no    no    no    no    no    no    no    no    no    no   ", PERSON,  host_agent(), AGENT_OWNERS_AGENTS_AROUND;
    }
    AnyCommand::ConfigureAgent(_) => {
        "no    no    no    no    no    no    no    no    no    no    no    yes  ", PERSON,  configure_agent(None, true), READY;
        "no    no    no    no    no    no    no    no    no    no    no    ?user", PERSON,  configure_agent(None, true), NO_OTHER_USER;
        "no    no    no    no    no    no    no    no    no    no    no    no   ", PERSON,  configure_agent(None, true), AGENT_OWNERS_AGENTS_AROUND;
        "no    no    no    no    no    no    no    no    no    no    no    !bot ", PERSON,  configure_agent(None, true), AGENT_OWNERS_AGENT;
        "no    no    no    no    no    no    no    no    no    no    no    out  ", PERSON,  configure_agent(Some("lobby"), true), READY;
        "no    no    no    no    no    no    no    no    no    no    no    ?bot ", PERSON,  configure_agent(None, false), READY;
    }
    AnyCommand::MoveAgent(_) => {
        "no    no    no    no    no    no    no    no    no    no    no    ?bot ", PERSON,  move_agent(), READY;
        "no    no    no    no    no    no    no    no    no    no    no    ?bot ", PERSON,  move_agent(), AGENT_OWNERS_AGENT;
        "no    no    no    no    no    no    no    no    no    no    no    ?bot ", PERSON,  move_agent(), HUBS_AGENT;
    }
    AnyCommand::RegisterAgent(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", HOSTING, register_agent(), OWN_GATEWAY;
        "who   who   !bot  !bot  !bot  !bot  !bot  yes   !bot  no    yes   who  ", HOSTING, register_agent(), OWN_GATEWAY_AGENT_OWNERS_AGENT;
        "who   who   !bot  !bot  !bot  !bot  !bot  !bot  !bot  no    !bot  who  ", HOSTING, register_agent(), OWN_GATEWAY_HUBS_AGENT;
        "who   who   no    no    no    no    no    yes   no    no    yes   who  ", HOSTING, register_agent(), OWN_GATEWAY_AGENT_OWNERS_AGENTS_AROUND;
        "who   who   ?gate ?gate ?gate ?gate ?gate yes   ?gate no    yes   who  ", HOSTING, register_agent(), AGENT_OWNERS_GATEWAY_OWN_AGENT;
        "who   who   ?gate ?gate ?gate ?gate ?gate ?gate ?gate no    ?gate who  ", HOSTING, register_agent(), READY;
    }
}

table! { queries: AnyQuery;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyQuery::ListAgents(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", READ,    ListAgents, READY;
    }
    AnyQuery::ListAgentCards(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", READ,    ListAgentCards, READY;
    }
    AnyQuery::ListSharedAgentCards(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", READ,    list_shared_agent_cards(), READY;
    }
    AnyQuery::GetAgentCard(_) => {
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", READ,    get_agent_card(), AGENT_OWNERS_AGENT;
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", READ,    get_agent_card(), AGENT_SHARED_WITH_ALL;
        "who   who   ?bot  yes   yes   yes   ?bot  ?bot  ?bot  no    yes   who  ", READ,    get_agent_card(), ANOTHERS_AGENT_IN_ROOM;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", READ,    get_agent_card(), ANOTHERS_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", READ,    get_agent_card(), READY;
    }
    AnyQuery::GetAgent(_) => {
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  get_agent(), AGENT_OWNERS_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  get_agent(), READY;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  get_agent(), OWN_AGENT_OF_ANOTHER_NAME;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  get_agent(), ANOTHERS_AGENT;
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", AGENTS,  get_agent(), AGENT_SHARED_WITH_ALL;
        "who   who   ?bot  yes   yes   yes   ?bot  ?bot  ?bot  no    yes   who  ", AGENTS,  get_agent(), ANOTHERS_AGENT_IN_ROOM;
    }
}

/// The agent that the commands name. Other agents are above and below it.
const CODER: &str = "team/coder";

pub(super) fn coder() -> AgentId {
    AgentId::stored(CODER)
}

fn create_agent(subscriptions: &[&str]) -> CreateAgent {
    let subscriptions = subscriptions.iter().map(|text| Pattern::parse(text).unwrap()).collect();
    CreateAgent { id: coder(), profile: AgentProfile::default(), subscriptions }
}

fn change_agent() -> ChangeAgent {
    ChangeAgent { id: coder(), profile: AgentProfile::default() }
}

fn change_session(room: Option<&str>) -> ChangeSession {
    let room = room.map_or(Edit::Keep, |room| Edit::Set(RoomId::stored(room)));
    let changes = SessionChanges { room, ..SessionChanges::default() };
    ChangeSession { agent: coder(), session: SessionId::stored("side"), changes }
}

fn remove_agent() -> RemoveAgent {
    RemoveAgent { id: coder() }
}

fn register_agent() -> RegisterAgent {
    RegisterAgent { registration: registration("laptop") }
}

fn host_agent() -> HostAgent {
    HostAgent { owner: other_user(), registration: registration("hub") }
}

fn configure_agent(room: Option<&str>, creates: bool) -> ConfigureAgent {
    let session = SessionConfig {
        id: SessionId::stored("side"),
        title: None,
        is_default: false,
        auto_run: None,
        room: room.map(RoomId::stored),
        subscriptions: Vec::new(),
        settings: Vec::new(),
        created_at: None,
        last_used_at: None,
    };
    ConfigureAgent {
        owner: other_user(),
        creates,
        registration: registration("hub"),
        description: "".into(),
        settings: Vec::new(),
        subscriptions: Vec::new(),
        sessions: vec![session],
    }
}

fn move_agent() -> MoveAgent {
    MoveAgent { from: coder(), to: AgentId::stored("team/writer") }
}

fn registration(gateway: &str) -> AgentRegistration {
    AgentRegistration {
        gateway: GatewayId::stored(gateway),
        id: coder(),
        name: "Coder".into(),
        kind: "codex".into(),
        working_directory: None,
        capabilities: Vec::new(),
        model: None,
        slash_commands: None,
        mcp_servers: None,
        has_lasting_id: true,
    }
}

fn get_agent() -> GetAgent {
    GetAgent { id: coder() }
}

fn get_agent_card() -> GetAgentCard {
    GetAgentCard { id: coder() }
}

fn list_shared_agent_cards() -> ListSharedAgentCards {
    ListSharedAgentCards { limit: 10, offset: 0 }
}

const OWN_AGENT: Stored = |who| put_agents(who.user(), &[CODER]);
const ANOTHERS_AGENT: Stored = |_| put_agents(Some(other_user()), &[CODER]);
/// An agent of the column `AgentOwner`, which is also the owner of the keys.
pub(super) const AGENT_OWNERS_AGENT: Stored = |_| OWN_AGENT(CallerKind::AgentOwner);
const OWN_AGENT_OF_ANOTHER_NAME: Stored = |who| put_agents(who.user(), &["team/other"]);
const HUBS_AGENT: Stored = |_| hubs_agent(CallerKind::AgentOwner);
/// Another user's agent, shared with all users.
pub(super) const AGENT_SHARED_WITH_ALL: Stored =
    |_| vec![put(Agent { visibility: Visibility::All, ..agent(CODER, other_user()) })];
const ANOTHERS_AGENT_IN_ROOM: Stored = |who| with_membership(ANOTHERS_AGENT(who));
const AGENT_OWNERS_AGENT_IN_ROOM: Stored = |who| with_membership(AGENT_OWNERS_AGENT(who));

/// Adds the membership of the agent in the lobby.
fn with_membership(mut changes: Vec<Change>) -> Vec<Change> {
    let member = member(MemberId::Agent(coder()), RoomRole::Member);
    changes.push(Change::Room(RoomChange::PutMember(Arc::new(member))));
    changes
}

/// Agents above and below the requested id.
const OWN_AGENTS_AROUND: Stored = |who| put_agents(who.user(), &["team", "team/coder/below"]);
const AGENT_OWNERS_AGENTS_AROUND: Stored = |_| OWN_AGENTS_AROUND(CallerKind::AgentOwner);
const ANOTHERS_AGENT_BELOW_OWN: Stored = |who| {
    let own = put_agents(who.user(), &["team"]);
    [own, put_agents(Some(other_user()), &["team/coder/below"])].concat()
};
const OWN_AGENT_BELOW_ANOTHERS: Stored = |who| {
    let own = put_agents(who.user(), &["team/coder/below"]);
    [own, put_agents(Some(other_user()), &["team"])].concat()
};

const OWN_GATEWAY_AGENT_OWNERS_AGENT: Stored = |who| [OWN_GATEWAY(who), AGENT_OWNERS_AGENT(who)].concat();
const OWN_GATEWAY_HUBS_AGENT: Stored = |who| [OWN_GATEWAY(who), hubs_agent(who)].concat();
const OWN_GATEWAY_AGENT_OWNERS_AGENTS_AROUND: Stored =
    |who| [OWN_GATEWAY(who), AGENT_OWNERS_AGENTS_AROUND(who)].concat();
const AGENT_OWNERS_GATEWAY_OWN_AGENT: Stored = |who| [AGENT_OWNERS_GATEWAY(who), OWN_AGENT(who)].concat();

fn put_agents(owner: Option<UserId>, ids: &[&str]) -> Vec<Change> {
    let agents = |owner: UserId| ids.iter().map(move |id| put(agent(id, owner.clone())));
    owner.map(agents).into_iter().flatten().collect()
}

/// An agent of this caller that the hub itself hosts.
fn hubs_agent(owner: CallerKind) -> Vec<Change> {
    let host = AgentHost { gateway: Some(GatewayId::stored("hub")), ..AgentHost::default() };
    let hosted = owner.user().map(|owner| Agent { host, ..agent(CODER, owner) });
    hosted.map(put).into_iter().collect()
}

fn put(agent: Agent) -> Change {
    Change::Agent(AgentChange::PutAgent(Arc::new(agent)))
}

fn agent(id: &str, owner: UserId) -> Agent {
    Agent {
        id: AgentId::stored(id),
        owner,
        name: "Coder".into(),
        description: "".into(),
        settings: Default::default(),
        host: AgentHost::default(),
        visibility: Default::default(),
        created_at: Time(1),
    }
}
