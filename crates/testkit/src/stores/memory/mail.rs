//! Mail: agent sessions, subscriptions, deliveries and dead letters, in memory.

use super::TablesView;
use super::table::{Table, sorted};
use super::tables::Tables;
use parlor_engine::Fault;
use parlor_engine::changes::MailChange;
use parlor_engine::ports::ReadMail;
use parlor_model::query::MailPage;
use parlor_model::{
    AgentId, DeadLetter, Delivery, DeliveryState, Mailbox, Message, MessageId, Session, Subscription, Time,
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
        let ready = |delivery: &Delivery| match delivery.state {
            DeliveryState::Pending => true,
            DeliveryState::Leased { until } => until <= now,
            DeliveryState::Delivered | DeliveryState::Dead => false,
        };
        Ok(self.tables.mail_of(mailbox).filter(|(_, delivery)| ready(delivery)).take(limit).collect())
    }

    fn delivery(&mut self, mailbox: &Mailbox, message: &MessageId) -> Result<Option<Delivery>, Fault> {
        Ok(self.tables.deliveries.get(&(message.clone(), mailbox.clone())).cloned())
    }

    fn mail(&mut self, mailbox: &Mailbox, page: MailPage) -> Result<Vec<(Arc<Message>, Delivery)>, Fault> {
        let mail = self.tables.mail_of(mailbox).rev().filter(|(message, _)| is_in_page(page, message.at));
        Ok(mail.take(page.limit).collect())
    }

    fn dead_letters(&mut self, page: MailPage) -> Result<Vec<DeadLetter>, Fault> {
        let letters = self.tables.all_dead_letters().filter(|letter| is_in_page(page, letter.message.at));
        let order = |letter: &DeadLetter| (Reverse(letter.message.seq), letter.mailbox.clone());
        let mut letters = sorted(letters, order);
        letters.truncate(page.limit);
        Ok(letters)
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
            MailChange::DeadLetterDelivery { mailbox, message, reason } => {
                let id = std::slice::from_ref(&message.id);
                self.each_copy(mailbox, id, |copy| copy.state = DeliveryState::Dead);
                self.put_dead_letter(&message.id, Some(mailbox.clone()), reason);
            }
            MailChange::DeadLetter { message, reason } => self.put_dead_letter(&message.id, None, reason),
            MailChange::ClearDeadLetters => self.dead_letters = Table::default(),
        }
    }

    pub fn each_copy(&mut self, mailbox: &Mailbox, messages: &[MessageId], change: impl Fn(&mut Delivery)) {
        for message in messages {
            if let Some(copy) = self.deliveries.get_mut(&(message.clone(), mailbox.clone())) {
                change(copy);
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
