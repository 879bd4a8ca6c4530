//! Access to messages on paths outside rooms: publications, feeds and history.

use crate::permission::{AuthContext, CallerContext};
use parlor_model::{Field, Operation, Path, Refusal};
use std::sync::Arc;

/// Requires the right to an operation on a path that takes publications. No caller can access messages in rooms or the
/// mail of agents by their paths.
pub fn on_path(
    caller: &CallerContext,
    operation: Operation,
    path: &Path,
) -> Result<Arc<AuthContext>, Refusal> {
    let auth = caller.on_path(operation, path)?;
    if path.takes_publications() {
        return Ok(auth);
    }
    Err(Refusal::invalid(Field::Path, "must not be below room/ or agent/"))
}
