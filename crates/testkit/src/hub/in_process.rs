//! A complete hub on a thread of the test process: real engine, SQLite file, HTTP router and sockets.
//!
//! The hub has its own runtime, so that it keeps running while the test blocks, and can be dropped to
//! simulate a crash.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Once};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use parking_lot::Mutex;
use parlor::instance::Platform;
use parlor::serve::RunningHub;
use parlor::settings::{self, Settings, Sources};
use parlor_engine::local::SystemClock;
use parlor_engine::ports::Clock;
use parlor_model::Time;
use parlor_server::PasswordCost;
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;
use tracing::Dispatch;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt;

use super::{TIMEOUT, TestClock, template};

enum End {
    Stop,
    Crash,
}

pub struct Hub {
    url: String,
    log: Log,
    end: Option<oneshot::Sender<End>>,
    /// Receives a value when the hub's thread has finished.
    ended: oneshot::Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl Hub {
    pub async fn start(data: &Path, environment: &[(String, String)], clock: TestClock) -> Result<Self> {
        let (settings, config) = load(data, environment)?;
        template::place_in(data)?;
        let log = Log::default();
        let dispatch = log.dispatch(&settings);
        let scheme = if settings.tls_cert.is_some() { "https" } else { "http" };
        let (started, starting) = oneshot::channel();
        let (end, ending) = oneshot::channel();
        let (notify_ended, ended) = oneshot::channel();
        let thread = std::thread::Builder::new().name("hub".into()).spawn(move || {
            log_here(&dispatch);
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                // Threads for blocking work must log to the same log.
                .on_thread_start(move || log_here(&dispatch))
                .build()
                .expect("a tokio runtime can be created");
            let engine = runtime.block_on(run(settings, config, clock, started, ending));
            // A crash drops tasks at their current await point, without waiting for them.
            runtime.shutdown_background();
            // The writer must be closed, because the next hub on this data must be the only writer.
            if let Some(engine) = engine {
                engine.close_blocking();
            }
            let _ = notify_ended.send(());
        })?;
        let mut hub = Self { url: String::new(), log, end: Some(end), ended, thread: Some(thread) };
        let address = timeout(TIMEOUT, starting).await.context("the hub did not start in time")?;
        let address = address.map_err(|_| anyhow!("the hub panicked at its start:\n{}", hub.log()))??;
        hub.url = format!("{scheme}://{address}");
        Ok(hub)
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn log(&self) -> String {
        String::from_utf8_lossy(&self.log.text.lock()).into_owned()
    }

    pub async fn logged<T>(&mut self, found: impl Fn(&str) -> Option<T>) -> Result<T> {
        let mut lines = self.log.lines.subscribe();
        let search = async {
            loop {
                lines.mark_unchanged();
                if let Some(value) = self.log().lines().find_map(&found) {
                    return value;
                }
                lines.changed().await.expect("the log lives as long as the hub");
            }
        };
        timeout(TIMEOUT, search).await.with_context(|| format!("not in the log:\n{}", self.log()))
    }

    pub async fn crash(&mut self) -> Result<()> {
        self.finish(End::Crash, TIMEOUT).await
    }

    pub async fn stop(&mut self, limit: Duration) -> Result<()> {
        self.finish(End::Stop, limit).await
    }

    async fn finish(&mut self, end: End, limit: Duration) -> Result<()> {
        let Some(sender) = self.end.take() else { return Ok(()) };
        let _ = sender.send(end);
        let ended = timeout(limit, &mut self.ended).await;
        ended
            .with_context(|| format!("the hub is still running after {limit:?}"))?
            .context("the hub panicked")?;
        if let Some(thread) = self.thread.take() {
            thread.join().map_err(|_| anyhow!("the hub panicked:\n{}", self.log()))?;
        }
        Ok(())
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            let _ = end.send(End::Crash);
        }
        // The test removes the data directory next, so the hub's thread must have finished.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Loads the settings that the binary would load from these environment variables.
fn load(data: &Path, environment: &[(String, String)]) -> Result<(Settings, Option<PathBuf>)> {
    let flags = BTreeMap::from([
        ("listen", "127.0.0.1:0".to_owned()),
        ("data", data.to_str().context("the data directory is not UTF-8")?.to_owned()),
    ]);
    let environment = environment.iter().map(|(name, value)| (name.clone(), value.into())).collect();
    let sources = Sources { flags, environment, config: None };
    let problems = |problems: Vec<settings::Problem>| {
        anyhow!(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    };
    let loaded = settings::load(&sources).map_err(problems)?;
    Ok((loaded.settings, sources.config_file()))
}

/// Runs the hub until it is ended. After a crash, returns its engine, which the caller must close.
async fn run(
    settings: Settings,
    config: Option<PathBuf>,
    clock: TestClock,
    started: oneshot::Sender<Result<std::net::SocketAddr>>,
    ending: oneshot::Receiver<End>,
) -> Option<parlor_engine::Hub> {
    let platform = Platform {
        clock: Arc::new(clock),
        password_cost: PasswordCost::MINIMUM,
        // Test clients are often still connected at the end, and do not reply to the close frame.
        close_timeout: Duration::from_millis(200),
        ..Platform::default()
    };
    let hub = match RunningHub::start(&settings, config.as_deref(), platform).await {
        Ok(hub) => hub,
        Err(error) => {
            let _ = started.send(Err(error));
            return None;
        }
    };
    let _ = started.send(Ok(hub.address()));
    match ending.await {
        Ok(End::Stop) => {
            hub.stop().await;
            None
        }
        Ok(End::Crash) | Err(_) => Some(hub.engine()),
    }
}

impl Clock for TestClock {
    fn now(&self) -> Time {
        Time(SystemClock.now().0 + self.ahead_micros.load(Ordering::Relaxed))
    }
}

/// Captured log of one hub.
#[derive(Clone, Default)]
struct Log {
    text: Arc<Mutex<Vec<u8>>>,
    /// Number of lines.
    lines: watch::Sender<usize>,
}

impl Log {
    fn dispatch(&self, settings: &Settings) -> Dispatch {
        let log = self.clone();
        let writer = BoxMakeWriter::new(move || log.clone());
        tracing_subscriber::registry().with(parlor::log::lines(settings, writer, false)).into()
    }
}

impl Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.text.lock().extend_from_slice(line);
        self.lines.send_modify(|lines| *lines += 1);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Makes this thread log to a hub's log until it ends, including its panics.
fn log_here(dispatch: &Dispatch) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // Threads of the test itself have no subscriber, so there the event is discarded.
            tracing::error!("a thread panicked: {panic}");
            report(panic);
        }));
    });
    mem::forget(tracing::dispatcher::set_default(dispatch));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_in_a_thread_of_the_hub_is_logged() {
        let data = tempfile::tempdir().unwrap();
        let (settings, _) = load(data.path(), &[]).unwrap();
        let log = Log::default();
        let dispatch = log.dispatch(&settings);
        let thread = std::thread::spawn(move || {
            log_here(&dispatch);
            panic!("on purpose");
        });
        assert!(thread.join().is_err());
        let text = String::from_utf8(log.text.lock().clone()).unwrap();
        assert!(text.contains("panicked") && text.contains("on purpose"), "{text}");
    }
}
