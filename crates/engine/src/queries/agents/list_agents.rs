//! Lists the agents that the caller may see.

use crate::permission::AuthContext;
use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::ListAgents;
use parlor_model::{Agent, Scope};
use std::sync::Arc;

impl Query for ListAgents {
    type Facts = Arc<AuthContext>;
    type Answer = Vec<Agent>;

    /// Allowed for every user.
    fn permit(
        &self,
        caller: &CallerContext,
        _view: &mut ReadView<'_>,
    ) -> Result<Arc<AuthContext>, PermitError> {
        Ok(caller.signed_in(Scope::Read)?)
    }

    fn answer(
        &self,
        caller: Arc<AuthContext>,
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<Vec<Agent>, Fault> {
        let mut agents = store.agents_of(&caller.user.id)?;
        agents.extend(store.agents_near(&caller.user.id)?);
        Ok(agents)
    }
}
