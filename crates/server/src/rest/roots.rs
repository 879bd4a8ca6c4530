//! Folders of the hub's machine that rooms are about, and which rooms a call means that names one.

use super::rooms::room_id;
use crate::App;
use crate::http::Authenticated;
use crate::http::body::Body;
use crate::http::parameters::Path;
use crate::http::problem::Problem;
use crate::http::response::{BareJson, Data, bare_json, data};
use axum::extract::State;
use parlor_model::{Answer, Caller, Command, Query, Receipt, Refusal, RoomId};
use parlor_wire::agentim::rest;
use parlor_wire::events::rest::ProjectRoots;
use std::sync::Arc;

pub async fn list(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
) -> Result<BareJson<ProjectRoots>, Problem> {
    Ok(bare_json(ProjectRoots { roots: allowed(&app, &caller).await? }))
}

async fn allowed(app: &App, caller: &Caller) -> Result<Vec<Box<str>>, Refusal> {
    match app.hub.read(caller, Query::ProjectRoots).await? {
        Answer::ProjectRoots(roots) => Ok(roots),
        _ => Err(Refusal::Unavailable),
    }
}

pub async fn set(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    Body(body): Body<rest::NewProjectRoot>,
) -> Result<Data<rest::Room<'static>>, Problem> {
    let room = room_id(&id)?;
    app.hub.may(&caller, Query::MayFollow { room: room.clone() }).await?;
    let (root, there) = match body.project_root {
        None => (None, true),
        Some(path) => {
            // First: what there is on the disk is for nobody else to find out.
            allowed(&app, &caller).await?;
            let found = found(path.clone()).await?;
            let there = found.is_some();
            (Some(found.unwrap_or(path)), there)
        }
    };
    let Receipt::Room(room) = app.hub.execute(&caller, Command::SetProjectRoot { room, root, there }).await?
    else {
        return Err(Refusal::Unavailable.into());
    };
    Ok(data(rest::Room::from(&*room)))
}

/// The folder itself, whatever links lead to it, if there is one.
async fn found(path: Box<str>) -> Result<Option<Box<str>>, Problem> {
    if !path.starts_with('/') {
        return Err(Problem::invalid("projectRoot", "must be the whole path of a folder"));
    }
    let real = move || std::fs::canonicalize(&*path).ok().filter(|path| path.is_dir());
    let real = tokio::task::spawn_blocking(real).await.ok().flatten();
    Ok(real.and_then(|path| path.to_str().map(Into::into)))
}

/// The rooms that a call is about; `None` where it names none. Of several only those that the caller is in.
pub async fn rooms_of_call(
    app: &App,
    caller: &Caller,
    session: Option<&str>,
    root: Option<&str>,
) -> Result<Option<Vec<RoomId>>, Problem> {
    let room = session.map(room_id).transpose()?;
    let Some(root) = root else { return Ok(room.map(|room| vec![room])) };
    let Answer::Rooms(rooms) = app.hub.read(caller, Query::RoomsAt { root: root.into(), room }).await? else {
        return Err(Refusal::Unavailable.into());
    };
    Ok(Some(rooms.into_iter().map(|(room, _)| room.id).collect()))
}

/// The same, for a call that must name one.
pub async fn required_rooms_of_call(
    app: &App,
    caller: &Caller,
    session: Option<&str>,
    root: Option<&str>,
) -> Result<Vec<RoomId>, Problem> {
    if let Some(rooms) = rooms_of_call(app, caller, session, root).await? {
        return Ok(rooms);
    }
    app.hub.may(caller, Query::Rooms).await?;
    Err(Problem::invalid("session_id", "or project_root must be given"))
}
