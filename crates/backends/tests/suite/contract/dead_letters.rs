//! Dead letters: messages without a recipient, and deliveries that were never acknowledged.

use super::{Ports, each};
use crate::fixtures::*;
use parlor_engine::changes::{Change, MailChange, MessageChange};
use parlor_model::query::MailPage;
use parlor_model::{DeadLetter, DeliveryState, Mailbox, Message, Revision, Seq, Time};
use std::sync::Arc;

/// Posts a message with the next `Seq` and a delivery for each mailbox.
fn posted(ports: &mut Ports, id: &str, mailboxes: &[Mailbox]) -> Arc<Message> {
    let seq = ports.next_seq();
    let posted = Message { destination: on_path("slack/x"), ..message(id, "", "ann", seq) };
    ports.post(posted.clone());
    let put = |mailbox: &Mailbox| {
        let delivery = delivery(id, mailbox.clone());
        Change::Mail(MailChange::PutDelivery { delivery, seq: Seq(seq) })
    };
    ports.change(mailboxes.iter().map(put).collect());
    Arc::new(posted)
}

fn undelivered(message: &Arc<Message>) -> Change {
    Change::Mail(MailChange::DeadLetter { message: message.clone(), reason: "no_subscribers" })
}

fn unacknowledged(message: &Arc<Message>, mailbox: &Mailbox) -> Change {
    let (message, mailbox) = (message.clone(), mailbox.clone());
    Change::Mail(MailChange::DeadLetterDelivery { mailbox, message, reason: "not_acknowledged".into() })
}

fn letters(ports: &Ports) -> Vec<DeadLetter> {
    ports.read(|s| s.dead_letters(ALL_MAIL))
}

#[test]
fn dead_letters_are_listed_newest_first_per_mailbox() {
    each(|ports| {
        let boxes = [mailbox("coder", None), mailbox("coder", Some("main")), mailbox("writer", None)];
        let first = posted(ports, "z", &boxes);
        let second = posted(ports, "a", &[]);
        ports.change(vec![undelivered(&second)]);
        ports.change(boxes.iter().rev().map(|mailbox| unacknowledged(&first, mailbox)).collect());
        let mut expected =
            vec![DeadLetter { message: second, reason: "no_subscribers".into(), mailbox: None }];
        expected.extend(boxes.map(|mailbox| DeadLetter {
            message: first.clone(),
            reason: "not_acknowledged".into(),
            mailbox: Some(mailbox),
        }));
        assert_eq!(letters(ports), expected);
        ports.change(vec![unacknowledged(&first, &mailbox("coder", None))]);
        assert_eq!(letters(ports), expected, "one dead letter per mailbox");

        let page = |limit, from: Option<i64>, to: Option<i64>| {
            let page = MailPage { limit, from: from.map(Time), to: to.map(Time) };
            ports.read(|s| s.dead_letters(page))
        };
        assert_eq!(page(2, None, None), expected[..2]);
        assert_eq!(page(9, Some(2000), Some(2000)), expected[..1], "both ends included");
        assert_eq!(page(9, None, Some(1999)), expected[1..]);
    });
}

#[test]
fn a_dead_delivery_is_not_pending() {
    each(|ports| {
        let (coder, writer) = (mailbox("coder", None), mailbox("writer", None));
        let dead = posted(ports, "m", &[coder.clone(), writer.clone()]);
        let messages = vec![message_id("m")];
        ports.change(vec![Change::Mail(MailChange::Lease {
            mailbox: coder.clone(),
            messages,
            until: Time(5),
        })]);
        ports.change(vec![unacknowledged(&dead, &coder)]);
        ports.read(|s| {
            assert_eq!(s.pending(&coder, Time(i64::MAX), 9)?, []);
            let copy = s.delivery(&coder, &message_id("m"))?.expect("the dead delivery is stored");
            assert_eq!((copy.state, copy.attempts), (DeliveryState::Dead, 1));
            assert_eq!(s.mail(&coder, ALL_MAIL)?.len(), 1, "mail pages include it");
            assert_eq!(s.pending(&writer, Time(0), 9)?.len(), 1, "it is still pending in the other mailbox");
            Ok(())
        });
    });
}

#[test]
fn clearing_dead_letters_keeps_their_messages() {
    each(|ports| {
        let coder = mailbox("coder", None);
        let message = posted(ports, "m", std::slice::from_ref(&coder));
        ports.change(vec![undelivered(&message), unacknowledged(&message, &coder)]);
        assert_eq!(letters(ports).len(), 2);
        ports.change(vec![Change::Mail(MailChange::ClearDeadLetters)]);
        assert_eq!(letters(ports), []);
        ports.read(|s| {
            assert_eq!(s.message(&message_id("m"))?, Some(message.clone()));
            assert_eq!(s.mail(&coder, ALL_MAIL)?[0].1.state, DeliveryState::Dead);
            Ok(())
        });
        ports.change(vec![undelivered(&message)]);
        assert_eq!(letters(ports).len(), 1, "new dead letters can be added");
    });
}

#[test]
fn a_dead_letter_contains_the_current_message() {
    each(|ports| {
        let coder = mailbox("coder", None);
        let old = posted(ports, "m", std::slice::from_ref(&coder));
        ports.change(vec![unacknowledged(&old, &coder)]);
        let new = Arc::new(Message { text: "new".into(), edited_at: Some(Time(5)), ..Message::clone(&old) });
        let previous = Revision { message: old.id.clone(), text: "old".into(), edited_at: Time(5) };
        ports.change(vec![Change::Message(MessageChange::Revise { message: new.clone(), previous })]);
        assert_eq!(letters(ports)[0].message, new);
        ports.change(vec![Change::Message(MessageChange::DeleteMessage(message_id("m")))]);
        assert_eq!(letters(ports), [], "a deleted message is not a dead letter");
    });
}
