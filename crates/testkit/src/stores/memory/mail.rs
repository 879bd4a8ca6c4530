//! Mail: agent sessions, subscriptions, deliveries and dead letters, in memory.

use super::TablesView;
use super::table::{Table, sorted};
use super::tables::Tables;
use parlor_engine::Fault;
use parlor_engine::changes::{MailChange, Settlement};
use parlor_engine::ports::ReadMail;
use parlor_model::query::{MailCounts, MailPage};
use parlor_model::{
    AgentId, DeadLetter, Delivery, DeliveryState, Mailbox, Message, MessageId, Seq, Session, Subscription,
    Time,
};
use std::cmp::Reverse;
use std::sync::Arc;

impl ReadMail for TablesView {
    fn sessions(&mut self, agent: &AgentId) -> Result<Vec<Session>, Fault> {
        Ok(self.tables.sessions.rows().filter(|session| session.agent == *agent).cloned().collect())
    }

    fn subscriptions_of(&mut self, mailbox: &Mailbox) -> Result<Vec<Subscription>, Fault> {
        let subscriptions = self.tables.subscriptions.rows();
        let own = subscriptions.filter(|subscription| {
            subscription.agent == mailbox.agent && subscription.session == mailbox.session
        });
        Ok(sorted(own.cloned(), |subscription| (subscription.added_at, subscription.pattern.clone())))
    }

    fn deliveries(&mut self, message: &MessageId) -> Result<Vec<Delivery>, Fault> {
        let order = |delivery: &Delivery| {
            let Mailbox { agent, session } = &delivery.mailbox;
            (session.is_none(), agent.clone(), session.clone())
        };
        Ok(sorted(self.tables.deliveries_of(message).cloned(), order))
    }

    fn pending(
        &mut self,
        mailbox: &Mailbox,
        now: Time,
        limit: usize,
    ) -> Result<Vec<(Arc<Message>, Delivery)>, Fault> {
        let mail = self.tables.mail_of(mailbox).filter(|(_, delivery)| delivery.state.is_deliverable(now));
        Ok(mail.take(limit).collect())
    }

    fn unhandled(
        &mut self,
        mailbox: &Mailbox,
        now: Time,
        limit: usize,
    ) -> Result<Vec<(Arc<Message>, Delivery)>, Fault> {
        let mail = self
            .tables
            .mail_of(mailbox)
            .filter(|(_, delivery)| delivery.handled_by.is_empty() && delivery.state.is_deliverable(now));
        Ok(mail.take(limit).collect())
    }

    fn delivery(&mut self, mailbox: &Mailbox, message: &MessageId) -> Result<Option<Delivery>, Fault> {
        Ok(self.tables.deliveries.get(&(message.clone(), mailbox.clone())).cloned())
    }

    fn mail(&mut self, mailbox: &Mailbox, page: MailPage) -> Result<Vec<(Arc<Message>, Delivery)>, Fault> {
        let mail = self.tables.mail_of(mailbox).rev().filter(|(message, _)| is_in_page(page, message.at));
        Ok(mail.skip(page.offset).take(page.limit).collect())
    }

    fn mail_counts(&mut self, mailbox: &Mailbox, now: Time) -> Result<MailCounts, Fault> {
        let mut counts = MailCounts::default();
        for (_, delivery) in self.tables.mail_of(mailbox) {
            match delivery.state {
                DeliveryState::Leased { until } if until > now => counts.leased += 1,
                DeliveryState::Pending | DeliveryState::Leased { .. } => counts.pending += 1,
                DeliveryState::Delivered | DeliveryState::Dead => {}
            }
        }
        Ok(counts)
    }

    fn mail_after(
        &mut self,
        mailbox: &Mailbox,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<(Arc<Message>, Delivery)>, Fault> {
        Ok(self.tables.mail_of(mailbox).filter(|(message, _)| message.seq > after).take(limit).collect())
    }

    fn dead_letters(&mut self, page: MailPage) -> Result<Vec<DeadLetter>, Fault> {
        let letters = self.tables.all_dead_letters().filter(|letter| is_in_page(page, letter.message.at));
        let order = |letter: &DeadLetter| (Reverse(letter.message.seq), letter.mailbox.clone());
        let mut letters = sorted(letters, order);
        letters.drain(..page.offset.min(letters.len()));
        letters.truncate(page.limit);
        Ok(letters)
    }

    fn held(&mut self, mailbox: &Mailbox) -> Result<Vec<Delivery>, Fault> {
        let mail = self.tables.mail_of(mailbox).map(|(_, delivery)| delivery);
        Ok(mail.filter(|delivery| delivery.state == DeliveryState::HELD).collect())
    }

    fn next_lease_end(&mut self, mailbox: &Mailbox, now: Time) -> Result<Option<Time>, Fault> {
        let ends = self.tables.mail_of(mailbox).filter_map(|(_, delivery)| match delivery.state {
            DeliveryState::Leased { until } if delivery.state != DeliveryState::HELD => Some(until),
            _ => None,
        });
        Ok(ends.filter(|until| *until > now).min())
    }

    fn dead_letter(
        &mut self,
        message: &MessageId,
        mailbox: Option<&Mailbox>,
    ) -> Result<Option<DeadLetter>, Fault> {
        let of = |letter: &DeadLetter| letter.message.id == *message && letter.mailbox.as_ref() == mailbox;
        Ok(self.tables.all_dead_letters().find(of))
    }
}

impl Tables {
    pub fn apply_mail(&mut self, change: &MailChange) {
        match change {
            MailChange::PutSession(session) => {
                let key = (session.agent.clone(), session.id.clone());
                self.sessions.put(key, session.clone());
            }
            MailChange::PutSubscription(new) => {
                let key = (new.agent.clone(), new.session.clone(), new.pattern.clone());
                self.subscriptions.put(key, new.clone());
            }
            MailChange::RemoveSubscription(mailbox, pattern) => {
                let Mailbox { agent, session } = mailbox.clone();
                self.subscriptions.remove(&(agent, session, pattern.clone()));
            }
            MailChange::PutDelivery { delivery, seq: _ } => {
                self.deliveries.put((delivery.message.clone(), delivery.mailbox.clone()), delivery.clone());
            }
            MailChange::MarkDelivered { mailbox, messages } => {
                self.each_copy(mailbox, messages, |copy| copy.state = DeliveryState::Delivered);
            }
            MailChange::Lease { mailbox, messages, until } => {
                self.each_copy(mailbox, messages, |copy| {
                    copy.state = DeliveryState::Leased { until: *until };
                    copy.attempts += 1;
                });
            }
            MailChange::SettleHeld { session, messages, settlement } => {
                for mailbox in session.mailboxes() {
                    self.settle_held(&mailbox, messages, settlement);
                }
            }
            MailChange::DeadLetterDelivery { mailbox, message, reason } => {
                let id = std::slice::from_ref(&message.id);
                self.each_copy(mailbox, id, |copy| copy.state = DeliveryState::Dead);
                self.put_dead_letter(&message.id, Some(mailbox.clone()), reason);
            }
            MailChange::DeadLetter { message, reason } => self.put_dead_letter(&message.id, None, reason),
            MailChange::ReviveDelivery { mailbox, message } => {
                self.each_copy(mailbox, std::slice::from_ref(message), |copy| {
                    if copy.state == DeliveryState::Dead {
                        (copy.state, copy.attempts) = (DeliveryState::Pending, 0);
                    }
                });
            }
            MailChange::RemoveDeadLetter { message, mailbox } => {
                self.dead_letters.remove(&(message.id.clone(), mailbox.clone()));
            }
            MailChange::MoveMail { from, to } => self.move_mail(from, to),
            MailChange::ClearDeadLetters => self.dead_letters = Table::default(),
        }
    }

    fn settle_held(&mut self, mailbox: &Mailbox, messages: &[MessageId], settlement: &Settlement) {
        for message in messages {
            let copy = self.deliveries.get_mut(&(message.clone(), mailbox.clone()));
            let Some(copy) = copy.filter(|copy| copy.state == DeliveryState::HELD) else { continue };
            match settlement {
                Settlement::Delivered => copy.state = DeliveryState::Delivered,
                Settlement::PendingFrom(until) => copy.state = DeliveryState::Leased { until: *until },
                Settlement::Dead(reason) => {
                    copy.state = DeliveryState::Dead;
                    self.put_dead_letter(message, Some(mailbox.clone()), reason);
                }
            }
        }
    }

    pub fn each_copy(&mut self, mailbox: &Mailbox, messages: &[MessageId], change: impl Fn(&mut Delivery)) {
        for message in messages {
            if let Some(copy) = self.deliveries.get_mut(&(message.clone(), mailbox.clone())) {
                change(copy);
            }
        }
    }

    fn move_mail(&mut self, from: &Mailbox, to: &Mailbox) {
        let copies: Vec<Delivery> =
            self.deliveries.rows().filter(|copy| copy.mailbox == *from).cloned().collect();
        for copy in copies {
            self.deliveries.remove(&(copy.message.clone(), from.clone()));
            let key = (copy.message.clone(), to.clone());
            if self.deliveries.get(&key).is_none() {
                self.deliveries.put(key, Delivery { mailbox: to.clone(), ..copy });
            }
        }
        let own: Vec<_> = self.deliveries.rows().filter(|copy| copy.mailbox == *to).cloned().collect();
        for mut copy in own {
            for session in copy.handled_by.iter_mut().filter(|session| session.agent == from.agent) {
                session.agent = to.agent.clone();
            }
            self.deliveries.put((copy.message.clone(), to.clone()), copy);
        }
        let letters: Vec<_> = self
            .dead_letters
            .rows()
            .filter(|(_, mailbox, _)| mailbox.as_ref() == Some(from))
            .cloned()
            .collect();
        for (message, _, reason) in letters {
            self.dead_letters.remove(&(message.clone(), Some(from.clone())));
            let key = (message.clone(), Some(to.clone()));
            if self.dead_letters.get(&key).is_none() {
                self.dead_letters.put(key, (message, Some(to.clone()), reason));
            }
        }
    }

    pub fn put_dead_letter(&mut self, message: &MessageId, mailbox: Option<Mailbox>, reason: &str) {
        let key = (message.clone(), mailbox.clone());
        self.dead_letters.put(key, (message.clone(), mailbox, reason.into()));
    }
}

fn is_in_page(page: MailPage, at: Time) -> bool {
    page.from.is_none_or(|from| at >= from) && page.to.is_none_or(|to| at <= to)
}
