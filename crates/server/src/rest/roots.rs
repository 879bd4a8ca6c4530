//! Project roots: folders on the hub's machine that rooms are associated with. Also resolves `session_id` and
//! `project_root` of a request to rooms.

use super::rooms::room_id;
use crate::App;
use crate::http::Authenticated;
use crate::http::body::Body;
use crate::http::parameters::Path;
use crate::http::problem::Problem;
use crate::http::response::{BareJson, Data, bare_json, data};
use axum::extract::State;
use parlor_model::command::SetProjectRoot;
use parlor_model::query::{ListProjectRoots, ListRooms, ListRoomsAtRoot, MayFollowRoom};
use parlor_model::{Caller, RoomId};
use parlor_wire::agentim::rest;
use parlor_wire::events::rest::ProjectRoots;
use std::sync::Arc;

pub async fn list(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
) -> Result<BareJson<ProjectRoots>, Problem> {
    Ok(bare_json(ProjectRoots { roots: app.hub.read(&caller, ListProjectRoots).await? }))
}

pub async fn set(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    Body(body): Body<rest::NewProjectRoot>,
) -> Result<Data<rest::Room<'static>>, Problem> {
    let room = room_id(&id)?;
    app.hub.may(&caller, MayFollowRoom { room: room.clone() }).await?;
    let (root, there) = match body.project_root {
        None => (None, true),
        Some(path) => {
            // Admins only, checked before touching the disk: others must not learn which folders exist.
            app.hub.may(&caller, ListProjectRoots).await?;
            let real = real_folder(path.clone()).await?;
            let there = real.is_some();
            (Some(real.unwrap_or(path)), there)
        }
    };
    let room = app.hub.execute(&caller, SetProjectRoot { room, root, there }).await?;
    Ok(data(rest::Room::from(&*room)))
}

/// Canonical path of a folder with symbolic links resolved; `None` if it does not exist.
async fn real_folder(path: Box<str>) -> Result<Option<Box<str>>, Problem> {
    if !path.starts_with('/') {
        return Err(Problem::invalid("projectRoot", "must be the absolute path of a folder"));
    }
    let real = move || std::fs::canonicalize(&*path).ok().filter(|path| path.is_dir());
    let real = tokio::task::spawn_blocking(real).await.ok().flatten();
    Ok(real.and_then(|path| path.to_str().map(Into::into)))
}

/// Rooms that a request selects with `session_id` or `project_root`, limited to the caller's rooms if a
/// project root is given; `None` if it gives neither.
pub async fn rooms_of_call(
    app: &App,
    caller: &Caller,
    session: Option<&str>,
    root: Option<&str>,
) -> Result<Option<Vec<RoomId>>, Problem> {
    let room = session.map(room_id).transpose()?;
    let Some(root) = root else { return Ok(room.map(|room| vec![room])) };
    let rooms = app.hub.read(caller, ListRoomsAtRoot { root: root.into(), room }).await?;
    Ok(Some(rooms.into_iter().map(|(room, _)| room.id).collect()))
}

/// Like [`rooms_of_call`], but rejects a request that gives neither `session_id` nor `project_root`.
pub async fn required_rooms_of_call(
    app: &App,
    caller: &Caller,
    session: Option<&str>,
    root: Option<&str>,
) -> Result<Vec<RoomId>, Problem> {
    if let Some(rooms) = rooms_of_call(app, caller, session, root).await? {
        return Ok(rooms);
    }
    app.hub.may(caller, ListRooms).await?;
    Err(Problem::invalid("session_id", "is required unless project_root is given"))
}
