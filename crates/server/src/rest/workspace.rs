//! File tree of a room's project root, with the agents that currently use a tool on a file.

use super::roots::room_selection;
use crate::App;
use crate::http::Authenticated;
use crate::http::parameters::Parameters;
use crate::http::problem::ChatEventsProblem;
use crate::http::response::{BareJson, bare_json};
use crate::workspace::{self, Missing};
use axum::extract::State;
use parlor_model::query::{GetWorkspaceRoot, WorkspaceRoot};
use parlor_model::{EntityKind, Refusal};
use parlor_wire::events::tree::{Tree, worked_on};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use utoipa::IntoParams;

/// Query parameters: `?session_id=&project_root=&path=&depth=`.
#[derive(Deserialize, IntoParams)]
pub struct TreeQuery {
    /// Room id.
    session_id: Option<String>,
    /// Absolute path of a project root.
    project_root: Option<String>,
    /// Folder below the project root, as a relative path.
    path: Option<String>,
    /// Maximum depth of the tree: default 6, maximum 20.
    depth: Option<usize>,
}

pub async fn tree(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(params): Parameters<TreeQuery>,
) -> Result<BareJson<Tree>, ChatEventsProblem> {
    let rooms = room_selection(params.session_id.as_deref(), params.project_root.as_deref())?;
    let WorkspaceRoot { room, root } = app.hub.read(&caller, GetWorkspaceRoot { rooms }).await?;
    let below = params.path.unwrap_or_default();
    let depth = params.depth.unwrap_or(workspace::DEFAULT_DEPTH).clamp(1, workspace::MAX_DEPTH);
    let permit = app.workspace_scans.clone().acquire_owned().await.map_err(|_| Refusal::Unavailable)?;
    let folder = root.clone();
    let scan = tokio::task::spawn_blocking(move || {
        // Held until the scan ends, even if the client disconnects.
        let _permit = permit;
        workspace::scan(&folder, &below, depth)
    });
    let scanned = scan.await;
    let scanned = scanned.map_err(|_| Refusal::Unavailable)?;
    let mut tree = scanned.map_err(|Missing| Refusal::NotFound(EntityKind::ProjectRoot))?;
    let from = if tree.path == *root { String::new() } else { tree.path.clone() };
    for (agent, call) in app.hub.hosting().tools_in_use(&room) {
        let Some(path) = worked_on(&call, &root) else { continue };
        let Ok(path) = Path::new(&path).strip_prefix(&from) else { continue };
        let steps: Vec<&str> = path.iter().filter_map(|step| step.to_str()).collect();
        tree.mark(&steps, &agent);
    }
    let name = Path::new(if from.is_empty() { &*root } else { &*from }).file_name();
    let name = name.map_or_else(|| "/".into(), |name| name.to_string_lossy().into_owned());
    Ok(bare_json(Tree(BTreeMap::from([(name, tree)]))))
}
