//! Returns the project root of the selected rooms, for reading its files.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::{GetWorkspaceRoot, WorkspaceRoot};
use parlor_model::{EntityKind, Refusal, Scope};

impl Query for GetWorkspaceRoot {
    type Facts = WorkspaceRoot;
    type Answer = WorkspaceRoot;

    /// Allowed for members of the room, while `project_roots` lists the folder: it may have been removed
    /// since.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<WorkspaceRoot, PermitError> {
        let room = view.first_selected_room(caller, &self.rooms, Scope::Read)?.room;
        let root = room.project_root.clone().ok_or(Refusal::NotFound(EntityKind::ProjectRoot))?;
        if !view.limits.allows_root(&root) {
            return Err(Refusal::Forbidden.into());
        }
        Ok(WorkspaceRoot { room: room.id.clone(), root })
    }

    fn answer(
        &self,
        root: WorkspaceRoot,
        _store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<WorkspaceRoot, Fault> {
        Ok(root)
    }
}
