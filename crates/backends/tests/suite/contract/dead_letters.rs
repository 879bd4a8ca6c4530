//! Dead letters: messages without a recipient, and deliveries that were never acknowledged.

use super::{Ports, each};
use crate::fixtures::*;
use parlor_engine::changes::{Change, MailChange, MessageChange};
use parlor_model::query::{MailCounts, MailPage};
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
            let page = MailPage { limit, offset: 0, from: from.map(Time), to: to.map(Time) };
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

#[test]
fn a_dead_letter_is_found_by_message_and_mailbox_and_removed_alone() {
    each(|ports| {
        let (coder, main) = (mailbox("coder", None), mailbox("coder", Some("main")));
        let message = posted(ports, "m", &[coder.clone(), main.clone()]);
        ports.change(vec![
            unacknowledged(&message, &coder),
            unacknowledged(&message, &main),
            undelivered(&message),
        ]);
        let find = |ports: &Ports, mailbox: Option<&Mailbox>| {
            ports.read(|s| Ok(s.dead_letter(&message_id("m"), mailbox)?.map(|letter| letter.reason)))
        };
        assert_eq!(find(ports, None).as_deref(), Some("no_subscribers"));
        assert_eq!(find(ports, Some(&main)).as_deref(), Some("not_acknowledged"));
        assert_eq!(find(ports, Some(&mailbox("writer", None))), None);
        let remove = |mailbox: Option<Mailbox>| {
            Change::Mail(MailChange::RemoveDeadLetter { message: message.clone(), mailbox })
        };
        ports.change(vec![remove(Some(main.clone()))]);
        assert_eq!(find(ports, Some(&main)), None);
        assert_eq!(letters(ports).len(), 2);
        ports.change(vec![remove(None)]);
        assert_eq!(find(ports, None), None);
        assert_eq!(letters(ports)[0].mailbox, Some(coder.clone()));
        let page = |offset| ports.read(|s| s.dead_letters(MailPage { offset, ..ALL_MAIL })).len();
        assert_eq!([page(0), page(1), page(9)], [1, 0, 0]);
    });
}

#[test]
fn a_revived_delivery_is_pending_at_its_original_place() {
    each(|ports| {
        let coder = mailbox("coder", None);
        let first = posted(ports, "first", std::slice::from_ref(&coder));
        posted(ports, "second", std::slice::from_ref(&coder));
        let lease = |id: &str, until| {
            let (mailbox, messages) = (coder.clone(), vec![message_id(id)]);
            Change::Mail(MailChange::Lease { mailbox, messages, until: Time(until) })
        };
        ports.change(vec![lease("first", 5)]);
        ports.change(vec![unacknowledged(&first, &coder)]);
        ports.change(vec![lease("second", 9)]);
        let counts = |ports: &Ports, now| ports.read(|s| s.mail_counts(&coder, Time(now)));
        assert_eq!(counts(ports, 8), MailCounts { pending: 0, leased: 1 }, "a dead copy is not open");
        assert_eq!(counts(ports, 9), MailCounts { pending: 1, leased: 0 }, "the lease has expired");
        let revive = |id: &str| {
            let (mailbox, message) = (coder.clone(), message_id(id));
            Change::Mail(MailChange::ReviveDelivery { mailbox, message })
        };
        ports.change(vec![revive("first"), revive("second")]);
        assert_eq!(counts(ports, 8), MailCounts { pending: 1, leased: 1 }, "only dead copies are revived");
        let pending = ports.read(|s| s.pending(&coder, Time(9), 9));
        let found: Vec<_> =
            pending.iter().map(|(message, copy)| (message.id.as_str(), copy.attempts)).collect();
        assert_eq!(found, [("first", 0), ("second", 1)]);
        let mail = ports.read(|s| s.mail(&coder, MailPage { offset: 1, ..ALL_MAIL }));
        assert_eq!(mail.iter().map(|(message, _)| message.id.as_str()).collect::<Vec<_>>(), ["first"]);
    });
}
