//! Permissions on presence sets.

mod may_enter_place;
mod may_list_occupants;
mod may_read_occupancy;
mod may_read_occupant_history;

use crate::feed::Access;
use crate::paths::on_path;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::ReadView;
use parlor_model::{Operation, Path};

/// Requires the right to an operation on a place: membership of the room, or access to the path.
fn at_place(
    caller: &CallerContext,
    operation: Operation,
    place: &Path,
    view: &mut ReadView<'_>,
) -> Result<Access, PermitError> {
    if let Some(room) = place.room() {
        view.at_room(caller, operation, &room)?;
        return Ok(Access::ByMembership);
    }
    let auth = on_path(caller, operation, place)?;
    Ok(if auth.is_limited() { Access::ByGrant } else { Access::ByRole })
}
