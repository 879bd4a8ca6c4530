//! Crash test: concurrent writers, a hub killed at random times, and a check of all histories after each
//! restart.
//!
//! With a faulty disk under the data directory, each kill is a power loss; a kill alone keeps the page cache.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::agentim::{Ack, Client, message};
use crate::faultfs::FaultFs;
use crate::hub::{Hub, HubCommand, PASSWORD};
use crate::oracle::{Oracle, Violation};
use crate::rest::RestClient;
use crate::rng::Rng;
use crate::socket::TEST_TIMEOUT;

/// Messages in flight per writer: enough for shared commits, and for a kill to affect several messages.
const MAX_IN_FLIGHT: usize = 16;
/// Maximum random delay between the last awaited acknowledgement and the kill.
const MAX_KILL_DELAY: Duration = Duration::from_millis(30);

pub struct CrashPlan<'a> {
    pub hub: HubCommand,
    /// Disk under the data directory; if present, each kill is a power loss.
    pub disk: Option<&'a FaultFs>,
    pub rounds: u32,
    pub writers: usize,
    pub rooms: usize,
    /// Maximum number of acknowledgements after which a round ends.
    pub acks_per_round: u64,
    pub seed: u64,
}

#[derive(Debug)]
pub struct CrashReport {
    pub seed: u64,
    /// Number of rounds that were run. The test ends with the first violation.
    pub rounds: u32,
    pub acks: usize,
    /// Number of messages in the histories at the end.
    pub found: usize,
    pub violations: Vec<Violation>,
    pub slowest_start: Duration,
}

impl<'a> CrashPlan<'a> {
    /// Plans a test with eight writers in five rooms. The seed is random, or that of `PARLOR_TEST_SEED`.
    pub fn new(binary: &str, data: &Path, rounds: u32) -> Self {
        let seed = parlor_seed::seed();
        let hub = HubCommand::process(binary, data);
        Self { hub, disk: None, rounds, writers: 8, rooms: 5, acks_per_round: 400, seed }
    }

    pub fn on(self, disk: &'a FaultFs) -> Self {
        Self { disk: Some(disk), ..self }
    }

    /// Runs all rounds, or up to the first violation. An error means that the harness or the first start
    /// failed; every later failure of the hub is a violation.
    pub async fn run(self) -> Result<CrashReport> {
        let (people, rooms) = self.prepare().await.context("cannot prepare the hub")?;
        let oracle = Arc::new(Mutex::new(Oracle::default()));
        let mut rng = Rng::new(self.seed);
        let mut report = CrashReport {
            seed: self.seed,
            rounds: 0,
            acks: 0,
            found: 0,
            violations: Vec::new(),
            slowest_start: Duration::ZERO,
        };
        // One more start than kills: the last one is only for the check after the last kill.
        let mut hub = self.restart(&mut report).await;
        while let (Ok(serving), true) =
            (&mut hub, report.rounds < self.rounds && report.violations.is_empty())
        {
            report.rounds += 1;
            if let Err(stalled) = self.write_and_kill(serving, &people, &rooms, &oracle, &mut rng).await {
                report.violations.push(Violation::Unavailable { reason: format!("{stalled:#}") });
            }
            match self.disk {
                Some(disk) if report.rounds % 2 == 1 => disk.drop_unsynced(),
                Some(disk) => disk.tear_unsynced(rng.draw()),
                None => {}
            }
            hub = self.restart(&mut report).await;
            if let Ok(serving) = &hub {
                check(serving, &oracle, &rooms, &mut report).await;
            }
        }
        if let Err(error) = hub {
            report.violations.push(Violation::Unavailable { reason: format!("{error:#}") });
        }
        report.acks = oracle.lock().acks();
        Ok(report)
    }

    /// Creates the users and rooms with a hub that syncs, so that a hub without fsync can only lose messages.
    async fn prepare(&self) -> Result<(Vec<RestClient>, Vec<String>)> {
        let mut hub = self.hub.clone().env_remove("PARLOR_SYNCHRONOUS").start().await?;
        let admin = hub.admin().await?;
        let mut people = Vec::new();
        for writer in 0..self.writers {
            people.push(admin.make_user(&name(writer), PASSWORD).await?);
        }
        let members: Vec<&RestClient> = people.iter().collect();
        let mut rooms = Vec::new();
        for room in 0..self.rooms {
            rooms.push(admin.make_room(&format!("room {room}"), &members).await?);
        }
        hub.stop(TEST_TIMEOUT).await?;
        Ok((people, rooms))
    }

    async fn restart(&self, report: &mut CrashReport) -> Result<Hub> {
        let started = Instant::now();
        let hub = self.hub.start().await;
        report.slowest_start = report.slowest_start.max(started.elapsed());
        hub
    }

    async fn write_and_kill(
        &self,
        hub: &mut Hub,
        people: &[RestClient],
        rooms: &[String],
        oracle: &Arc<Mutex<Oracle>>,
        rng: &mut Rng,
    ) -> Result<()> {
        let (acked, mut acks) = watch::channel(0);
        let acked = Arc::new(acked);
        let mut writers = JoinSet::new();
        for (number, person) in people.iter().enumerate() {
            let writer = Writer {
                name: name(number),
                person: person.at(hub.url()),
                rooms: rooms.to_vec(),
                oracle: oracle.clone(),
                acked: acked.clone(),
                rng: Rng::new(rng.draw()),
            };
            writers.spawn(writer.run());
        }
        let target = 1 + rng.below(self.acks_per_round);
        let reached = timeout(TEST_TIMEOUT, acks.wait_for(|acks| *acks >= target)).await.is_ok();
        // The random delay matters: a kill right after an acknowledgement would always hit the hub at the
        // same step.
        tokio::time::sleep(Duration::from_micros(rng.below(MAX_KILL_DELAY.as_micros() as u64))).await;
        hub.crash().await?;
        let mut ends = Vec::new();
        while let Some(end) = writers.join_next().await {
            ends.push(format!("{:#}", end.context("a writer panicked")?));
        }
        anyhow::ensure!(
            reached,
            "only {} of {target} acknowledgements; {ends:?}\n{}",
            *acks.borrow(),
            hub.log()
        );
        Ok(())
    }
}

fn name(writer: usize) -> String {
    format!("writer-{writer}")
}

async fn check(hub: &Hub, oracle: &Mutex<Oracle>, rooms: &[String], report: &mut CrashReport) {
    report.found = 0;
    report.violations.extend(oracle.lock().check_acks());
    let histories = async {
        let admin = hub.admin().await?;
        let mut histories = Vec::new();
        for room in rooms {
            histories.push((room, admin.history(room).await?));
        }
        anyhow::Ok(histories)
    };
    match histories.await {
        Ok(histories) => {
            for (room, history) in histories {
                report.found += history.len();
                report.violations.extend(oracle.lock().check(room, &history));
            }
        }
        Err(error) => report.violations.push(Violation::Unavailable { reason: format!("{error:#}") }),
    }
}

struct Writer {
    name: String,
    person: RestClient,
    rooms: Vec<String>,
    oracle: Arc<Mutex<Oracle>>,
    /// Number of acknowledgements of all writers in this round.
    acked: Arc<watch::Sender<u64>>,
    rng: Rng,
}

impl Writer {
    /// Writes until the connection ends because the hub is killed. Returns the error that ended it.
    async fn run(mut self) -> anyhow::Error {
        match self.write().await {
            Ok(never) => match never {},
            Err(end) => end,
        }
    }

    async fn write(&mut self) -> Result<std::convert::Infallible> {
        let mut client = match Client::connect(&self.person).await {
            Ok(client) => client,
            // The hub may reject a token from before the crash.
            Err(_) => {
                let person = RestClient::sign_in(self.person.url(), &self.name, PASSWORD).await?;
                Client::connect(&person).await?
            }
        };
        // Messages without an acknowledgement are resent first, to preserve the order of the sender.
        let resent = self.oracle.lock().unanswered(&self.name);
        let mut in_flight = resent.len();
        for (room, id, content) in resent {
            client.feed(&message(&room, &content, &id)).await?;
        }
        loop {
            while in_flight < MAX_IN_FLIGHT {
                let frame = self.next_message();
                client.feed(&frame).await?;
                in_flight += 1;
            }
            client.flush().await?;
            let frame = client.frame(TEST_TIMEOUT).await?;
            if let Some(ack) = Ack::of(&frame)? {
                self.oracle.lock().acknowledged(ack);
                self.acked.send_modify(|acks| *acks += 1);
                in_flight = in_flight.saturating_sub(1);
            }
            // A refusal ends this writer, because a later message must not overtake the refused one.
            anyhow::ensure!(frame["type"] != "server:error", "refused: {frame}");
        }
    }

    fn next_message(&mut self) -> serde_json::Value {
        let id = format!("{}-{:016x}", self.name, self.rng.draw());
        let room = &self.rooms[self.rng.below(self.rooms.len() as u64) as usize];
        let content = format!("{id} says{}", " word".repeat(self.rng.below(40) as usize));
        self.oracle.lock().sending(&self.name, room, &id, &content);
        message(room, &content, &id)
    }
}
