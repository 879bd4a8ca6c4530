//! The files of the folder that a room is about.

use super::roots::required_rooms_of_call;
use crate::App;
use crate::http::Authenticated;
use crate::http::parameters::Parameters;
use crate::http::problem::Problem;
use crate::http::response::{BareJson, bare_json};
use crate::workspace::{self, Missing};
use axum::extract::State;
use parlor_model::{Answer, EntityKind, Query, Refusal};
use parlor_wire::events::tree::{Tree, worked_on};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use utoipa::IntoParams;

/// `?session_id=&project_root=&path=&depth=`
#[derive(Deserialize, IntoParams)]
pub struct TreeQuery {
    session_id: Option<String>,
    project_root: Option<String>,
    /// A folder below it.
    path: Option<String>,
    /// 6 where it is left out, 20 at most.
    depth: Option<usize>,
}

pub async fn tree(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(wanted): Parameters<TreeQuery>,
) -> Result<BareJson<Tree>, Problem> {
    let (session, root) = (wanted.session_id.as_deref(), wanted.project_root.as_deref());
    let room = required_rooms_of_call(&app, &caller, session, root).await?.swap_remove(0);
    let Answer::ProjectRoots(roots) = app.hub.read(&caller, Query::Workspace { room: room.clone() }).await?
    else {
        return Err(Refusal::Unavailable.into());
    };
    let root = roots.into_iter().next().ok_or(Refusal::NotFound(EntityKind::ProjectRoot))?;
    let below = wanted.path.unwrap_or_default();
    let depth = wanted.depth.unwrap_or(workspace::DEPTH).clamp(1, workspace::MOST_DEPTH);
    let one_of_few = app.workspace_scans.clone().acquire_owned().await.map_err(|_| Refusal::Unavailable)?;
    let place = root.clone();
    let looked = tokio::task::spawn_blocking(move || {
        // To the end of the look: whoever asked may have gone.
        let _one_of_few = one_of_few;
        workspace::scan(&place, &below, depth)
    });
    let looked = looked.await;
    let looked = looked.map_err(|_| Refusal::Unavailable)?;
    let mut tree = looked.map_err(|Missing| Refusal::NotFound(EntityKind::ProjectRoot))?;
    let from = if tree.path == *root { String::new() } else { tree.path.clone() };
    for (agent, call) in app.hub.tools_in_use(&room) {
        let Some(path) = worked_on(&call, &root) else { continue };
        let Ok(path) = Path::new(&path).strip_prefix(&from) else { continue };
        let steps: Vec<&str> = path.iter().filter_map(|step| step.to_str()).collect();
        tree.mark(&steps, &agent);
    }
    let name = Path::new(if from.is_empty() { &*root } else { &*from }).file_name();
    let name = name.map_or_else(|| "/".into(), |name| name.to_string_lossy().into_owned());
    Ok(bare_json(Tree(BTreeMap::from([(name, tree)]))))
}
