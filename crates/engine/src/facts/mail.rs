//! Facts for receiving mail from a mailbox.

use super::Facts;
use crate::Fault;
use crate::decide::MAX_DELIVERY_ATTEMPTS;
use crate::ports::Lookup;
use crate::queries::answer_budget::count_within_budget;
use parlor_model::{Delivery, Mailbox};

impl Facts {
    pub(super) fn about_receive(
        &mut self,
        mailbox: &Mailbox,
        limit: usize,
        leased: bool,
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<(), Fault> {
        self.agent = store.agent(&mailbox.agent)?;
        self.mail = store.pending(mailbox, self.now, limit)?;
        if leased {
            self.skip_exhausted_deliveries(mailbox, limit, store)?;
        }
        // Mail beyond the size budget of one response stays for the next. Mail that has used up its attempts
        // is dead-lettered instead of returned, so it does not count.
        let is_deliverable = |delivery: &Delivery| !leased || delivery.attempts < MAX_DELIVERY_ATTEMPTS;
        let lengths = self.mail.iter().filter(|(_, delivery)| is_deliverable(delivery));
        let fits = count_within_budget(lengths.map(|(message, _)| message.length()));
        let mut deliverable = 0;
        self.mail.retain(|(_, delivery)| {
            deliverable += usize::from(is_deliverable(delivery));
            deliverable <= fits
        });
        Ok(())
    }

    /// Doubles the page size until the page contains mail that can be delivered. If all of it had used up its
    /// attempts, the response would be empty, and the client would take the mailbox for empty.
    fn skip_exhausted_deliveries(
        &mut self,
        mailbox: &Mailbox,
        limit: usize,
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<(), Fault> {
        let mut requested = limit;
        while requested > 0
            && self.mail.len() == requested
            && self.mail.iter().all(|(_, delivery)| delivery.attempts >= MAX_DELIVERY_ATTEMPTS)
        {
            requested = requested.saturating_mul(2);
            self.mail = store.pending(mailbox, self.now, requested)?;
        }
        Ok(())
    }
}
