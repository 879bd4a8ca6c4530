//! Tests with a failing or full disk: only messages on disk are acknowledged, and reads keep working.

use std::time::Instant;

use anyhow::Result;
use parlor_testkit::agentim::{Ack, Client};
use parlor_testkit::faultfs::{Errno, FaultFs, FaultyDirectory};
use parlor_testkit::hub::{Hub, HubCommand};
use parlor_testkit::oracle::Oracle;
use parlor_testkit::rest::RestClient;
use parlor_testkit::socket::{SocketEvent, TEST_TIMEOUT};
use reqwest::Method;
use serde_json::json;

const PARLOR: &str = env!("CARGO_BIN_EXE_parlor");

#[tokio::test(flavor = "multi_thread")]
async fn after_a_failed_fsync_nothing_is_acknowledged_until_a_restart() {
    let Some(directory) = FaultyDirectory::new_or_skip() else { return };
    let mut scene = Scene::start(&directory).await.unwrap();
    assert_eq!(scene.say().await.unwrap(), Outcome::Acknowledged);
    assert_eq!(scene.admin.health().await.unwrap(), 200);

    directory.disk.fail_fsyncs(Errno::EIO, 0);
    assert_eq!(scene.say().await.unwrap(), Outcome::NotAcknowledged);
    assert!(directory.disk.counters().failed_fsyncs > 0);
    assert_eq!(scene.admin.health().await.unwrap(), 503);
    scene.check_history().await.unwrap();

    // The next fsync would succeed, but the data of the failed one is lost, so the hub must not acknowledge.
    directory.disk.heal();
    for _ in 0..3 {
        assert_eq!(scene.say().await.unwrap(), Outcome::NotAcknowledged);
    }
    let path = format!("/api/rooms/{}/messages", scene.room);
    let posted = scene.admin.post(&path, json!({ "content": "by REST" })).await.unwrap();
    assert_eq!((posted.status.as_u16(), &posted.body["code"]), (503, &json!("UNAVAILABLE")), "{posted:?}");
    assert_eq!(scene.admin.health().await.unwrap(), 503);
    scene.check_history().await.unwrap();

    scene.lose_power_and_restart().await.unwrap();
    scene.check_history().await.unwrap();
    assert_eq!(scene.admin.health().await.unwrap(), 200);
    assert_eq!(scene.say().await.unwrap(), Outcome::Acknowledged);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_causes_no_wrong_acknowledgement_and_reads_keep_working() {
    let Some(directory) = FaultyDirectory::new_or_skip() else { return };
    let mut scene = Scene::start(&directory).await.unwrap();
    directory.disk.capacity(directory.disk.used() + 200_000);
    let mut acknowledged = 0;
    while scene.say().await.unwrap() == Outcome::Acknowledged {
        acknowledged += 1;
        assert!(acknowledged < 2_000, "the disk does not fill up");
    }
    assert!(directory.disk.counters().failed_writes > 0);
    assert_eq!(scene.admin.health().await.unwrap(), 503);
    scene.check_history().await.unwrap();

    // Once there is free space, the hub recovers without a restart, and acknowledged messages are durable
    // again.
    directory.disk.heal();
    let healed = Instant::now();
    while scene.say().await.unwrap() == Outcome::NotAcknowledged {
        assert!(healed.elapsed() < TEST_TIMEOUT, "the hub does not recover");
    }
    assert_eq!(scene.admin.health().await.unwrap(), 200);
    scene.lose_power_and_restart().await.unwrap();
    scene.check_history().await.unwrap();
    assert_eq!(scene.admin.health().await.unwrap(), 200);
    assert_eq!(scene.say().await.unwrap(), Outcome::Acknowledged);
    assert!(acknowledged > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_at_each_write_and_each_fsync_causes_no_wrong_acknowledgement() {
    let Some(directory) = FaultyDirectory::new_or_skip() else { return };
    let mut scene = Scene::start(&directory).await.unwrap();
    type Inject = fn(&FaultFs, Errno, u64);
    for inject in [FaultFs::fail_fsyncs as Inject, FaultFs::fail_writes as Inject] {
        for errno in [Errno::EIO, Errno::ENOSPC] {
            for after in 0..4 {
                inject(&directory.disk, errno, after);
                let mut refused = 0;
                for _ in 0..8 {
                    refused += u32::from(scene.say().await.unwrap() == Outcome::NotAcknowledged);
                }
                assert!(refused > 0, "errno {} after {after} was not noticed", errno.code());
                scene.check_history().await.unwrap();
                scene.lose_power_and_restart().await.unwrap();
                scene.check_history().await.unwrap();
                assert_eq!(scene.say().await.unwrap(), Outcome::Acknowledged, "after a restart");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acknowledged_upload_is_intact_after_a_power_loss() {
    let Some(directory) = FaultyDirectory::new_or_skip() else { return };
    let mut scene = Scene::start(&directory).await.unwrap();
    let (mut kept, mut refused) = (Vec::new(), 0);
    type Inject = fn(&FaultFs, Errno, u64);
    for inject in [FaultFs::fail_fsyncs as Inject, FaultFs::fail_writes as Inject] {
        for after in 0..6 {
            inject(&directory.disk, Errno::EIO, after);
            for n in 0..3 {
                let content = format!("file {n} after {after} of {refused} {}", "x".repeat(200_000));
                let answer = scene.admin.upload("a.txt", content.as_bytes()).await.unwrap();
                match answer.status.as_u16() {
                    200 => kept.push((answer.data().unwrap(), content)),
                    status => {
                        assert_eq!(status, 503, "{answer:?}");
                        refused += 1;
                    }
                }
            }
            scene.lose_power_and_restart().await.unwrap();
            for (file, content) in &kept {
                let url = file["url"].as_str().unwrap();
                let found = scene.admin.request(Method::GET, url).send().await.unwrap();
                assert_eq!((found.status().as_u16(), found.text().await.unwrap()), (200, content.clone()));
            }
        }
    }
    assert!(!kept.is_empty() && refused > 0, "{} kept, {refused} refused", kept.len());
}

#[derive(Debug, PartialEq)]
enum Outcome {
    Acknowledged,
    /// The message was refused, or the connection was closed.
    NotAcknowledged,
}

/// A hub on a faulty disk, and a client that posts in a room.
struct Scene<'a> {
    directory: &'a FaultyDirectory,
    command: HubCommand,
    hub: Hub,
    admin: RestClient,
    client: Client,
    room: String,
    oracle: Oracle,
    sent: u32,
}

impl<'a> Scene<'a> {
    async fn start(directory: &'a FaultyDirectory) -> Result<Self> {
        let command = HubCommand::process(PARLOR, &directory.file("data"));
        let hub = command.start().await?;
        let admin = hub.admin().await?;
        let room = admin.make_room("the room", &[]).await?;
        let client = Client::connect(&admin).await?;
        Ok(Self { directory, command, hub, admin, client, room, oracle: Oracle::default(), sent: 0 })
    }

    async fn say(&mut self) -> Result<Outcome> {
        self.sent += 1;
        let (id, content) = (format!("m{}", self.sent), format!("text {} {}", self.sent, "x".repeat(500)));
        self.oracle.sending("admin", &self.room, &id, &content);
        self.client.say(&self.room, &content, &id).await?;
        loop {
            match self.client.next(TEST_TIMEOUT).await? {
                SocketEvent::Frame(frame) if frame["type"] == "server:error" => {
                    let error = (&frame["code"], &frame["clientMessageId"]);
                    assert_eq!(error, (&json!("INTERNAL_ERROR"), &json!(id)), "{frame}");
                    return Ok(Outcome::NotAcknowledged);
                }
                SocketEvent::Frame(frame) => {
                    let Some(ack) = Ack::of(&frame)?.filter(|ack| ack.client_message_id == id) else {
                        continue;
                    };
                    self.oracle.acknowledged(ack);
                    return Ok(Outcome::Acknowledged);
                }
                SocketEvent::Closed(_) => {
                    self.client = Client::connect(&self.admin).await?;
                    return Ok(Outcome::NotAcknowledged);
                }
            }
        }
    }

    async fn check_history(&self) -> Result<()> {
        let history = self.admin.history(&self.room).await?;
        let violations = [self.oracle.check(&self.room, &history), self.oracle.check_acks()].concat();
        anyhow::ensure!(violations.is_empty(), "{violations:?}");
        Ok(())
    }

    async fn lose_power_and_restart(&mut self) -> Result<()> {
        self.hub.crash().await?;
        self.directory.disk.heal();
        self.directory.disk.drop_unsynced();
        self.hub = self.command.start().await?;
        self.admin = self.hub.admin().await?;
        self.client = Client::connect(&self.admin).await?;
        Ok(())
    }
}
