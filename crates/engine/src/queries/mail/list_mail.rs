//! Lists the mail of a mailbox.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::queries::answer_budget::count_within_budget;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::command::ReceivedMail;
use parlor_model::query::ListMail;

impl Query for ListMail {
    type Facts = ();
    type Answer = ReceivedMail;

    /// Allowed for the owner of the agent, and for programs of the agent.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<(), PermitError> {
        view.as_agent(caller, &self.mailbox).map(drop)
    }

    fn answer(&self, (): (), store: &mut dyn Snapshot, _limits: &Limits) -> Result<ReceivedMail, Fault> {
        let mut mail = store.mail(&self.mailbox, self.page)?;
        mail.truncate(count_within_budget(mail.iter().map(|(message, _)| message.length())));
        Ok(mail)
    }
}
