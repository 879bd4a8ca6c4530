//! Mailboxes: pending mail, leases, and pages of all mail.

use super::{Ports, each};
use crate::fixtures::*;
use parlor_engine::changes::{Change, MailChange, MessageChange};
use parlor_model::query::MailPage;
use parlor_model::{Delivery, DeliveryState, Mailbox, Message, Seq, SessionId, SessionRef, Time};
use std::sync::Arc;

fn post_to(ports: &mut Ports, id: &str, deliveries: Vec<Delivery>) {
    let seq = ports.next_seq();
    ports.post(Message { destination: on_path("slack/x"), ..message(id, "", "ann", seq) });
    let put = |delivery| Change::Mail(MailChange::PutDelivery { delivery, seq: Seq(seq) });
    ports.change(deliveries.into_iter().map(put).collect());
}

fn pending(ports: &Ports, mailbox: &Mailbox, limit: usize) -> Vec<String> {
    pending_at(ports, mailbox, 0, limit)
}

fn pending_at(ports: &Ports, mailbox: &Mailbox, now: i64, limit: usize) -> Vec<String> {
    ids(ports.read(|s| s.pending(mailbox, Time(now), limit)), mailbox)
}

fn ids(mail: Vec<(Arc<Message>, Delivery)>, mailbox: &Mailbox) -> Vec<String> {
    mail.into_iter()
        .map(|(message, delivery)| {
            assert_eq!((&delivery.message, &delivery.mailbox), (&message.id, mailbox));
            message.id.to_string()
        })
        .collect()
}

#[test]
fn mail_is_pending_oldest_first_until_it_is_delivered() {
    each(|ports| {
        let (coder, session) = (mailbox("coder", None), mailbox("coder", Some("main")));
        for id in ["z", "m", "a", "k"] {
            post_to(ports, id, vec![delivery(id, session.clone()), delivery(id, coder.clone())]);
        }
        assert_eq!(pending(ports, &coder, 9), ["z", "m", "a", "k"]);
        assert_eq!(pending(ports, &coder, 2), ["z", "m"]);
        assert_eq!(pending(ports, &coder, 0), [""; 0]);
        let messages = ["z", "a"].map(message_id).into();
        ports.change(vec![Change::Mail(MailChange::MarkDelivered { mailbox: coder.clone(), messages })]);
        assert_eq!(pending(ports, &coder, 9), ["m", "k"]);
        assert_eq!(pending(ports, &session, 9), ["z", "m", "a", "k"], "each mailbox has its own delivery");
        let copies = ports.read(|s| s.deliveries(&message_id("z")));
        assert_eq!(
            copies.iter().map(|copy| copy.state).collect::<Vec<_>>(),
            [DeliveryState::Pending, DeliveryState::Delivered]
        );
        assert_eq!(pending(ports, &mailbox("writer", None), 9), [""; 0]);
    });
}

#[test]
fn deliveries_keep_every_field_and_the_order_of_the_decision() {
    each(|ports| {
        let handled_by =
            ["b", "a"].map(|id| SessionRef { agent: agent_id("coder"), session: SessionId::stored(id) });
        let copies = vec![
            delivery("m", mailbox("coder", Some("a"))),
            delivery("m", mailbox("coder", Some("b"))),
            delivery("m", mailbox("zed", Some("a"))),
            Delivery { handled_by: handled_by.into(), ..delivery("m", mailbox("coder", None)) },
            delivery("m", mailbox("writer", None)),
        ];
        post_to(ports, "m", copies.clone());
        assert_eq!(ports.read(|s| s.deliveries(&message_id("m"))), copies);
        assert_eq!(ports.read(|s| s.pending(&mailbox("coder", None), Time(0), 9))[0].1, copies[3]);
    });
}

#[test]
fn a_deleted_message_is_in_no_mailbox() {
    each(|ports| {
        let coder = mailbox("coder", None);
        for id in ["a", "b", "c"] {
            post_to(ports, id, vec![delivery(id, coder.clone())]);
        }
        ports.change(vec![Change::Message(MessageChange::DeleteMessage(message_id("a")))]);
        assert_eq!(pending(ports, &coder, 1), ["b"], "it does not count towards the limit");
        assert_eq!(ports.read(|s| s.deliveries(&message_id("a"))), []);
    });
}

fn lease(ports: &mut Ports, mailbox: &Mailbox, messages: &[&str], until: i64) {
    let messages = messages.iter().copied().map(message_id).collect();
    ports.change(vec![Change::Mail(MailChange::Lease {
        mailbox: mailbox.clone(),
        messages,
        until: Time(until),
    })]);
}

#[test]
fn leased_mail_is_pending_again_when_its_lease_ends() {
    each(|ports| {
        let (coder, session) = (mailbox("coder", None), mailbox("coder", Some("main")));
        for id in ["z", "m", "a"] {
            post_to(ports, id, vec![delivery(id, session.clone()), delivery(id, coder.clone())]);
        }
        lease(ports, &coder, &["z", "a"], 500);
        assert_eq!(pending_at(ports, &coder, 499, 9), ["m"]);
        assert_eq!(pending_at(ports, &coder, 500, 9), ["z", "m", "a"], "in the original order");
        assert_eq!(pending_at(ports, &coder, 500, 2), ["z", "m"]);
        assert_eq!(pending_at(ports, &session, 0, 9), ["z", "m", "a"], "each mailbox has its own delivery");
        lease(ports, &coder, &["z"], 900);
        assert_eq!(pending_at(ports, &coder, 500, 9), ["m", "a"]);
        let leased = Delivery {
            state: DeliveryState::Leased { until: Time(900) },
            attempts: 2,
            ..delivery("z", coder.clone())
        };
        assert_eq!(ports.read(|s| s.delivery(&coder, &message_id("z"))), Some(leased));
        let messages = vec![message_id("z")];
        ports.change(vec![Change::Mail(MailChange::MarkDelivered { mailbox: coder.clone(), messages })]);
        assert_eq!(
            pending_at(ports, &coder, i64::MAX, 9),
            ["m", "a"],
            "acknowledged mail is not pending again"
        );
        let taken = ports.read(|s| s.delivery(&coder, &message_id("z"))).unwrap();
        assert_eq!((taken.state, taken.attempts), (DeliveryState::Delivered, 2));
    });
}

#[test]
fn a_delivery_is_found_by_its_mailbox_and_message() {
    each(|ports| {
        let (coder, session) = (mailbox("coder", None), mailbox("coder", Some("main")));
        post_to(ports, "m", vec![delivery("m", session.clone())]);
        assert_eq!(
            ports.read(|s| s.delivery(&session, &message_id("m"))),
            Some(delivery("m", session.clone()))
        );
        assert_eq!(ports.read(|s| s.delivery(&coder, &message_id("m"))), None);
        assert_eq!(ports.read(|s| s.delivery(&session, &message_id("other"))), None);
    });
}

#[test]
fn all_mail_is_read_newest_first_and_filtered_by_time() {
    each(|ports| {
        let coder = mailbox("coder", None);
        for id in ["z", "m", "a", "k"] {
            post_to(ports, id, vec![delivery(id, coder.clone())]);
        }
        post_to(ports, "other", vec![delivery("other", mailbox("coder", Some("main")))]);
        ports.change(vec![Change::Mail(MailChange::MarkDelivered {
            mailbox: coder.clone(),
            messages: vec![message_id("m")],
        })]);
        lease(ports, &coder, &["z"], 900);
        let mail = |ports: &Ports, limit, from: Option<i64>, to: Option<i64>| {
            let page = MailPage { limit, offset: 0, from: from.map(Time), to: to.map(Time) };
            ids(ports.read(|s| s.mail(&coder, page)), &coder)
        };
        assert_eq!(mail(ports, 9, None, None), ["k", "a", "m", "z"], "in every delivery state");
        assert_eq!(mail(ports, 2, None, None), ["k", "a"]);
        assert_eq!(mail(ports, 0, None, None), [""; 0]);
        assert_eq!(mail(ports, 9, Some(2000), Some(3000)), ["a", "m"], "both ends included");
        assert_eq!(mail(ports, 9, Some(2001), None), ["k", "a"]);
        assert_eq!(mail(ports, 1, None, Some(2999)), ["m"]);
        assert_eq!(mail(ports, 9, Some(3000), Some(2000)), [""; 0]);
        ports.change(vec![Change::Message(MessageChange::DeleteMessage(message_id("a")))]);
        assert_eq!(
            mail(ports, 2, None, None),
            ["k", "m"],
            "a deleted message does not count towards the limit"
        );
    });
}
