//! Lists entries of a session's conversation log.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::ListConversation;
use parlor_model::{ConversationEntry, Scope};

/// Maximum number of entries in an answer.
const MAX_ENTRIES: usize = 1000;

impl Query for ListConversation {
    type Facts = ();
    type Answer = Vec<ConversationEntry>;

    /// Allowed for the owner of the agent.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<(), PermitError> {
        view.own_agent(caller, &self.agent, Scope::Agents).map(drop)
    }

    fn answer(
        &self,
        (): (),
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<Vec<ConversationEntry>, Fault> {
        store.conversation(&self.agent, &self.session, self.page, self.limit.min(MAX_ENTRIES))
    }
}
