//! A hub as a real `parlor` process, with captured output.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::TIMEOUT;

/// A running hub process. Dropping it kills it.
pub struct Hub {
    process: Child,
    stdout: Capture,
    stderr: Capture,
    url: String,
}

impl Hub {
    /// Starts the process and returns when it accepts connections.
    pub async fn start(binary: &Path, data: &Path, environment: &[(String, String)]) -> Result<Self> {
        let mut command = Command::new(binary);
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PARLOR_")) {
            command.env_remove(name);
        }
        let mut process = command
            .args(["--listen", "127.0.0.1:0", "--data"])
            .arg(data)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        let stdout = Capture::of(process.stdout.take().context("stdout is piped")?);
        let stderr = Capture::of(process.stderr.take().context("stderr is piped")?);
        let mut hub = Hub { process, stdout, stderr, url: String::new() };
        match timeout(TIMEOUT, hub.stdout.find(served_url)).await {
            Ok(Some(url)) => hub.url = url,
            Ok(None) => {
                let status = hub.process.wait().await?;
                hub.stderr.finish().await;
                bail!("the hub ended during its start, {status}:\n{}{}", hub.stdout(), hub.stderr());
            }
            Err(_) => bail!("the hub did not start within {TIMEOUT:?}:\n{}{}", hub.stdout(), hub.stderr()),
        }
        Ok(hub)
    }

    /// Returns `http://127.0.0.1:PORT`, or `https://…` if the hub uses TLS.
    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn process_id(&self) -> Option<u32> {
        self.process.id()
    }

    /// Returns the standard output so far. It is complete once the process has ended.
    pub fn stdout(&self) -> String {
        self.stdout.text()
    }

    pub fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// Waits for a line on standard output for which `found` returns a value.
    pub async fn printed<T>(&mut self, found: impl Fn(&str) -> Option<T>) -> Result<T> {
        let line = timeout(TIMEOUT, self.stdout.find(found)).await;
        line.ok().flatten().with_context(|| format!("not printed:\n{}", self.stdout()))
    }

    /// Waits for a line on standard error, the log, for which `found` returns a value.
    pub async fn logged<T>(&mut self, found: impl Fn(&str) -> Option<T>) -> Result<T> {
        let line = timeout(TIMEOUT, self.stderr.find(found)).await;
        line.ok().flatten().with_context(|| format!("not in the log:\n{}", self.stderr()))
    }

    /// Sends SIGKILL and waits for the end of the process.
    pub async fn kill_9(&mut self) -> Result<()> {
        self.process.kill().await?;
        self.ended().await.map(drop)
    }

    /// Sends SIGTERM and returns the exit status.
    pub async fn terminate(&mut self, limit: Duration) -> Result<ExitStatus> {
        let id = self.process.id().context("the hub has already ended")?;
        kill(Pid::from_raw(id as i32), Signal::SIGTERM)?;
        timeout(limit, self.ended())
            .await
            .with_context(|| format!("still running {limit:?} after SIGTERM"))?
    }

    /// Sends SIGHUP, as log rotation and certificate renewal do.
    pub fn hang_up(&self) -> Result<()> {
        let id = self.process.id().context("the hub has already ended")?;
        Ok(kill(Pid::from_raw(id as i32), Signal::SIGHUP)?)
    }

    async fn ended(&mut self) -> Result<ExitStatus> {
        let status = self.process.wait().await?;
        self.stdout.finish().await;
        self.stderr.finish().await;
        Ok(status)
    }
}

/// Extracts the origin from a line of the start-up report.
fn served_url(line: &str) -> Option<String> {
    ["http://127.0.0.1:", "https://127.0.0.1:"].into_iter().find_map(|origin| {
        let start = line.find(origin)?;
        let port: String = line[start + origin.len()..].chars().take_while(char::is_ascii_digit).collect();
        (!port.is_empty()).then(|| format!("{origin}{port}"))
    })
}

/// Captures an output stream. It reads to the end, so that the process never blocks on a full pipe.
pub(crate) struct Capture {
    text: Arc<Mutex<String>>,
    /// Number of lines; the channel is closed at the end of the stream.
    lines: watch::Receiver<usize>,
    reader: Option<JoinHandle<()>>,
}

impl Capture {
    pub(crate) fn of(stream: impl AsyncRead + Unpin + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(String::new()));
        let (counted, lines) = watch::channel(0);
        let written = text.clone();
        let reader = tokio::spawn(async move {
            let mut stream = BufReader::new(stream);
            let mut line = Vec::new();
            while matches!(stream.read_until(b'\n', &mut line).await, Ok(1..)) {
                written.lock().push_str(&String::from_utf8_lossy(&line));
                line.clear();
                counted.send_modify(|count| *count += 1);
            }
        });
        Self { text, lines, reader: Some(reader) }
    }

    pub(crate) fn text(&self) -> String {
        self.text.lock().clone()
    }

    /// Waits for a line for which `found` returns a value. Returns `None` if the stream ends without one.
    pub(crate) async fn find<T>(&mut self, found: impl Fn(&str) -> Option<T>) -> Option<T> {
        let mut open = true;
        loop {
            let value = self.text.lock().lines().find_map(&found);
            if value.is_some() || !open {
                return value;
            }
            open = self.lines.changed().await.is_ok();
        }
    }

    pub(crate) async fn finish(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.await.expect("the capture task does not panic");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_is_extracted_from_a_line_of_output() {
        let found = |line| served_url(line).unwrap_or_default();
        assert_eq!(found("  open   http://127.0.0.1:41234/setup#abc"), "http://127.0.0.1:41234");
        assert_eq!(found("http://127.0.0.1:7"), "http://127.0.0.1:7");
        assert_eq!(found("at https://127.0.0.1:7/"), "https://127.0.0.1:7");
        assert_eq!(found("data  /tmp/http://127.0.0.1:"), "");
        assert_eq!(found("listening"), "");
    }

    #[tokio::test]
    async fn a_process_that_ends_during_its_start_is_an_error_with_its_output() {
        let error = Hub::start(Path::new("ls"), Path::new("nowhere"), &[]).await.err().unwrap();
        assert!(error.to_string().contains("ended during its start"), "{error}");
        assert!(error.to_string().contains("--listen"), "{error}");
    }
}
