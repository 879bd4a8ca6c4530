//! Log output: to standard error, or to a file that can be rotated.

use crate::settings::{LogFormat, LogLevel, Settings};
use crate::traces;
use anyhow::Context;
use parking_lot::Mutex;
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

/// The running log. [`Log::reopen`] switches to a new file after a rotation.
pub struct Log {
    file: Option<Arc<LogFile>>,
    traces: Option<traces::Traces>,
}

/// Starts the log of this process.
pub fn start(settings: &Settings) -> anyhow::Result<Log> {
    let file = settings.log_file.as_deref().map(LogFile::open).transpose()?.map(Arc::new);
    let coloured = file.is_none() && io::stderr().is_terminal();
    let writer = match file.clone() {
        Some(file) => BoxMakeWriter::new(move || Line(file.clone())),
        None => BoxMakeWriter::new(io::stderr),
    };
    let subscriber = tracing_subscriber::registry().with(lines(settings, writer, coloured));
    let (subscriber, traces) = match &settings.otlp_endpoint {
        Some(endpoint) => {
            let (layer, traces) = traces::start(endpoint)?;
            (subscriber.with(Some(layer)), Some(traces))
        }
        None => (subscriber.with(None), None),
    };
    subscriber.try_init().context("a log subscriber is already installed")?;
    Ok(Log { file, traces })
}

/// Creates the layer that formats log events and writes each line to `writer`. Third-party crates are logged
/// at `warn` or above only, because their lower levels contain messages and tokens.
pub fn lines<S>(settings: &Settings, writer: BoxMakeWriter, coloured: bool) -> impl Layer<S> + use<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let others = if settings.log_level == LogLevel::Error { "error" } else { "warn" };
    let filter = format!("{others},parlor={}", settings.log_level.as_str());
    let filter: Targets = filter.parse().expect("two log levels form a valid filter");
    let lines = tracing_subscriber::fmt::layer().with_writer(writer);
    let lines = match settings.log_format {
        LogFormat::Json => lines.json().boxed(),
        LogFormat::Text => lines.with_target(false).with_ansi(coloured).boxed(),
    };
    lines.with_filter(filter)
}

impl Log {
    /// Sends the remaining traces to the collector, if there is one.
    pub async fn finish(self) {
        if let Some(traces) = self.traces {
            traces.finish().await;
        }
    }

    /// Reopens the log file by its path, after a rotation. If that fails, logging continues to the old file.
    pub fn reopen(&self) {
        let Some(file) = &self.file else { return };
        if let Err(error) = file.reopen() {
            tracing::warn!(%error, "cannot reopen the log file");
        }
    }
}

struct LogFile {
    path: PathBuf,
    open: Mutex<File>,
}

impl LogFile {
    fn open(path: &Path) -> anyhow::Result<Self> {
        let file = open(path).with_context(|| format!("cannot write the log to {}", path.display()))?;
        Ok(Self { path: path.to_owned(), open: Mutex::new(file) })
    }

    /// Creates the file under the lock of the writers: as soon as the new file exists, no line is written to the
    /// old one, so that a rotation script may compress the old file then.
    fn reopen(&self) -> io::Result<()> {
        let mut current = self.open.lock();
        *current = open(&self.path)?;
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// Writes each log line to the current file. The formatter passes a whole line in one call.
struct Line(Arc<LogFile>);

impl Write for Line {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.open.lock().write(line)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
