//! Lists the mail of a mailbox after a position.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::queries::answer_budget::count_within_budget;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::command::ReceivedMail;
use parlor_model::query::ListNewMail;

impl Query for ListNewMail {
    type Facts = ();
    type Answer = ReceivedMail;

    /// Allowed for the operator.
    fn permit(&self, caller: &CallerContext, _view: &mut ReadView<'_>) -> Result<(), PermitError> {
        Ok(caller.operator()?)
    }

    /// The named messages that the mailbox has, then the newer ones. A budget limits the bytes of the newer ones, of
    /// which there is at least one if any exists.
    fn answer(&self, (): (), store: &mut dyn Snapshot, _limits: &Limits) -> Result<ReceivedMail, Fault> {
        let mut mail = Vec::with_capacity(self.also.len());
        for id in &self.also {
            if let (Some(delivery), Some(message)) = (store.delivery(&self.mailbox, id)?, store.message(id)?)
            {
                mail.push((message, delivery));
            }
        }
        let mut newer = store.mail_after(&self.mailbox, self.after, self.limit)?;
        newer.truncate(count_within_budget(newer.iter().map(|(message, _)| message.length())).max(1));
        mail.extend(newer);
        Ok(mail)
    }
}
