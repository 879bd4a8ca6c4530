//! Rooms and their members.

use super::Pages;
use crate::App;
use crate::http::Authenticated;
use crate::http::body::Body;
use crate::http::parameters::{Parameters, Path};
use crate::http::problem::Problem;
use crate::http::response::{BareJson, Created, Data, Done, List, bare_json, created, data, list as all};
use axum::extract::State;
use parlor_engine::commands::Command;
use parlor_model::command::{
    AddMember, ChangeMember, ChangeRoom, CreateRoom, DeleteRoom, FreezeRoom, RemoveMember, RoomChanges,
    ThawRoom,
};
use parlor_model::query::{GetRoom, ListMembers, ListRooms, MemberPage, RoomWithMembers};
use parlor_model::{
    AgentId, AnswerPolicy, Caller, Edit, EntityKind, MemberId, Refusal, RoomId, RoomKind, RoomRole, RouterId,
    UserId,
};
use parlor_wire::agentim::rest;
use std::sync::Arc;

pub fn room_id(id: &str) -> Result<RoomId, Problem> {
    RoomId::parse(id).map_err(|_| Problem::not_an_id())
}

pub async fn list(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
) -> Result<List<rest::RoomOfMember<'static>>, Problem> {
    let rooms = app.hub.read(&caller, ListRooms).await?;
    Ok(all(rooms.iter().map(|(room, member)| rest::RoomOfMember::new(room, member))))
}

pub async fn create(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Body(body): Body<rest::RoomBody>,
) -> Result<Created<rest::Room<'static>>, Problem> {
    let ids = body.member_ids.as_deref().unwrap_or_default();
    let members = ids.iter().map(|id| UserId::parse(id).map(MemberId::User)).collect::<Result<_, _>>();
    let members = members.map_err(|_| Problem::invalid("memberIds", "must be user ids"))?;
    let room = app.hub.execute(&caller, CreateRoom { changes: changes(body)?, members }).await?;
    Ok(created(rest::Room::from(&*room)))
}

pub async fn show(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Data<rest::RoomWithMembers<'static>>, Problem> {
    let RoomWithMembers { room, members: MemberPage { members, total } } =
        app.hub.read(&caller, GetRoom { room: room_id(&id)? }).await?;
    let members = members.iter().map(rest::Member::from).collect();
    Ok(data(rest::RoomWithMembers { room: (&*room).into(), members, total_members: total }))
}

pub async fn change(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    Body(body): Body<rest::RoomBody>,
) -> Result<Data<rest::Room<'static>>, Problem> {
    let command = ChangeRoom { room: room_id(&id)?, changes: changes(body)? };
    let room = app.hub.execute(&caller, command).await?;
    Ok(data(rest::Room::from(&*room)))
}

pub async fn remove(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Done, Problem> {
    app.hub.execute(&caller, DeleteRoom { room: room_id(&id)? }).await?;
    Ok(Done)
}

pub async fn freeze(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Data<rest::Room<'static>>, Problem> {
    let room = app.hub.execute(&caller, FreezeRoom { room: room_id(&id)? }).await?;
    Ok(data(rest::Room::from(&*room)))
}

pub async fn thaw(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Data<rest::Room<'static>>, Problem> {
    let room = app.hub.execute(&caller, ThawRoom { room: room_id(&id)? }).await?;
    Ok(data(rest::Room::from(&*room)))
}

pub async fn members(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    Parameters(pages): Parameters<Pages>,
) -> Result<BareJson<rest::Members<'static>>, Problem> {
    let (limit, offset) = (pages.limit(), pages.offset());
    let query = ListMembers { room: room_id(&id)?, limit, offset };
    let MemberPage { members, total } = app.hub.read(&caller, query).await?;
    let data = members.iter().map(rest::Member::from).collect();
    let pagination = rest::Pagination { limit, offset, total };
    Ok(bare_json(rest::Members { ok: rest::True, data, pagination }))
}

pub async fn add_member(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    Body(body): Body<rest::NewMember>,
) -> Result<Created<rest::Member<'static>>, Problem> {
    let not_an_id = || Problem::invalid("memberId", "is not an id");
    let member = match body.member_type.as_deref() {
        None | Some("user") => MemberId::User(UserId::parse(&body.member_id).map_err(|_| not_an_id())?),
        Some("agent") => MemberId::Agent(AgentId::parse(&body.member_id).map_err(|_| not_an_id())?),
        Some(_) => return Err(Problem::invalid("memberType", "must be user or agent")),
    };
    let role = room_role(body.role.as_deref())?.unwrap_or(RoomRole::Member);
    let description = body.role_description;
    let command = AddMember { room: room_id(&id)?, member, role, description };
    let member = app.hub.execute(&caller, command).await?;
    Ok(created(rest::Member::from(&*member)))
}

pub async fn change_member(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path((id, member)): Path<(String, String)>,
    Body(body): Body<rest::MemberChanges>,
) -> Result<Data<rest::Member<'static>>, Problem> {
    let room = room_id(&id)?;
    let role = room_role(body.role.as_deref())?;
    let command = |member| ChangeMember {
        room: room.clone(),
        member,
        role,
        description: body.role_description.clone().into(),
    };
    let member = execute_for_member(&app, &caller, &member, command).await?;
    Ok(data(rest::Member::from(&*member)))
}

pub async fn remove_member(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path((id, member)): Path<(String, String)>,
) -> Result<Done, Problem> {
    let room = room_id(&id)?;
    execute_for_member(&app, &caller, &member, |member| RemoveMember { room: room.clone(), member }).await?;
    Ok(Done)
}

/// Runs `command` for a member id from the path, which may be a user or an agent: tries the user first, then
/// the agent.
async fn execute_for_member<C: Command>(
    app: &App,
    caller: &Caller,
    id: &str,
    command: impl Fn(MemberId) -> C,
) -> Result<C::Receipt, Problem> {
    if let Ok(user) = UserId::parse(id) {
        match app.hub.execute(caller, command(MemberId::User(user))).await {
            Err(Refusal::NotFound(EntityKind::Member)) => {}
            outcome => return Ok(outcome?),
        }
    }
    let agent = AgentId::parse(id).map_err(|_| Problem::not_an_id())?;
    Ok(app.hub.execute(caller, command(MemberId::Agent(agent))).await?)
}

fn changes(body: rest::RoomBody) -> Result<RoomChanges, Problem> {
    let kind = match body.kind.as_deref() {
        None => None,
        Some(kind) => {
            Some(RoomKind::parse(kind).ok_or(Problem::invalid("type", "must be group or private"))?)
        }
    };
    let policy = match (body.policy.as_deref(), body.broadcast_mode) {
        (Some(word), _) => {
            let policy = AnswerPolicy::parse(word);
            Some(policy.ok_or(Problem::invalid("policy", "must be mention, triage or all"))?)
        }
        (None, Some(true)) => Some(AnswerPolicy::Triage),
        (None, Some(false)) => Some(AnswerPolicy::Mention),
        (None, None) => None,
    };
    let router = match body.router_id {
        None => None,
        Some(None) => Some(None),
        Some(Some(id)) => {
            let id = RouterId::parse(&id).map_err(|_| Problem::invalid("routerId", "is not an id"))?;
            Some(Some(id))
        }
    };
    Ok(RoomChanges {
        name: body.name,
        kind,
        policy,
        system_prompt: body.system_prompt.into(),
        description: Edit::Keep,
        agent_command_role: room_role(body.agent_command_role.as_deref())?,
        approve_role: room_role(body.approve_role.as_deref())?,
        router: router.into(),
    })
}

fn room_role(role: Option<&str>) -> Result<Option<RoomRole>, Problem> {
    match role {
        None => Ok(None),
        Some(role) => {
            RoomRole::parse(role).map(Some).ok_or(Problem::invalid("role", "must be owner, admin or member"))
        }
    }
}
