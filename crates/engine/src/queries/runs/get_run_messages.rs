//! Returns the message that triggered a run and the reply of the run, without those that the caller has
//! cleared.

use crate::permission::{CallerContext, PermitError, SeenRun};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::GetRunMessages;
use parlor_model::{Message, Scope};
use std::sync::Arc;

impl Query for GetRunMessages {
    type Facts = SeenRun;
    type Answer = Vec<Arc<Message>>;

    /// Allowed for every member of the room of the run; without a room, for the owner of the agent.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<SeenRun, PermitError> {
        view.seen_run(caller, &self.run, Scope::Read)
    }

    fn answer(
        &self,
        seen: SeenRun,
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<Vec<Arc<Message>>, Fault> {
        let SeenRun { run, member } = seen;
        let mut messages = Vec::new();
        for id in [run.message(), run.reply.as_ref()].into_iter().flatten() {
            messages.extend(store.message(id)?);
        }
        if let Some(member) = member {
            messages.retain(|message| message.seq > member.room_preferences.cleared_through);
        }
        Ok(messages)
    }
}
