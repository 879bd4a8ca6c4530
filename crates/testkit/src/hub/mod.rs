//! A hub for tests: it can be started, stopped, crashed, and restarted on the same data.
//!
//! Most tests run the hub inside their own process, which is fast. Tests of the process itself (signals,
//! power loss, the command line, start-up) run the `parlor` binary. Both have the same interface.

#[cfg(feature = "in-process")]
mod in_process;
mod process;
#[cfg(feature = "in-process")]
mod template;

pub(crate) use process::Capture;

use crate::rest::RestClient;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

pub const ADMIN: &str = "admin";
pub const PASSWORD: &str = "Correct-horse-7";

/// Timeout for a start, for a line of output, and for a stop without an explicit timeout.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Deployment of the hub under test.
#[derive(Clone, Debug)]
pub enum Topology {
    /// One hub on SQLite inside the test's own process, with a cheap password hash and without fsync.
    #[cfg(feature = "in-process")]
    InProcess,
    /// One hub on SQLite as a separate process of this binary.
    Process(PathBuf),
}

/// Starts a hub; can start it again on the same data after a crash.
#[derive(Clone)]
pub struct HubCommand {
    topology: Topology,
    data: PathBuf,
    environment: Vec<(String, String)>,
    /// Wall clock of the hubs that this starts in the test process.
    pub clock: TestClock,
}

/// The system clock with an offset that a test can advance.
#[derive(Clone, Debug, Default)]
pub struct TestClock {
    ahead_micros: Arc<AtomicI64>,
}

impl TestClock {
    pub fn advance(&self, by: Duration) {
        self.ahead_micros.fetch_add(by.as_micros() as i64, Ordering::Relaxed);
    }

    /// Makes this time, in microseconds since 1970, the current one. A hub on old data does not delete what
    /// has expired since.
    pub fn set(&self, micros: i64) {
        let system = UNIX_EPOCH.elapsed().map_or(0, |elapsed| elapsed.as_micros() as i64);
        self.ahead_micros.store(micros - system, Ordering::Relaxed);
    }
}

impl HubCommand {
    /// Creates the command for a hub on a free loopback port, with an admin (`ADMIN`, `PASSWORD`), without
    /// rate limits and without the welcome room.
    pub fn new(topology: Topology, data: &Path) -> Self {
        let command =
            Self { topology, data: data.to_owned(), environment: Vec::new(), clock: TestClock::default() };
        let command = command
            .env("PARLOR_ADMIN_PASSWORD", PASSWORD)
            .env("PARLOR_LIMITS", "off")
            .env("PARLOR_WELCOME", "off");
        match command.topology {
            #[cfg(feature = "in-process")]
            Topology::InProcess => command.env("PARLOR_SYNCHRONOUS", "off"),
            Topology::Process(_) => command,
        }
    }

    /// Creates the command for a hub as a separate process of this binary.
    pub fn process(binary: impl Into<PathBuf>, data: &Path) -> Self {
        Self::new(Topology::Process(binary.into()), data)
    }

    /// Sets a `PARLOR_…` variable, replacing an earlier value.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self = self.env_remove(name);
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn env_remove(mut self, name: &str) -> Self {
        self.environment.retain(|(known, _)| known != name);
        self
    }

    /// Starts the hub and returns when it accepts connections.
    pub async fn start(&self) -> Result<Hub> {
        Ok(Hub(match &self.topology {
            #[cfg(feature = "in-process")]
            Topology::InProcess => {
                let hub = in_process::Hub::start(&self.data, &self.environment, self.clock.clone());
                Kind::InProcess(hub.await?)
            }
            Topology::Process(binary) => {
                Kind::Process(process::Hub::start(binary, &self.data, &self.environment).await?)
            }
        }))
    }
}

/// A running hub. Dropping it crashes it.
pub struct Hub(Kind);

enum Kind {
    #[cfg(feature = "in-process")]
    InProcess(in_process::Hub),
    Process(process::Hub),
}

impl Hub {
    /// Returns `http://127.0.0.1:PORT`, or `https://…` if the hub uses TLS.
    pub fn url(&self) -> &str {
        match &self.0 {
            #[cfg(feature = "in-process")]
            Kind::InProcess(hub) => hub.url(),
            Kind::Process(hub) => hub.url(),
        }
    }

    /// Returns the log of the hub so far, including panics. It is complete once the hub has ended.
    pub fn log(&self) -> String {
        match &self.0 {
            #[cfg(feature = "in-process")]
            Kind::InProcess(hub) => hub.log(),
            Kind::Process(hub) => hub.stderr(),
        }
    }

    pub async fn sign_in(&self, username: &str, password: &str) -> Result<RestClient> {
        RestClient::sign_in(self.url(), username, password).await
    }

    pub async fn admin(&self) -> Result<RestClient> {
        self.sign_in(ADMIN, PASSWORD).await
    }

    /// Ends the hub without a graceful shutdown and waits for its end: a process gets SIGKILL, and for a hub
    /// in the test process every task is dropped at its current await point.
    pub async fn crash(&mut self) -> Result<()> {
        match &mut self.0 {
            #[cfg(feature = "in-process")]
            Kind::InProcess(hub) => hub.crash().await,
            Kind::Process(hub) => hub.kill_9().await,
        }
    }

    /// Shuts the hub down gracefully, like SIGTERM. Fails if it takes longer than `timeout` or exits with an
    /// error.
    pub async fn stop(&mut self, timeout: Duration) -> Result<()> {
        match &mut self.0 {
            #[cfg(feature = "in-process")]
            Kind::InProcess(hub) => hub.stop(timeout).await,
            Kind::Process(hub) => {
                let status = hub.terminate(timeout).await?;
                anyhow::ensure!(status.success(), "the hub ended with {status}");
                Ok(())
            }
        }
    }

    /// Returns the process of the hub; an error if the hub runs in the test process.
    fn process(&self) -> Result<&process::Hub> {
        match &self.0 {
            #[cfg(feature = "in-process")]
            Kind::InProcess(_) => anyhow::bail!("this hub runs in the test process"),
            Kind::Process(hub) => Ok(hub),
        }
    }

    fn process_mut(&mut self) -> Result<&mut process::Hub> {
        match &mut self.0 {
            #[cfg(feature = "in-process")]
            Kind::InProcess(_) => anyhow::bail!("this hub runs in the test process"),
            Kind::Process(hub) => Ok(hub),
        }
    }

    pub fn process_id(&self) -> Option<u32> {
        self.process().ok()?.process_id()
    }

    /// Returns the standard output of the process so far. It is complete once the process has ended.
    pub fn stdout(&self) -> String {
        self.process().map(process::Hub::stdout).expect("the hub is a separate process")
    }

    /// Waits for a line on the standard output of the process for which `found` returns a value.
    pub async fn printed<T>(&mut self, found: impl Fn(&str) -> Option<T>) -> Result<T> {
        self.process_mut()?.printed(found).await
    }

    /// Waits for a line in the log for which `found` returns a value.
    pub async fn logged<T>(&mut self, found: impl Fn(&str) -> Option<T>) -> Result<T> {
        match &mut self.0 {
            #[cfg(feature = "in-process")]
            Kind::InProcess(hub) => hub.logged(found).await,
            Kind::Process(hub) => hub.logged(found).await,
        }
    }

    /// Sends SIGHUP, as log rotation and certificate renewal do.
    pub fn hang_up(&self) -> Result<()> {
        self.process().context("SIGHUP requires a separate process")?.hang_up()
    }
}
