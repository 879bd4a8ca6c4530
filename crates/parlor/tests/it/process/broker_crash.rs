//! Tests that a routed message with an `ok` reply is in the mailbox exactly once, whenever the hub is killed.

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
/// Number of messages in flight: enough for shared commits, and for a kill to affect several messages.
const MAX_IN_FLIGHT: usize = 32;

#[tokio::test(flavor = "multi_thread")]
async fn routed_messages_survive_kills_once() {
    let data = tempfile::tempdir().unwrap();
    let mut crash = Crash::prepare(HubCommand::process(PARLOR, data.path())).await;
    for _ in 0..12 {
        crash.round(|_| {}).await;
    }
    assert!(crash.acknowledged >= 12, "only {} acknowledged", crash.acknowledged);
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
    assert!(crash.acknowledged >= 6, "only {} acknowledged", crash.acknowledged);
}

struct Crash {
    command: HubCommand,
    token: String,
    hub: Option<Hub>,
    rng: Rng,
    /// Number of the next message.
    next: u64,
    /// Number of messages that were answered with `ok`.
    acknowledged: usize,
    /// Messages received from each mailbox so far.
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
        Self {
            command,
            token,
            hub: Some(hub),
            rng: seed::rng(),
            next: 0,
            acknowledged: 0,
            taken: BTreeMap::new(),
        }
    }

    async fn connect(&self) -> Broker {
        let hub = self.hub.as_ref().expect("a round starts with a running hub");
        Broker::connect(hub.url(), &self.token).await.unwrap()
    }

    /// Routes messages, kills the hub, restarts it, and drains the mailboxes.
    async fn round(&mut self, after_the_kill: impl FnOnce(&mut Rng)) {
        let first = self.next;
        let acknowledged = self.route_and_kill().await;
        self.acknowledged += acknowledged.len();
        let mut rng = Rng::new(self.rng.draw());
        after_the_kill(&mut rng);
        self.hub = Some(self.command.start().await.unwrap());
        let mut broker = self.connect().await;
        // In half of the rounds, the sender first resends the messages without a reply.
        let resent = rng.below(2) == 0;
        if resent {
            for number in (first..self.next).filter(|number| !acknowledged.contains(number)) {
                let mut frame = route(number);
                frame.as_object_mut().unwrap().remove("reqId");
                broker.ok(frame).await.unwrap();
            }
        }
        let sent: BTreeSet<u64> = (first..self.next).collect();
        for mailbox in ["agent", "session"] {
            let found = drain(&mut broker, mailbox).await;
            let once: BTreeSet<u64> = found.iter().copied().collect();
            assert_eq!(once.len(), found.len(), "{mailbox}: duplicates in {found:?}");
            assert!(acknowledged.is_subset(&once), "{mailbox}: lost {:?}", acknowledged.difference(&once));
            assert!(once.is_subset(&sent), "{mailbox}: from an earlier round: {:?}", once.difference(&sent));
            assert!(!resent || once == sent, "{mailbox}: lost {:?}", sent.difference(&once));
            let taken = self.taken.entry(mailbox).or_default();
            assert!(once.into_iter().all(|number| taken.insert(number)), "{mailbox}: received twice");
        }
    }

    /// Routes messages and kills the hub. Returns the messages that were answered with `ok`.
    async fn route_and_kill(&mut self) -> BTreeSet<u64> {
        let mut broker = self.connect().await;
        let mut acknowledged = BTreeSet::new();
        let target = 1 + self.rng.below(300) as usize;
        let mut in_flight = 0;
        while acknowledged.len() < target {
            while in_flight < MAX_IN_FLIGHT {
                broker.feed(&route(self.next)).await.unwrap();
                self.next += 1;
                in_flight += 1;
            }
            broker.flush().await.unwrap();
            let reply = broker.frame(TEST_TIMEOUT).await.unwrap();
            acknowledged.insert(acknowledged_number(&reply));
            in_flight -= 1;
        }
        // The random delay matters: a kill right after a reply would always hit the hub at the same step.
        tokio::time::sleep(Duration::from_micros(self.rng.below(10_000))).await;
        let mut hub = self.hub.take().expect("a round starts with a running hub");
        hub.crash().await.unwrap();
        assert!(!hub.log().contains("panicked"), "{}", hub.log());
        // Replies that were sent before the kill count too.
        while let Ok(SocketEvent::Frame(reply)) = broker.next(TEST_TIMEOUT).await {
            acknowledged.insert(acknowledged_number(&reply));
        }
        acknowledged
    }
}

fn acknowledged_number(reply: &Value) -> u64 {
    assert_eq!((&reply["type"], &reply["delivered"]), (&json!("msg.route.ok"), &json!(true)), "{reply}");
    reply["payload"]["n"].as_u64().unwrap()
}

/// Drains a mailbox: the agent's directly, the session's with leases and acknowledgements.
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
