//! Mailbox leases under load and with crashing consumers: no message is lost, duplicated, or leased forever.

use std::collections::BTreeSet;

use parlor_testkit::broker::Broker;
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::{Value, json};

use crate::scene::Scene;

/// Number of messages of the load test.
const LOAD: u64 = 3000;
const ROUNDS: u64 = 50;
/// Lease of a crashing consumer, in milliseconds: expires while the next consumer polls.
const SHORT_LEASE_MS: u64 = 3;
/// Lease that does not expire during a test, in milliseconds.
const LONG_LEASE_MS: u64 = 600_000;

async fn connect(scene: &Scene) -> Broker {
    Broker::connect(scene.url(), scene.admin.token()).await.unwrap()
}

fn numbers(mail: &[Value]) -> Vec<u64> {
    mail.iter().map(|copy| copy["payload"]["n"].as_u64().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_receivers_get_each_of_3000_messages_once() {
    let scene = Scene::start().await;
    let mut sender = connect(&scene).await;
    sender.create_agent("writer", &[]).await.unwrap();
    sender.create_agent("reader", &[]).await.unwrap();
    let (finish, finished) = tokio::sync::watch::channel(false);
    let mut receivers = tokio::task::JoinSet::new();
    for _ in 0..2 {
        let (mut broker, finished) = (connect(&scene).await, finished.clone());
        receivers.spawn(async move {
            let mut received = Vec::new();
            loop {
                let all_sent = *finished.borrow();
                let mail = broker.receive("reader").await.unwrap();
                let batch = numbers(&mail);
                assert!(batch.is_sorted(), "oldest first: {batch:?}");
                if all_sent && batch.is_empty() {
                    return received;
                }
                received.extend(batch);
            }
        });
    }
    for n in 0..LOAD {
        let frame = json!({ "type": "msg.send", "from": "writer", "to": "reader", "payload": { "n": n } });
        sender.feed(&frame).await.unwrap();
        if n % 100 == 99 {
            sender.flush().await.unwrap();
            for _ in 0..100 {
                let reply = sender.frame(TEST_TIMEOUT).await.unwrap();
                assert_eq!(reply["message"]["delivered"], true, "{reply}");
            }
        }
    }
    finish.send_replace(true);
    let mut received = Vec::new();
    while let Some(part) = receivers.join_next().await {
        received.extend(part.unwrap());
    }
    received.sort_unstable();
    assert_eq!(received, (0..LOAD).collect::<Vec<_>>(), "no message is lost or duplicated");
    scene.ends_well().await;
}

/// Mailbox of one session of the agent `worker`.
struct SessionMailbox<'a> {
    scene: &'a Scene,
    session: &'static str,
}

impl SessionMailbox<'_> {
    fn frame(&self, lease: u64) -> Value {
        let session = self.session;
        json!({ "type": "msg.session.receive", "agentId": "worker", "sessionId": session, "lease": lease })
    }

    async fn lease(&self, broker: &mut Broker, lease: u64) -> Vec<Value> {
        let reply = broker.ok(self.frame(lease)).await.unwrap();
        reply["messages"].as_array().unwrap().clone()
    }

    /// Polls until there is mail.
    async fn lease_some(&self, broker: &mut Broker, lease: u64) -> Vec<Value> {
        let poll = async {
            loop {
                let mail = self.lease(broker, lease).await;
                if !mail.is_empty() {
                    return mail;
                }
            }
        };
        tokio::time::timeout(TEST_TIMEOUT, poll)
            .await
            .expect("mail is available again after its lease has expired")
    }

    /// A consumer that leases all mail and disconnects without acknowledging it.
    async fn lease_and_crash(&self) -> Vec<Value> {
        let mut broker = connect(self.scene).await;
        self.lease_some(&mut broker, SHORT_LEASE_MS).await
    }

    async fn acknowledge(&self, broker: &mut Broker, mail: &[Value]) -> u64 {
        let ids: Vec<&Value> = mail.iter().map(|copy| &copy["id"]).collect();
        let session = self.session;
        let frame =
            json!({ "type": "msg.ack", "agentId": "worker", "sessionId": session, "messageIds": ids });
        broker.ok(frame).await.unwrap()["acknowledged"].as_u64().unwrap()
    }
}

async fn worker(scene: &Scene) -> Broker {
    let mut broker = connect(scene).await;
    broker.create_agent("worker", &[]).await.unwrap();
    for session in ["one", "two"] {
        let frame = json!({ "type": "msg.session.sub.add", "agentId": "worker", "sessionId": session, "pattern": "jobs/**" });
        broker.ok(frame).await.unwrap();
    }
    broker
}

#[tokio::test(flavor = "multi_thread")]
async fn unacknowledged_mail_is_redelivered_and_acknowledged_mail_is_not() {
    let scene = Scene::start().await;
    let mut broker = worker(&scene).await;
    let (first, second) =
        (SessionMailbox { scene: &scene, session: "one" }, SessionMailbox { scene: &scene, session: "two" });
    let mut handled = BTreeSet::new();
    let mut crashes = 0;
    for round in 0..ROUNDS {
        for part in 0..2 {
            broker.route("source", "jobs/build", json!({ "n": round * 2 + part })).await.unwrap();
        }
        let expected = [round * 2, round * 2 + 1];
        for attempt in 1..=4 {
            let leased = first.lease_and_crash().await;
            crashes += 1;
            assert_eq!(numbers(&leased), expected, "round {round}, attempt {attempt}");
            for copy in &leased {
                assert_eq!((&copy["attempts"], &copy["status"]), (&json!(attempt), &json!("leased")));
            }
        }
        let leased = first.lease_some(&mut broker, LONG_LEASE_MS).await;
        assert_eq!((numbers(&leased), &leased[0]["attempts"]), (expected.to_vec(), &json!(5)));
        assert_eq!(first.acknowledge(&mut broker, &leased[..1]).await, 1);
        assert_eq!(
            first.acknowledge(&mut broker, &leased).await,
            1,
            "an acknowledged message is not counted again"
        );
        assert!(numbers(&leased).into_iter().all(|n| handled.insert(n)), "no message is handled twice");
        // The copy of the other session has its own lease.
        let other_copies = second.lease(&mut broker, LONG_LEASE_MS).await;
        assert_eq!((numbers(&other_copies), &other_copies[0]["attempts"]), (expected.to_vec(), &json!(1)));
        assert_eq!(second.acknowledge(&mut broker, &other_copies).await, 2);
    }
    assert_eq!((crashes, handled.len() as u64), (200, ROUNDS * 2));
    for mailbox in [&first, &second] {
        assert!(
            mailbox.lease(&mut broker, SHORT_LEASE_MS).await.is_empty(),
            "acknowledged mail is not delivered again"
        );
        let session = mailbox.session;
        let frame = json!({ "type": "msg.session.history", "agentId": "worker", "sessionId": session });
        let history = broker.ok(frame).await.unwrap();
        let history = history["messages"].as_array().unwrap();
        assert_eq!(history.len() as u64, ROUNDS * 2);
        assert!(history.iter().all(|copy| copy["status"] == "delivered"), "{history:?}");
    }
    let letters = broker.ok(json!({ "type": "msg.unmatched" })).await.unwrap();
    assert_eq!(letters["messages"], json!([]));
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unacknowledged_mail_becomes_a_dead_letter_after_five_leases() {
    let scene = Scene::start().await;
    let mut broker = worker(&scene).await;
    let first = SessionMailbox { scene: &scene, session: "one" };
    let routed = broker.route("source", "jobs/build", json!({ "n": 1 })).await.unwrap();
    let mut leased = Vec::new();
    for attempt in 1..=5 {
        leased = first.lease_and_crash().await;
        assert_eq!(leased[0]["attempts"], attempt);
    }
    let dead_letter = async {
        loop {
            assert!(
                first.lease(&mut broker, SHORT_LEASE_MS).await.is_empty(),
                "the message is not leased a sixth time"
            );
            let reply = broker.ok(json!({ "type": "msg.unmatched" })).await.unwrap();
            if let Some(letter) = reply["messages"].get(0) {
                return letter.clone();
            }
        }
    };
    let letter = tokio::time::timeout(TEST_TIMEOUT, dead_letter).await.unwrap();
    assert_eq!((&letter["id"], &letter["reason"]), (&routed["id"], &json!("not_acknowledged")));
    assert_eq!(letter["_deliveredTo"], "worker:one");
    assert_eq!(first.acknowledge(&mut broker, &leased).await, 0, "a dead letter cannot be acknowledged");
    // The copies of the other session and of the agent are still pending.
    let second = SessionMailbox { scene: &scene, session: "two" };
    assert_eq!(numbers(&second.lease(&mut broker, LONG_LEASE_MS).await), [1]);
    assert_eq!(numbers(&broker.receive("worker").await.unwrap()), [1]);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_survives_disconnect_and_restart_and_excludes_other_consumers() {
    let mut scene = Scene::start().await;
    let mut broker = worker(&scene).await;
    broker.route("source", "jobs/build", json!({ "n": 1 })).await.unwrap();
    let mailbox = SessionMailbox { scene: &scene, session: "one" };
    let leased = mailbox.lease(&mut broker, LONG_LEASE_MS).await;
    assert_eq!(numbers(&leased), [1]);
    assert!(
        mailbox.lease(&mut connect(&scene).await, LONG_LEASE_MS).await.is_empty(),
        "the message is leased to another consumer"
    );
    drop(broker);
    scene.crash_and_restart().await;
    let mailbox = SessionMailbox { scene: &scene, session: "one" };
    let mut broker = connect(&scene).await;
    assert!(mailbox.lease(&mut broker, LONG_LEASE_MS).await.is_empty(), "the lease survives the restart");
    let repeated = [leased.clone(), leased].concat();
    assert_eq!(
        mailbox.acknowledge(&mut broker, &repeated).await,
        1,
        "any consumer of the mailbox may acknowledge, and a repeated id counts once"
    );
    scene.ends_well().await;
}
