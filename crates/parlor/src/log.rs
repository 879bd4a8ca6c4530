//! Where the log goes: standard error, or a file that another program may move away.

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

/// The log that was started; whoever rotates its file has it opened anew.
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
    subscriber.try_init().context("a log was started before")?;
    Ok(Log { file, traces })
}

/// Formats what is logged and hands each line to `writer`. Crates of others are logged from `warn` on: they log what
/// passes through them, which is messages and tokens.
pub fn lines<S>(settings: &Settings, writer: BoxMakeWriter, coloured: bool) -> impl Layer<S> + use<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let others = if settings.log_level == LogLevel::Error { "error" } else { "warn" };
    let filter = format!("{others},parlor={}", settings.log_level.as_str());
    let filter: Targets = filter.parse().expect("two levels are a filter");
    let lines = tracing_subscriber::fmt::layer().with_writer(writer);
    let lines = match settings.log_format {
        LogFormat::Json => lines.json().boxed(),
        LogFormat::Text => lines.with_target(false).with_ansi(coloured).boxed(),
    };
    lines.with_filter(filter)
}

impl Log {
    /// The last words have been said.
    pub async fn finish(self) {
        if let Some(traces) = self.traces {
            traces.finish().await;
        }
    }

    /// Goes on in a new file if the old one was moved away; keeps the old one if that cannot be had.
    pub fn reopen(&self) {
        let Some(file) = &self.file else { return };
        match open(&file.path) {
            Ok(new) => *file.open.lock() = new,
            Err(error) => tracing::warn!(%error, "the log file could not be opened anew"),
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
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// Takes whole lines: each is handed over by one write.
struct Line(Arc<LogFile>);

impl Write for Line {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.open.lock().write(line)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
