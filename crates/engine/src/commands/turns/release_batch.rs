//! Makes mail pending again whose run no longer exists, such as a run of a removed room. It counts as an attempt.

use super::settle_batch::retry;
use crate::Fault;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::ports::Lookup;
use crate::read_view::WriterView;
use parlor_model::command::ReleaseBatch;
use parlor_model::{Delivery, Refusal, RunCause, SessionRef};

impl Command for ReleaseBatch {
    /// Held mail of the session that no open run names.
    type Facts = Vec<Delivery>;
    /// Number of messages that were released.
    type Receipt = usize;

    /// Only the hub itself releases mail.
    fn permit(
        &self,
        caller: &CallerContext,
        view: &mut WriterView<'_>,
    ) -> Result<Vec<Delivery>, PermitError> {
        caller.operator()?;
        Ok(orphans(&session_ref(self), view.store)?)
    }

    fn decide(self, orphans: Vec<Delivery>, effects: &mut EffectsBuilder<'_>) -> Result<usize, Refusal> {
        let session = session_ref(&self);
        for copy in &orphans {
            let message = std::slice::from_ref(&copy.message);
            retry(&session, None, message, copy.attempts, "the run of the message was removed", effects);
        }
        Ok(orphans.len())
    }
}

fn session_ref(command: &ReleaseBatch) -> SessionRef {
    SessionRef { agent: command.agent.clone(), session: command.session.clone() }
}

/// Held mail of a session that no open run names.
pub fn orphans(session: &SessionRef, store: &mut dyn Lookup) -> Result<Vec<Delivery>, Fault> {
    let mut held = Vec::new();
    for mailbox in session.mailboxes() {
        held.extend(store.held(&mailbox)?);
    }
    if held.is_empty() {
        return Ok(held);
    }
    for run in store.open_runs_of_session(&session.agent, &session.session)? {
        if let RunCause::Batch { messages, .. } = &run.cause {
            held.retain(|copy| !messages.contains(&copy.message));
        }
    }
    Ok(held)
}
