//! Queries about the sessions of the caller's own agents.

mod list_active_sessions;
mod list_sessions;
mod may_follow_sessions;
mod may_instruct_agent;

use crate::permission::{AuthContext, CallerContext};
use parlor_model::{Refusal, Scope};
use std::sync::Arc;

/// Requires a user or an API key with the scope for agents, without a grant: sessions are no places that a grant names.
fn owner(caller: &CallerContext) -> Result<Arc<AuthContext>, Refusal> {
    let auth = caller.signed_in(Scope::Agents)?;
    if auth.is_limited() { Err(Refusal::Forbidden) } else { Ok(auth) }
}
