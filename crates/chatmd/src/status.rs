//! The entry `server` of `.workplace/process-status.json`.
//!
//! Owns: that one key. Agents write their own keys into the same file, so every other byte of it stays as it
//! is, and a file that is not a JSON object is left alone. Changes are made under a lock file and with an
//! atomic rename; programs that do not use the lock can still overwrite each other's changes.

use crate::Workplace;
use crate::replace::replace_file;
use parlor_model::Time;
use parlor_wire::chatmd::json::iso_millis;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat};
use serde::Serialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::time::{Duration, Instant};

/// Name of the status file.
pub const STATUS: &str = "process-status.json";
const LOCK: &str = ".process-status.json.lock";
/// Maximum size of a status file.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;
/// Minimum time between two writes that only change the time of the last event.
const EVENT_INTERVAL: Duration = Duration::from_secs(1);
/// Number of attempts to lock, and the pause between them.
const LOCK_ATTEMPTS: u32 = 200;
const LOCK_INTERVAL: Duration = Duration::from_millis(5);

/// Maintains the entry of this process.
pub struct StatusFile {
    workplace: Workplace,
    started_at: String,
    last_event: String,
    /// Time of the last write, and whether an event happened since.
    written: Instant,
    stale: bool,
    /// An error was reported: the next one is not.
    reported: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Running,
    Stopped,
    Error,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    status: State,
    pid: u32,
    started_at: &'a str,
    last_event: &'a str,
    error: Option<&'a str>,
}

impl StatusFile {
    /// Writes the status `running`. Problems with the file do not stop the caller: every method returns the
    /// first problem once, as a sentence for people.
    pub fn start(workplace: Workplace, now: Time) -> (Self, Option<String>) {
        let started_at = iso_millis(now);
        let last_event = started_at.clone();
        let written = Instant::now();
        let mut status = Self { workplace, started_at, last_event, written, stale: false, reported: false };
        let problem = status.write(State::Running, None);
        (status, problem)
    }

    /// Records the time of an event. It is written at most once per second.
    pub fn event(&mut self, now: Time) -> Option<String> {
        self.last_event = iso_millis(now);
        self.stale = true;
        self.write_when_due()
    }

    /// Returns the time at which [`Self::write_when_due`] has something to write.
    pub fn wake_at(&self) -> Option<Instant> {
        self.stale.then(|| self.written + EVENT_INTERVAL)
    }

    pub fn write_when_due(&mut self) -> Option<String> {
        let due = self.stale && self.written.elapsed() >= EVENT_INTERVAL;
        if due { self.write(State::Running, None) } else { None }
    }

    /// Writes the status `stopped`, or `error` with its reason.
    pub fn stop(mut self, error: Option<&str>) -> Option<String> {
        let state = if error.is_some() { State::Error } else { State::Stopped };
        self.write(state, error)
    }

    fn write(&mut self, status: State, error: Option<&str>) -> Option<String> {
        self.written = Instant::now();
        self.stale = false;
        let (started_at, last_event) = (&*self.started_at, &*self.last_event);
        let entry = Entry { status, pid: std::process::id(), started_at, last_event, error };
        let problem = replace_entry(&self.workplace, &entry).err()?;
        let first = !std::mem::replace(&mut self.reported, true);
        first.then(|| format!("{STATUS} is not updated: {problem}"))
    }
}

fn replace_entry(workplace: &Workplace, entry: &Entry<'_>) -> io::Result<()> {
    let lock = workplace.open_file(LOCK, OFlags::RDWR | OFlags::CREATE, Mode::from_raw_mode(0o644))?;
    // The lock is held only for a few system calls. If other programs hold it for longer, this update is dropped.
    lock_briefly(&lock)?;
    let value = serde_json::to_string(entry)?;
    let (text, mode) = match workplace.open_file(STATUS, OFlags::RDONLY, Mode::empty()) {
        Ok(file) => {
            let mode = Mode::from_raw_mode(fstat(&file)?.st_mode);
            (read(file)?, Some(mode))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => (String::new(), None),
        Err(error) => return Err(error),
    };
    let replaced =
        with_entry(&text, &value).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    replace_file(workplace, STATUS, replaced.as_bytes(), mode)
}

fn lock_briefly(lock: &File) -> io::Result<()> {
    for _ in 0..LOCK_ATTEMPTS {
        match flock(lock, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) => std::thread::sleep(LOCK_INTERVAL),
            locked => return locked.map_err(io::Error::from),
        }
    }
    Err(io::Error::new(io::ErrorKind::WouldBlock, "another process has locked it"))
}

fn read(file: File) -> io::Result<String> {
    let mut text = String::new();
    let read = file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)?;
    if read as u64 > MAX_FILE_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is larger than 16 MiB"));
    }
    Ok(text)
}

/// Returns `text` with the value of `server` replaced or added. All other bytes stay as they are.
fn with_entry(text: &str, value: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Ok(format!("{{\n  \"server\": {value}\n}}\n"));
    }
    let spans = Spans::parse(text).map_err(|error| format!("it is not a JSON object ({error})"))?;
    Ok(match spans.server {
        Some(old) => [&text[..old.start], value, &text[old.end..]].concat(),
        None => {
            let end = text.rfind('}').expect("a JSON object ends with a brace");
            let before = text[..end].trim_end();
            let comma = if spans.is_empty { "" } else { "," };
            [before, comma, "\n  \"server\": ", value, "\n", &text[end..]].concat()
        }
    })
}

/// Positions in the text of a JSON object.
struct Spans {
    /// Value of the last key `server`.
    server: Option<Range<usize>>,
    is_empty: bool,
}

impl Spans {
    fn parse(text: &str) -> Result<Self, serde_json::Error> {
        struct Object<'a>(&'a str);
        impl<'de> Visitor<'de> for Object<'de> {
            type Value = Spans;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Spans, M::Error> {
                let mut spans = Spans { server: None, is_empty: true };
                while let Some((key, value)) = map.next_entry::<Cow<'de, str>, &'de RawValue>()? {
                    spans.is_empty = false;
                    if key == "server" {
                        // The raw value is a part of the text, so its address gives its position.
                        let start = value.get().as_ptr() as usize - self.0.as_ptr() as usize;
                        spans.server = Some(start..start + value.get().len());
                    }
                }
                Ok(spans)
            }
        }
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let spans = deserializer.deserialize_map(Object(text))?;
        deserializer.end()?;
        Ok(spans)
    }
}
