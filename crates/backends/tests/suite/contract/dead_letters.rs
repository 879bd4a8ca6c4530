//! What reached nobody, or was given up.

use super::{Ports, each};
use crate::fixtures::*;
use parlor_engine::decide::Change;
use parlor_model::query::MailPage;
use parlor_model::{DeadLetter, DeliveryState, Mailbox, Message, Revision, Seq, Time};
use std::sync::Arc;

/// A message with a copy for the mailboxes, put in at the next place.
fn posted(ports: &mut Ports, id: &str, mailboxes: &[Mailbox]) -> Arc<Message> {
    let seq = ports.next_seq();
    let posted = Message { destination: on_path("slack/x"), ..message(id, "", "ann", seq) };
    ports.post(posted.clone());
    let put = |mailbox: &Mailbox| {
        let delivery = delivery(id, mailbox.clone());
        Change::PutDelivery { delivery, seq: Seq(seq) }
    };
    ports.change(mailboxes.iter().map(put).collect());
    Arc::new(posted)
}

fn unheard(message: &Arc<Message>) -> Change {
    Change::DeadLetter { message: message.clone(), reason: "no_subscribers" }
}

fn bury(message: &Arc<Message>, mailbox: &Mailbox) -> Change {
    let (message, mailbox) = (message.clone(), mailbox.clone());
    Change::DeadLetterDelivery { mailbox, message, reason: "not_acknowledged" }
}

fn letters(ports: &Ports) -> Vec<DeadLetter> {
    ports.read(|s| s.dead_letters(ALL_MAIL))
}

#[test]
fn dead_letters_come_newest_first_each_mailbox_for_itself() {
    each(|ports| {
        let boxes = [mailbox("coder", None), mailbox("coder", Some("main")), mailbox("writer", None)];
        let first = posted(ports, "z", &boxes);
        let second = posted(ports, "a", &[]);
        ports.change(vec![unheard(&second)]);
        ports.change(boxes.iter().rev().map(|mailbox| bury(&first, mailbox)).collect());
        let mut expected =
            vec![DeadLetter { message: second, reason: "no_subscribers".into(), mailbox: None }];
        expected.extend(boxes.map(|mailbox| DeadLetter {
            message: first.clone(),
            reason: "not_acknowledged".into(),
            mailbox: Some(mailbox),
        }));
        assert_eq!(letters(ports), expected);
        ports.change(vec![bury(&first, &mailbox("coder", None))]);
        assert_eq!(letters(ports), expected, "once for each mailbox");

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
fn what_is_given_up_waits_no_more() {
    each(|ports| {
        let (coder, writer) = (mailbox("coder", None), mailbox("writer", None));
        let given_up = posted(ports, "m", &[coder.clone(), writer.clone()]);
        let messages = vec![message_id("m")];
        ports.change(vec![Change::Lease { mailbox: coder.clone(), messages, until: Time(5) }]);
        ports.change(vec![bury(&given_up, &coder)]);
        ports.read(|s| {
            assert_eq!(s.pending(&coder, Time(i64::MAX), 9)?, []);
            let copy = s.delivery(&coder, &message_id("m"))?.expect("it is kept");
            assert_eq!((copy.state, copy.attempts), (DeliveryState::Dead, 1));
            assert_eq!(s.mail(&coder, ALL_MAIL)?.len(), 1, "and read as it is");
            assert_eq!(s.pending(&writer, Time(0), 9)?.len(), 1, "in another mailbox it waits still");
            Ok(())
        });
    });
}

#[test]
fn cleared_dead_letters_are_gone_and_their_messages_are_not() {
    each(|ports| {
        let coder = mailbox("coder", None);
        let message = posted(ports, "m", std::slice::from_ref(&coder));
        ports.change(vec![unheard(&message), bury(&message, &coder)]);
        assert_eq!(letters(ports).len(), 2);
        ports.change(vec![Change::ClearDeadLetters]);
        assert_eq!(letters(ports), []);
        ports.read(|s| {
            assert_eq!(s.message(&message_id("m"))?, Some(message.clone()));
            assert_eq!(s.mail(&coder, ALL_MAIL)?[0].1.state, DeliveryState::Dead);
            Ok(())
        });
        ports.change(vec![unheard(&message)]);
        assert_eq!(letters(ports).len(), 1, "there can be new ones");
    });
}

#[test]
fn a_dead_letter_says_what_its_message_says_now() {
    each(|ports| {
        let coder = mailbox("coder", None);
        let old = posted(ports, "m", std::slice::from_ref(&coder));
        ports.change(vec![bury(&old, &coder)]);
        let new = Arc::new(Message { text: "new".into(), edited_at: Some(Time(5)), ..Message::clone(&old) });
        let previous = Revision { message: old.id.clone(), text: "old".into(), edited_at: Time(5) };
        ports.change(vec![Change::Revise { message: new.clone(), previous }]);
        assert_eq!(letters(ports)[0].message, new);
        ports.change(vec![Change::DeleteMessage(message_id("m"))]);
        assert_eq!(letters(ports), [], "what was erased is no dead letter either");
    });
}
