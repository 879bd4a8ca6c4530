//! Agents, what they listen to, and their mailboxes.

use super::{Ports, each};
use crate::made::*;
use parlor_engine::plan::Change;
use parlor_model::{
    Delivery, DeliveryState, Mailbox, Message, Pattern, Seq, SessionId, SessionRef, Subscription, Time,
};

fn post_to(ports: &mut Ports, id: &str, deliveries: Vec<Delivery>) {
    let seq = ports.next_seq();
    ports.post(Message { place: on_path("slack/x"), ..message(id, "", "ann", seq) });
    let put = |delivery| Change::PutDelivery { delivery, seq: Seq(seq) };
    ports.change(deliveries.into_iter().map(put).collect());
}

fn pending(ports: &Ports, mailbox: &Mailbox, limit: usize) -> Vec<String> {
    let mail = ports.read(|s| s.pending(mailbox, limit));
    mail.into_iter()
        .map(|(message, delivery)| {
            assert_eq!((&delivery.message, &delivery.mailbox), (&message.id, mailbox));
            message.id.to_string()
        })
        .collect()
}

#[test]
fn agents_come_back_whole_and_by_id() {
    each(|ports| {
        let names = ["zed", "coder/sub", "coder"];
        ports.change(names.map(|id| put_agent(id, "ann")).into());
        ports.change(vec![put_agent("other", "bob")]);
        assert_eq!(ports.read(|s| s.agent(&agent_id("coder/sub"))), Some(agent("coder/sub", "ann")));
        let own = ports.read(|s| s.agents_of(&user_id("ann")));
        assert_eq!(own, ["coder", "coder/sub", "zed"].map(|id| agent(id, "ann")));
        assert_eq!(ports.read(|s| s.agents_of(&user_id("nobody"))), []);
    });
}

#[test]
fn everything_the_routing_index_is_built_from_comes_back() {
    each(|ports| {
        let subscription = |agent: &str, session: Option<&str>, pattern: &str| Subscription {
            agent: agent_id(agent),
            session: session.map(SessionId::stored),
            pattern: Pattern::parse(pattern).unwrap(),
            added_at: Time(3),
        };
        let all = [
            subscription("coder", None, "slack/**"),
            subscription("coder", Some("main"), "slack/**"),
            subscription("coder", None, "room/*"),
            subscription("writer", None, "slack/**"),
        ];
        ports.change(vec![put_agent("coder", "ann"), put_agent("writer", "bob")]);
        ports.change(all.iter().cloned().map(Change::PutSubscription).collect());
        ports.change(vec![Change::PutSubscription(all[0].clone())]);
        let (mut agents, found) = ports.store.subscriptions().unwrap();
        agents.sort_by(|one, other| one.id.cmp(&other.id));
        assert_eq!(agents, [agent("coder", "ann"), agent("writer", "bob")]);
        assert_eq!(found.len(), all.len(), "each once");
        assert!(all.iter().all(|wanted| found.contains(wanted)));
    });
}

#[test]
fn mail_waits_oldest_first_until_it_is_delivered() {
    each(|ports| {
        let (coder, session) = (mailbox("coder", None), mailbox("coder", Some("main")));
        for id in ["z", "m", "a", "k"] {
            post_to(ports, id, vec![delivery(id, session.clone()), delivery(id, coder.clone())]);
        }
        assert_eq!(pending(ports, &coder, 9), ["z", "m", "a", "k"]);
        assert_eq!(pending(ports, &coder, 2), ["z", "m"]);
        assert_eq!(pending(ports, &coder, 0), [""; 0]);
        let messages = ["z", "a"].map(message_id).into();
        ports.change(vec![Change::MarkDelivered { mailbox: coder.clone(), messages }]);
        assert_eq!(pending(ports, &coder, 9), ["m", "k"]);
        assert_eq!(pending(ports, &session, 9), ["z", "m", "a", "k"], "another mailbox, another copy");
        let copies = ports.read(|s| s.deliveries(&message_id("z")));
        assert_eq!(
            copies.iter().map(|copy| copy.state).collect::<Vec<_>>(),
            [DeliveryState::Pending, DeliveryState::Delivered]
        );
        assert_eq!(pending(ports, &mailbox("writer", None), 9), [""; 0]);
    });
}

#[test]
fn copies_come_back_whole_and_in_the_order_of_the_plan() {
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
        assert_eq!(ports.read(|s| s.pending(&mailbox("coder", None), 9))[0].1, copies[3]);
    });
}

#[test]
fn an_erased_message_is_in_no_mailbox() {
    each(|ports| {
        let coder = mailbox("coder", None);
        for id in ["a", "b", "c"] {
            post_to(ports, id, vec![delivery(id, coder.clone())]);
        }
        ports.change(vec![Change::Erase(message_id("a"))]);
        assert_eq!(pending(ports, &coder, 1), ["b"], "and takes no place in a page");
        assert_eq!(ports.read(|s| s.deliveries(&message_id("a"))), []);
    });
}
