//! Lists the cards of the caller's agents.

use super::card::card;
use crate::permission::AuthContext;
use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::Scope;
use parlor_model::query::{AgentCard, ListAgentCards};
use std::sync::Arc;

impl Query for ListAgentCards {
    type Facts = Arc<AuthContext>;
    type Answer = Vec<AgentCard>;

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
    ) -> Result<Vec<AgentCard>, Fault> {
        let viewer = &caller.user.id;
        store.agents_of(viewer)?.into_iter().map(|agent| card(agent, viewer, store)).collect()
    }
}
