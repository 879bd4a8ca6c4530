//! Returns one message.

use crate::permission::{CallerContext, PermitError, SeenMessage};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::GetMessage;
use parlor_model::{Message, Scope};
use std::sync::Arc;

impl Query for GetMessage {
    type Facts = SeenMessage;
    type Answer = Arc<Message>;

    /// Allowed for every member who can see the message.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<SeenMessage, PermitError> {
        view.seen_message(caller, &self.message, Scope::Read)
    }

    fn answer(
        &self,
        seen: SeenMessage,
        _store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<Arc<Message>, Fault> {
        Ok(seen.message)
    }
}
