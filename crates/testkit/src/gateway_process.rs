//! A real `parlor gateway` process with agents of its own, on "another machine": its own data, and a line to the hub
//! that a test can cut.

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

const START: Duration = Duration::from_secs(60);

/// How to start a gateway; the same one again after a crash.
#[derive(Clone)]
pub struct GatewayLauncher {
    binary: PathBuf,
    /// What it keeps.
    pub data: PathBuf,
    /// What follows `parlor gateway --data DIR`.
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
}

impl GatewayLauncher {
    /// Below a directory of its own, with settings as they are written in a file.
    pub fn new(binary: impl Into<PathBuf>, place: &Path, settings: &str) -> Self {
        let config = place.join("gateway.toml");
        std::fs::write(&config, settings).expect("a directory of our own can be written");
        Self::with_arguments(binary, place, &["--config", config.to_str().expect("our paths are text")])
    }

    /// Below a directory of its own, with everything on the command line.
    pub fn with_arguments(binary: impl Into<PathBuf>, place: &Path, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        Self { binary: binary.into(), data: place.join("data"), arguments, environment: Vec::new() }
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Another address of the same hub.
    pub fn at(self, url: &str) -> Self {
        self.env("PARLOR_SERVER", url)
    }

    pub fn spawn(&self) -> Result<GatewayProcess> {
        let mut command = Command::new(&self.binary);
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PARLOR_")) {
            command.env_remove(name);
        }
        let mut process = command
            .args(["gateway", "--data"])
            .arg(&self.data)
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stdout = Capture::of(process.stdout.take().context("stdout is piped")?);
        let stderr = Capture::of(process.stderr.take().context("stderr is piped")?);
        Ok(GatewayProcess { process, stdout, stderr })
    }

    /// Starts it and returns when it is connected.
    pub async fn start(&self) -> Result<GatewayProcess> {
        let mut gateway = self.spawn()?;
        gateway.printed(|line| line.contains("connected").then_some(())).await?;
        Ok(gateway)
    }

    /// The id that an agent of this name has at the hub.
    pub fn agent(&self, name: &str) -> Result<String> {
        let identity: Value = serde_json::from_slice(&std::fs::read(self.data.join("gateway.json"))?)?;
        Ok(identity["agents"][name].as_str().context("no such agent")?.to_owned())
    }
}

/// A gateway that runs. Dropping it kills it.
pub struct GatewayProcess {
    process: Child,
    stdout: Capture,
    stderr: Capture,
}

impl GatewayProcess {
    pub async fn printed<T>(&mut self, found: impl Fn(&str) -> Option<T>) -> Result<T> {
        let line = timeout(START, self.stdout.find(found)).await;
        line.ok().flatten().with_context(|| format!("not printed:\n{}", self.output()))
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
        let id = self.process.id().context("it has already ended")?;
        kill(Pid::from_raw(id as i32), Signal::SIGTERM)?;
        self.ended().await
    }

    pub async fn ended(&mut self) -> Result<std::process::ExitStatus> {
        let status = timeout(START, self.process.wait()).await??;
        // What it printed last is on its way still.
        timeout(START, async { tokio::join!(self.stdout.finish(), self.stderr.finish()) }).await?;
        Ok(status)
    }
}

/// The processes whose command line contains a text.
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

/// Waits until there is no such process, and says how long that took. Nobody tells of the end of a process that is not
/// one's own, so this looks again and again.
pub async fn gone(mark: &str, within: Duration) -> Result<Duration> {
    let began = Instant::now();
    loop {
        let left = processes(mark);
        if left.is_empty() {
            return Ok(began.elapsed());
        }
        anyhow::ensure!(began.elapsed() < within, "still there after {within:?}: {left:?}");
        sleep(Duration::from_millis(10)).await;
    }
}

/// A line to a hub that can be cut.
pub struct LossyProxy {
    url: String,
    /// Where the hub is.
    hub: watch::Sender<String>,
    cut: watch::Sender<u64>,
    /// What is lost on the way, on connections that seem to stand: to the hub, and from it.
    lossy: watch::Sender<(bool, bool)>,
    listening: JoinHandle<()>,
}

impl LossyProxy {
    pub async fn to(url: &str) -> Result<Self> {
        let hub = watch::Sender::new(address(url));
        let leads_to = hub.subscribe();
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let own = format!("http://{}", listener.local_addr()?);
        let (cut, watched) = watch::channel(0);
        let (lossy, loses) = watch::channel((false, false));
        let listening = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let (hub, mut watched, loses) = (leads_to.borrow().clone(), watched.clone(), loses.clone());
                watched.mark_unchanged();
                tokio::spawn(async move {
                    let Ok(far) = TcpStream::connect(&hub).await else { return };
                    let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
                    tokio::select! {
                        () = pass(near_in, far_out, || loses.borrow().0) => {}
                        () = pass(far_in, near_out, || loses.borrow().1) => {}
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

    /// From now on it leads to a hub that was started anew, and loses nothing any more.
    pub fn lead_to(&self, url: &str) {
        self.hub.send_replace(address(url));
        self.cut();
        self.lossy.send_replace((false, false));
    }

    /// Nothing that is said to the hub arrives any more, though the connections stand.
    pub fn lose_what_is_said(&self) {
        self.lossy.send_modify(|lost| lost.0 = true);
    }

    /// Nothing that the hub says arrives any more, though the connections stand.
    pub fn lose_what_is_heard(&self) {
        self.lossy.send_modify(|lost| lost.1 = true);
    }

    /// Every connection that goes through it is gone; what was on its way is lost.
    pub fn cut(&self) {
        self.cut.send_modify(|count| *count += 1);
    }
}

/// Until either side ends.
async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, is_lost: impl Fn() -> bool) {
    let mut piece = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut piece).await {
        if !is_lost() && to.write_all(&piece[..length]).await.is_err() {
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
