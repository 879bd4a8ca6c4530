//! Lists the runs that a message triggered, including refused runs.

use super::agent_names::with_agent_names;
use crate::permission::{CallerContext, PermitError, SeenMessage};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::Scope;
use parlor_model::query::{ListRunsOfMessage, NamedRun};

impl Query for ListRunsOfMessage {
    type Facts = SeenMessage;
    type Answer = Vec<NamedRun>;

    /// Allowed for every member who can see the message.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<SeenMessage, PermitError> {
        view.seen_message(caller, &self.message, Scope::Read)
    }

    fn answer(
        &self,
        _seen: SeenMessage,
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<Vec<NamedRun>, Fault> {
        let runs = store.runs_of(&self.message)?;
        with_agent_names(runs, store)
    }
}
