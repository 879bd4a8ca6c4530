//! Real processes that are clients of a hub, such as `parlor gateway` with its own data directory, and a proxy
//! to the hub that can lose connections.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::hub::Capture;

/// Timeout for a line of output, and for the end of the process.
const PROCESS_TIMEOUT: Duration = Duration::from_secs(60);

/// Starts a gateway process; can start the same gateway again after a crash.
#[derive(Clone)]
pub struct GatewayLauncher {
    binary: PathBuf,
    /// Data directory of the gateway.
    pub data: PathBuf,
    /// Arguments after `parlor gateway --data DIR`.
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
}

impl GatewayLauncher {
    /// Writes the settings to a file in `place` and uses it as `--config`.
    pub fn new(binary: impl Into<PathBuf>, place: &Path, settings: &str) -> Self {
        let config = place.join("gateway.toml");
        std::fs::write(&config, settings).expect("the test directory is writable");
        Self::with_arguments(binary, place, &["--config", config.to_str().expect("test paths are UTF-8")])
    }

    /// Uses these command-line arguments, with the data directory in `place`.
    pub fn with_arguments(binary: impl Into<PathBuf>, place: &Path, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        Self { binary: binary.into(), data: place.join("data"), arguments, environment: Vec::new() }
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the URL of the hub.
    pub fn at(self, url: &str) -> Self {
        self.env("PARLOR_SERVER", url)
    }

    pub fn spawn(&self) -> Result<ClientProcess> {
        let data = self.data.to_str().context("test paths are UTF-8")?;
        let arguments: Vec<&str> = ["gateway", "--data", data].into_iter().chain(self.arguments()).collect();
        ClientProcess::spawn(&self.binary, &arguments, &self.environment)
    }

    fn arguments(&self) -> impl Iterator<Item = &str> {
        self.arguments.iter().map(String::as_str)
    }

    /// Starts the gateway and waits until it is connected.
    pub async fn start(&self) -> Result<ClientProcess> {
        let mut gateway = self.spawn()?;
        gateway.printed(|line| line.contains("connected").then_some(())).await?;
        Ok(gateway)
    }

    /// Returns the ID of the agent with this name.
    pub fn agent(&self, name: &str) -> Result<String> {
        let identity: Value = serde_json::from_slice(&std::fs::read(self.data.join("gateway.json"))?)?;
        Ok(identity["agents"][name].as_str().context("no such agent")?.to_owned())
    }
}

/// A running process that is a client of a hub: `parlor gateway` or `parlor bridge`. Dropping it kills it.
pub struct ClientProcess {
    process: Child,
    stdout: Capture,
    stderr: Capture,
}

impl ClientProcess {
    /// Starts the program without the `PARLOR_…` variables of the test, except the given ones.
    pub fn spawn(binary: &Path, arguments: &[&str], environment: &[(String, String)]) -> Result<Self> {
        let mut command = Command::new(binary);
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PARLOR_")) {
            command.env_remove(name);
        }
        let mut process = command
            .args(arguments)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stdout = Capture::of(process.stdout.take().context("stdout is piped")?);
        let stderr = Capture::of(process.stderr.take().context("stderr is piped")?);
        Ok(Self { process, stdout, stderr })
    }

    /// Waits for a line on standard output for which `found` returns a value.
    pub async fn printed<T>(&mut self, found: impl Fn(&str) -> Option<T>) -> Result<T> {
        let line = timeout(PROCESS_TIMEOUT, self.stdout.find(found)).await;
        line.ok().flatten().with_context(|| format!("not printed:\n{}", self.output()))
    }

    /// Waits for a line on standard error for which `found` returns a value.
    pub async fn reported<T>(&mut self, found: impl Fn(&str) -> Option<T>) -> Result<T> {
        let line = timeout(PROCESS_TIMEOUT, self.stderr.find(found)).await;
        line.ok().flatten().with_context(|| format!("not reported:\n{}", self.output()))
    }

    pub fn output(&self) -> String {
        self.stdout.text() + &self.stderr.text()
    }

    pub fn process_id(&self) -> Option<u32> {
        self.process.id()
    }

    pub async fn kill_9(&mut self) -> Result<()> {
        Ok(self.process.kill().await?)
    }

    pub async fn terminate(&mut self) -> Result<std::process::ExitStatus> {
        let id = self.process.id().context("the process has already ended")?;
        kill(Pid::from_raw(id as i32), Signal::SIGTERM)?;
        self.ended().await
    }

    pub async fn ended(&mut self) -> Result<std::process::ExitStatus> {
        let status = timeout(PROCESS_TIMEOUT, self.process.wait()).await??;
        // The process has ended, but its last output may still be in the pipes.
        timeout(PROCESS_TIMEOUT, async { tokio::join!(self.stdout.finish(), self.stderr.finish()) }).await?;
        Ok(status)
    }
}

/// Returns the processes whose command line contains `mark`, except this one.
pub fn processes(mark: &str) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(mark) && id != std::process::id() {
            found.push((id, line));
        }
    }
    found
}

/// Waits until no process has a command line that contains `mark`, and returns the time it took. It polls,
/// because the system does not notify about the end of processes that are not children.
pub async fn gone(mark: &str, timeout: Duration) -> Result<Duration> {
    let started = Instant::now();
    loop {
        let left = processes(mark);
        if left.is_empty() {
            return Ok(started.elapsed());
        }
        anyhow::ensure!(started.elapsed() < timeout, "still running after {timeout:?}: {left:?}");
        sleep(Duration::from_millis(10)).await;
    }
}

/// A TCP proxy to a hub that can close its connections or silently drop data.
pub struct LossyProxy {
    url: String,
    /// Address of the hub.
    hub: watch::Sender<String>,
    cut: watch::Sender<u64>,
    /// Whether data to the hub, and data from the hub, is dropped while connections stay open.
    lossy: watch::Sender<(bool, bool)>,
    listening: JoinHandle<()>,
}

impl LossyProxy {
    pub async fn to(url: &str) -> Result<Self> {
        let hub = watch::Sender::new(address(url));
        let target = hub.subscribe();
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let own = format!("http://{}", listener.local_addr()?);
        let (cut, watched) = watch::channel(0);
        let (lossy, dropping) = watch::channel((false, false));
        let listening = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let (hub, mut watched, dropping) =
                    (target.borrow().clone(), watched.clone(), dropping.clone());
                watched.mark_unchanged();
                tokio::spawn(async move {
                    let Ok(far) = TcpStream::connect(&hub).await else { return };
                    let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
                    tokio::select! {
                        () = pass(near_in, far_out, || dropping.borrow().0) => {}
                        () = pass(far_in, near_out, || dropping.borrow().1) => {}
                        _ = watched.changed() => {}
                    }
                });
            }
        });
        Ok(Self { url: own, hub, cut, lossy, listening })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Closes all connections, forwards new ones to another hub address, and stops dropping data.
    pub fn lead_to(&self, url: &str) {
        self.hub.send_replace(address(url));
        self.cut();
        self.lossy.send_replace((false, false));
    }

    /// Drops all data to the hub from now on, while connections stay open.
    pub fn lose_what_is_said(&self) {
        self.lossy.send_modify(|lost| lost.0 = true);
    }

    /// Drops all data from the hub from now on, while connections stay open.
    pub fn lose_what_is_heard(&self) {
        self.lossy.send_modify(|lost| lost.1 = true);
    }

    /// Closes all connections; data in flight is lost.
    pub fn cut(&self) {
        self.cut.send_modify(|count| *count += 1);
    }
}

/// Copies data until either side ends. Data is dropped while `is_dropped` returns true.
async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, is_dropped: impl Fn() -> bool) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        if !is_dropped() && to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}

fn address(url: &str) -> String {
    url.trim_start_matches("http://").to_owned()
}

impl Drop for LossyProxy {
    fn drop(&mut self) {
        self.listening.abort();
    }
}
