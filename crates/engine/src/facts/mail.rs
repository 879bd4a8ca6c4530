//! What waits in a mailbox.

use super::Facts;
use crate::Fault;
use crate::decide::MOST_ATTEMPTS;
use crate::hub::count_within_budget;
use crate::ports::Lookup;
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
            self.past_what_is_given_up(mailbox, limit, store)?;
        }
        // What does not fit into one answer waits for the next; what is given up is in none.
        let goes_out = |delivery: &Delivery| !leased || delivery.attempts < MOST_ATTEMPTS;
        let lengths = self.mail.iter().filter(|(_, delivery)| goes_out(delivery));
        let fits = count_within_budget(lengths.map(|(message, _)| message.length()));
        let mut out = 0;
        self.mail.retain(|(_, delivery)| {
            out += usize::from(goes_out(delivery));
            out <= fits
        });
        Ok(())
    }

    /// A page of nothing but mail that will be given up must not hide what waits behind it: whoever gets an
    /// empty answer takes the mailbox for empty.
    fn past_what_is_given_up(
        &mut self,
        mailbox: &Mailbox,
        limit: usize,
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<(), Fault> {
        let mut asked = limit;
        while asked > 0
            && self.mail.len() == asked
            && self.mail.iter().all(|(_, delivery)| delivery.attempts >= MOST_ATTEMPTS)
        {
            asked = asked.saturating_mul(2);
            self.mail = store.pending(mailbox, self.now, asked)?;
        }
        Ok(())
    }
}
