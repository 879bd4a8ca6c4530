//! Projects: the rooms of the caller, and the users in them.

use super::{invalid, project_id};
use crate::App;
use crate::http::Authenticated;
use crate::http::body::Body;
use crate::http::parameters::Path;
use crate::http::problem::{JaibberProblem, Problem};
use crate::http::response::{BareCreated, BareJson, Done, bare_created, bare_json};
use axum::extract::State;
use parlor_model::command::{AddMember, ChangeRoom, CreateRoom, DeleteRoom, RemoveMember, RoomChanges};
use parlor_model::query::{FindUser, GetRoom, ListMembers, ListRooms, MemberPage, RoomWithMembers};
use parlor_model::{Caller, Edit, MemberId, RoomId, RoomRole, UserId};
use parlor_wire::ably::jaibber::rest;
use std::sync::Arc;

type Project = Result<BareJson<rest::ProjectAnswer<'static>>, JaibberProblem>;

pub async fn list(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
) -> Result<BareJson<rest::ProjectList<'static>>, JaibberProblem> {
    let rooms = app.hub.read(&caller, ListRooms).await?;
    let projects = rooms.iter().map(|(room, member)| rest::Project::of(room, member.role, None));
    Ok(bare_json(rest::ProjectList { projects: projects.collect() }))
}

pub async fn create(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Body(body): Body<rest::NewProject>,
) -> Result<BareCreated<rest::ProjectAnswer<'static>>, JaibberProblem> {
    let description = described(body.description);
    let changes = RoomChanges { name: Some(body.name), description, ..RoomChanges::default() };
    let room = app.hub.execute(&caller, CreateRoom { changes, members: Vec::new() }).await?;
    let project = rest::Project::of(&room, RoomRole::Owner, Some(1));
    Ok(bare_created(rest::ProjectAnswer { project }))
}

pub async fn show(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Project {
    project(&app, &caller, project_id(&id)?).await
}

pub async fn change(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    Body(body): Body<rest::ProjectChanges>,
) -> Project {
    let room = project_id(&id)?;
    let description = described(body.description);
    let changes = RoomChanges { name: body.name, description, ..RoomChanges::default() };
    app.hub.execute(&caller, ChangeRoom { room: room.clone(), changes }).await?;
    project(&app, &caller, room).await
}

/// The change of a description; an empty text removes it.
fn described(description: Option<Box<str>>) -> Edit<Box<str>> {
    match description {
        None => Edit::Keep,
        Some(text) if text.trim().is_empty() => Edit::Clear,
        Some(text) => Edit::Set(text),
    }
}

async fn project(app: &App, caller: &Caller, room: RoomId) -> Project {
    let RoomWithMembers { room, members } = app.hub.read(caller, GetRoom { room }).await?;
    let rooms = app.hub.read(caller, ListRooms).await?;
    let role = rooms.iter().find(|(own, _)| own.id == room.id).map(|(_, member)| member.role);
    let project = rest::Project::of(&room, role.unwrap_or(RoomRole::Member), Some(members.total));
    Ok(bare_json(rest::ProjectAnswer { project }))
}

pub async fn remove(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Done, JaibberProblem> {
    app.hub.execute(&caller, DeleteRoom { room: project_id(&id)? }).await?;
    Ok(Done)
}

pub async fn members(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<BareJson<rest::MemberList<'static>>, JaibberProblem> {
    let query = ListMembers { room: project_id(&id)?, limit: ListMembers::MAX_NAMES, offset: 0 };
    let MemberPage { members, .. } = app.hub.read(&caller, query).await?;
    Ok(bare_json(rest::MemberList { members: members.iter().filter_map(rest::Member::of).collect() }))
}

pub async fn add_member(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    Body(body): Body<rest::NewMember>,
) -> Result<BareCreated<rest::MemberAnswer<'static>>, JaibberProblem> {
    let room = project_id(&id)?;
    let role = match body.role.as_deref() {
        None => RoomRole::Member,
        Some(role) => rest::parse_role(role).ok_or_else(|| invalid("role", "must be admin or member"))?,
    };
    let user = app.hub.read(&caller, FindUser { username: body.username }).await?;
    let member = MemberId::User(user.id);
    let member = app.hub.execute(&caller, AddMember { room, member, role, description: None }).await?;
    let member = rest::Member::of(&member).ok_or(Problem::not_an_id())?;
    Ok(bare_created(rest::MemberAnswer { member }))
}

pub async fn remove_member(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path((id, member)): Path<(String, String)>,
) -> Result<Done, JaibberProblem> {
    let room = project_id(&id)?;
    let member = UserId::parse(&member).map_err(|_| Problem::not_an_id())?;
    app.hub.execute(&caller, RemoveMember { room, member: MemberId::User(member) }).await?;
    Ok(Done)
}
