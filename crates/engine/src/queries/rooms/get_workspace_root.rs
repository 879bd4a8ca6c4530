//! Returns the project root of a room, for reading its files.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::GetWorkspaceRoot;
use parlor_model::{EntityKind, Refusal, RoomRole, Scope};

impl Query for GetWorkspaceRoot {
    type Facts = Box<str>;
    type Answer = Box<str>;

    /// Allowed for members of the room, while `project_roots` lists the folder: it may have been removed
    /// since.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<Box<str>, PermitError> {
        let room = view.in_room(caller, &self.room, RoomRole::Member, Scope::Read)?.room;
        let root = room.project_root.clone().ok_or(Refusal::NotFound(EntityKind::ProjectRoot))?;
        if view.limits.allows_root(&root) { Ok(root) } else { Err(Refusal::Forbidden.into()) }
    }

    fn answer(&self, root: Box<str>, _store: &mut dyn Snapshot, _limits: &Limits) -> Result<Box<str>, Fault> {
        Ok(root)
    }
}
