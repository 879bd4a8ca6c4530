//! Taking mail out under load and with consumers that die: nothing lost, nothing twice, nothing forever.

use std::collections::BTreeSet;

use parlor_testkit::broker::Broker;
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::{Value, json};

use crate::scene::Scene;

const LOAD: u64 = 3000;
const ROUNDS: u64 = 50;
/// The lease of one who dies: it runs out while the next one asks again and again.
const SHORT: u64 = 3;
const LONG: u64 = 600_000;

async fn connect(scene: &Scene) -> Broker {
    Broker::connect(scene.url(), scene.admin.token()).await.unwrap()
}

fn numbers(mail: &[Value]) -> Vec<u64> {
    mail.iter().map(|copy| copy["payload"]["n"].as_u64().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn three_thousand_messages_sent_while_others_receive_are_there_once() {
    let scene = Scene::start().await;
    let mut sender = connect(&scene).await;
    sender.create_agent("writer", &[]).await.unwrap();
    sender.create_agent("reader", &[]).await.unwrap();
    let (finish, finished) = tokio::sync::watch::channel(false);
    let mut receivers = tokio::task::JoinSet::new();
    for _ in 0..2 {
        let (mut broker, finished) = (connect(&scene).await, finished.clone());
        receivers.spawn(async move {
            let mut got = Vec::new();
            loop {
                let all_sent = *finished.borrow();
                let mail = broker.receive("reader").await.unwrap();
                let batch = numbers(&mail);
                assert!(batch.is_sorted(), "oldest first: {batch:?}");
                if all_sent && batch.is_empty() {
                    return got;
                }
                got.extend(batch);
            }
        });
    }
    for n in 0..LOAD {
        let frame = json!({ "type": "msg.send", "from": "writer", "to": "reader", "payload": { "n": n } });
        sender.feed(&frame).await.unwrap();
        if n % 100 == 99 {
            sender.flush().await.unwrap();
            for _ in 0..100 {
                let told = sender.frame(TEST_TIMEOUT).await.unwrap();
                assert_eq!(told["message"]["delivered"], true, "{told}");
            }
        }
    }
    finish.send_replace(true);
    let mut got = Vec::new();
    while let Some(part) = receivers.join_next().await {
        got.extend(part.unwrap());
    }
    got.sort_unstable();
    assert_eq!(got, (0..LOAD).collect::<Vec<_>>(), "none lost, none twice");
    scene.ends_well().await;
}

/// A mailbox of one of the agent's sessions.
struct Desk<'a> {
    scene: &'a Scene,
    session: &'static str,
}

impl Desk<'_> {
    fn frame(&self, lease: u64) -> Value {
        let session = self.session;
        json!({ "type": "msg.session.receive", "agentId": "worker", "sessionId": session, "lease": lease })
    }

    async fn lease(&self, broker: &mut Broker, lease: u64) -> Vec<Value> {
        let told = broker.ok(self.frame(lease)).await.unwrap();
        told["messages"].as_array().unwrap().clone()
    }

    /// Asks until there is mail.
    async fn lease_some(&self, broker: &mut Broker, lease: u64) -> Vec<Value> {
        let some = async {
            loop {
                let mail = self.lease(broker, lease).await;
                if !mail.is_empty() {
                    return mail;
                }
            }
        };
        tokio::time::timeout(TEST_TIMEOUT, some).await.expect("mail comes again when its lease is over")
    }

    /// A consumer that takes what there is and dies before it acknowledged.
    async fn take_and_die(&self) -> Vec<Value> {
        let mut broker = connect(self.scene).await;
        self.lease_some(&mut broker, SHORT).await
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
async fn what_a_consumer_took_and_did_not_acknowledge_comes_again_and_afterwards_never() {
    let scene = Scene::start().await;
    let mut broker = worker(&scene).await;
    let (one, two) = (Desk { scene: &scene, session: "one" }, Desk { scene: &scene, session: "two" });
    let mut handled = BTreeSet::new();
    let mut deaths = 0;
    for round in 0..ROUNDS {
        for part in 0..2 {
            broker.route("source", "jobs/build", json!({ "n": round * 2 + part })).await.unwrap();
        }
        let expected = [round * 2, round * 2 + 1];
        for attempt in 1..=4 {
            let taken = one.take_and_die().await;
            deaths += 1;
            assert_eq!(numbers(&taken), expected, "round {round}, attempt {attempt}");
            for copy in &taken {
                assert_eq!((&copy["attempts"], &copy["status"]), (&json!(attempt), &json!("leased")));
            }
        }
        let taken = one.lease_some(&mut broker, LONG).await;
        assert_eq!((numbers(&taken), &taken[0]["attempts"]), (expected.to_vec(), &json!(5)));
        assert_eq!(one.acknowledge(&mut broker, &taken[..1]).await, 1);
        assert_eq!(
            one.acknowledge(&mut broker, &taken).await,
            1,
            "what was acknowledged is not counted again"
        );
        assert!(numbers(&taken).into_iter().all(|n| handled.insert(n)), "nothing is handled twice");
        // The other session's copy is its own.
        let other = two.lease(&mut broker, LONG).await;
        assert_eq!((numbers(&other), &other[0]["attempts"]), (expected.to_vec(), &json!(1)));
        assert_eq!(two.acknowledge(&mut broker, &other).await, 2);
    }
    assert_eq!((deaths, handled.len() as u64), (200, ROUNDS * 2));
    for desk in [&one, &two] {
        assert!(desk.lease(&mut broker, SHORT).await.is_empty(), "nothing comes after its acknowledgement");
        let session = desk.session;
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
async fn what_is_never_acknowledged_is_a_dead_letter_after_five_leases() {
    let scene = Scene::start().await;
    let mut broker = worker(&scene).await;
    let one = Desk { scene: &scene, session: "one" };
    let routed = broker.route("source", "jobs/build", json!({ "n": 1 })).await.unwrap();
    let mut taken = Vec::new();
    for attempt in 1..=5 {
        taken = one.take_and_die().await;
        assert_eq!(taken[0]["attempts"], attempt);
    }
    let buried = async {
        loop {
            assert!(one.lease(&mut broker, SHORT).await.is_empty(), "not a sixth time");
            let told = broker.ok(json!({ "type": "msg.unmatched" })).await.unwrap();
            if let Some(letter) = told["messages"].get(0) {
                return letter.clone();
            }
        }
    };
    let letter = tokio::time::timeout(TEST_TIMEOUT, buried).await.unwrap();
    assert_eq!((&letter["id"], &letter["reason"]), (&routed["id"], &json!("not_acknowledged")));
    assert_eq!(letter["_deliveredTo"], "worker:one");
    assert_eq!(one.acknowledge(&mut broker, &taken).await, 0, "it is too late");
    // The same message in the other session and with the agent waits as before.
    let two = Desk { scene: &scene, session: "two" };
    assert_eq!(numbers(&two.lease(&mut broker, LONG).await), [1]);
    assert_eq!(numbers(&broker.receive("worker").await.unwrap()), [1]);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_outlives_its_connection_and_a_restart_and_keeps_others_out() {
    let mut scene = Scene::start().await;
    let mut broker = worker(&scene).await;
    broker.route("source", "jobs/build", json!({ "n": 1 })).await.unwrap();
    let one = Desk { scene: &scene, session: "one" };
    let taken = one.lease(&mut broker, LONG).await;
    assert_eq!(numbers(&taken), [1]);
    assert!(one.lease(&mut connect(&scene).await, LONG).await.is_empty(), "it is out");
    drop(broker);
    scene.crash_and_restart().await;
    let one = Desk { scene: &scene, session: "one" };
    let mut broker = connect(&scene).await;
    assert!(one.lease(&mut broker, LONG).await.is_empty(), "it is still out");
    let twice = [taken.clone(), taken].concat();
    assert_eq!(one.acknowledge(&mut broker, &twice).await, 1, "whoever reads the mailbox may acknowledge");
    scene.ends_well().await;
}
