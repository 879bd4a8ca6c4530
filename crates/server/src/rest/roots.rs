//! Project roots: folders on the hub's machine that rooms are associated with. Also parses
//! `session_id` and `project_root` of a request.

use super::rooms::room_id;
use crate::App;
use crate::http::Authenticated;
use crate::http::body::Body;
use crate::http::parameters::Path;
use crate::http::problem::Problem;
use crate::http::response::{BareJson, Data, bare_json, data};
use axum::extract::State;
use parlor_model::RoomSelection;
use parlor_model::command::SetProjectRoot;
use parlor_model::query::{ListProjectRoots, MayFollowRoom};
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

/// The rooms that a request selects with `session_id` and `project_root`.
pub fn room_selection(session: Option<&str>, root: Option<&str>) -> Result<RoomSelection, Problem> {
    Ok(RoomSelection { room: session.map(room_id).transpose()?, root: root.map(Into::into) })
}
