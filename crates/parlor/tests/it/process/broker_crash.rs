//! What the broker said `ok` to is in the mailbox, once, whatever moment the hub is killed at.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use parlor_testkit::broker::Broker;
use parlor_testkit::faultfs::FaultyDirectory;
use parlor_testkit::hub::{Hub, HubCommand};
use parlor_testkit::rng::Rng;
use parlor_testkit::seed;
use parlor_testkit::socket::{SocketEvent, TEST_TIMEOUT};
use serde_json::{Value, json};

const PARLOR: &str = env!("CARGO_BIN_EXE_parlor");
/// Messages under way at once: enough that commits are shared and a kill meets many of them.
const UNDER_WAY: usize = 32;

#[tokio::test(flavor = "multi_thread")]
async fn routed_messages_survive_kills_once() {
    let data = tempfile::tempdir().unwrap();
    let mut crash = Crash::prepare(HubCommand::process(PARLOR, data.path())).await;
    for _ in 0..12 {
        crash.round(|_| {}).await;
    }
    assert!(crash.told >= 12, "only {} acknowledged", crash.told);
}

#[tokio::test(flavor = "multi_thread")]
async fn routed_messages_survive_power_losses_once() {
    let Some(directory) = FaultyDirectory::new_or_skip() else { return };
    let mut crash = Crash::prepare(HubCommand::process(PARLOR, &directory.file("data"))).await;
    for round in 0..6 {
        let lose_power = |rng: &mut Rng| match round % 2 {
            0 => directory.disk.drop_unsynced(),
            _ => directory.disk.tear_unsynced(rng.draw()),
        };
        crash.round(lose_power).await;
    }
    assert!(crash.told >= 6, "only {} acknowledged", crash.told);
}

struct Crash {
    command: HubCommand,
    token: String,
    hub: Option<Hub>,
    rng: Rng,
    /// The number of the next message.
    next: u64,
    /// How many were answered with `ok`.
    told: usize,
    /// What was taken out of each mailbox so far.
    taken: BTreeMap<&'static str, BTreeSet<u64>>,
}

fn route(number: u64) -> Value {
    json!({
        "type": "msg.route", "from": "bridge", "path": "jobs/build", "payload": { "n": number },
        "source": "ci", "externalId": format!("job-{number}"), "reqId": number + 1,
    })
}

impl Crash {
    async fn prepare(command: HubCommand) -> Self {
        let hub = command.start().await.unwrap();
        let token = hub.admin().await.unwrap().token().to_owned();
        let mut broker = Broker::connect(hub.url(), &token).await.unwrap();
        broker.create_agent("worker", &[]).await.unwrap();
        let frame = json!({ "type": "msg.session.sub.add", "agentId": "worker", "sessionId": "jobs", "pattern": "jobs/**" });
        broker.ok(frame).await.unwrap();
        Self { command, token, hub: Some(hub), rng: seed::rng(), next: 0, told: 0, taken: BTreeMap::new() }
    }

    async fn connect(&self) -> Broker {
        let hub = self.hub.as_ref().expect("a round begins with a hub");
        Broker::connect(hub.url(), &self.token).await.unwrap()
    }

    /// Routes, kills, starts again, and takes everything out.
    async fn round(&mut self, after_the_kill: impl FnOnce(&mut Rng)) {
        let first = self.next;
        let told = self.route_and_kill().await;
        self.told += told.len();
        let mut rng = Rng::new(self.rng.draw());
        after_the_kill(&mut rng);
        self.hub = Some(self.command.start().await.unwrap());
        let mut broker = self.connect().await;
        // Half of the rounds look at once; in the others the sender comes back first, with what has no answer.
        let resent = rng.below(2) == 0;
        if resent {
            for number in (first..self.next).filter(|number| !told.contains(number)) {
                let mut frame = route(number);
                frame.as_object_mut().unwrap().remove("reqId");
                broker.ok(frame).await.unwrap();
            }
        }
        let sent: BTreeSet<u64> = (first..self.next).collect();
        for mailbox in ["agent", "session"] {
            let found = drain(&mut broker, mailbox).await;
            let once: BTreeSet<u64> = found.iter().copied().collect();
            assert_eq!(once.len(), found.len(), "{mailbox}: something is there twice: {found:?}");
            assert!(told.is_subset(&once), "{mailbox}: lost {:?}", told.difference(&once));
            assert!(once.is_subset(&sent), "{mailbox}: from before: {:?}", once.difference(&sent));
            assert!(!resent || once == sent, "{mailbox}: lost {:?}", sent.difference(&once));
            let taken = self.taken.entry(mailbox).or_default();
            assert!(once.into_iter().all(|number| taken.insert(number)), "{mailbox}: taken out twice");
        }
    }

    /// The messages that were answered with `ok` before the end.
    async fn route_and_kill(&mut self) -> BTreeSet<u64> {
        let mut broker = self.connect().await;
        let mut told = BTreeSet::new();
        let enough = 1 + self.rng.below(300) as usize;
        let mut under_way = 0;
        while told.len() < enough {
            while under_way < UNDER_WAY {
                broker.feed(&route(self.next)).await.unwrap();
                self.next += 1;
                under_way += 1;
            }
            broker.flush().await.unwrap();
            let answer = broker.frame(TEST_TIMEOUT).await.unwrap();
            told.insert(acknowledged(&answer));
            under_way -= 1;
        }
        // A kill right after an answer would always meet the hub at the same step.
        tokio::time::sleep(Duration::from_micros(self.rng.below(10_000))).await;
        let mut hub = self.hub.take().expect("a round begins with a hub");
        hub.crash().await.unwrap();
        assert!(!hub.log().contains("panicked"), "{}", hub.log());
        // What it said before it died counts too.
        while let Ok(SocketEvent::Frame(answer)) = broker.next(TEST_TIMEOUT).await {
            told.insert(acknowledged(&answer));
        }
        told
    }
}

fn acknowledged(answer: &Value) -> u64 {
    assert_eq!((&answer["type"], &answer["delivered"]), (&json!("msg.route.ok"), &json!(true)), "{answer}");
    answer["payload"]["n"].as_u64().unwrap()
}

/// Takes everything out: of the agent's mailbox at once, of the session's on leases with acknowledgements.
async fn drain(broker: &mut Broker, mailbox: &str) -> Vec<u64> {
    let mut found = Vec::new();
    loop {
        let frame = match mailbox {
            "agent" => json!({ "type": "msg.receive", "agentId": "worker" }),
            _ => {
                json!({ "type": "msg.session.receive", "agentId": "worker", "sessionId": "jobs", "lease": 600_000 })
            }
        };
        let reply = broker.ok(frame).await.unwrap();
        let mail = reply["messages"].as_array().unwrap();
        if mail.is_empty() {
            return found;
        }
        if mailbox == "session" {
            let ids: Vec<&Value> = mail.iter().map(|copy| &copy["id"]).collect();
            let frame =
                json!({ "type": "msg.ack", "agentId": "worker", "sessionId": "jobs", "messageIds": ids });
            assert_eq!(broker.ok(frame).await.unwrap()["acknowledged"], ids.len());
        }
        found.extend(mail.iter().map(|copy| copy["payload"]["n"].as_u64().unwrap()));
    }
}
