//! Checks whether the caller may subscribe to an agent's mailbox.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::MayListenToMailbox;

impl Query for MayListenToMailbox {
    type Facts = ();
    type Answer = ();

    /// Allowed for the owner of the agent, and for programs of the agent.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<(), PermitError> {
        view.as_agent(caller, &self.mailbox).map(drop)
    }

    fn answer(&self, (): (), _store: &mut dyn Snapshot, _limits: &Limits) -> Result<(), Fault> {
        Ok(())
    }
}
