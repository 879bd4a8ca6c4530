//! The bridge between a `chat.md` and a room of a hub: lines become messages, and messages become lines.
//!
//! Owns: the mapping in both directions, and that each line and each message passes once, across lost
//! connections, restarts and kills. Never: opens a connection; the caller does, over the network or inside the
//! hub's process. `docs/protocols/chatmd.md` describes the mapping and the guarantees.

mod append_once;
pub mod client;
mod continuations;
mod disk;
mod members;
pub mod room;
mod session;
pub mod state;
mod to_file;
mod to_room;

use crate::cursor::hex;
use crate::{Follower, Notice, Start, Workplace};
use disk::Disk;
use members::Members;
use parlor_wire::broker::client::{RefusalScope, refusal_scope};
use room::RoomConnection;
use session::SessionEnd;
use sha2::{Digest, Sha256};
use state::{BridgeState, StateFile};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;
use to_file::ToFile;
use to_room::ToRoom;
use tokio::time::{Instant, sleep};

/// Delay before the first attempt to reconnect; it doubles with each failed attempt.
const MIN_RETRY_DELAY: Duration = Duration::from_millis(250);
/// Maximum delay between two attempts, before jitter.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);
/// Minimum duration of a connection that resets the delay.
const STABLE_AFTER: Duration = Duration::from_secs(2);

#[derive(Clone, Debug)]
pub struct BridgeOptions {
    /// Project with the directory `.workplace`.
    pub directory: PathBuf,
    /// Id of the room.
    pub room: String,
    /// URL of the hub, which precedes the paths of attached files. Empty if the hub has no public URL.
    pub hub: String,
    /// Write the messages that the room had before the first start.
    pub history: bool,
    /// Forget the saved state: the room or the positions of an earlier bridge.
    pub reset: bool,
    /// Retry also if the first connection is rejected, or if the room cannot be read.
    pub patient: bool,
}

/// An event for people who watch the bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BridgeNotice {
    /// The room is followed, and the positions from which it is followed are saved.
    Connected,
    /// The connection was lost or could not be opened.
    Lost { why: String, again: Duration },
    /// The hub refused a line, which is skipped.
    LineRefused { line_number: u64, why: String },
    /// Another program continued a message of the bridge. The text is not relayed.
    ContinuesOwnLine { line_number: u64 },
    /// The hub has another history than before. Messages that were posted meanwhile may be missing in the file.
    HistoryReplaced,
    /// The file, or the state of the bridge, cannot be written now. It is tried again.
    NotWritten { why: String },
    /// An observation about the file.
    File(Notice),
}

/// Reason why no connection could be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectFailure {
    /// Another attempt fails, too: the credentials or the certificate are rejected.
    Permanent(String),
    Temporary(String),
}

/// Reason why a bridge cannot run.
#[derive(Debug)]
pub enum BridgeError {
    /// The directory, the file or the saved state cannot be used.
    File(io::Error),
    /// The saved state belongs to another room.
    OtherRoom { room: String },
    /// The hub rejected the bridge before it was connected once.
    Rejected(String),
}

impl fmt::Display for BridgeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => write!(f, "{error}"),
            Self::OtherRoom { room } => {
                write!(
                    f,
                    "this chat.md is connected with the room {room}: to connect another one, use --reset or remove .workplace/{}",
                    state::STATE
                )
            }
            Self::Rejected(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for BridgeError {}

impl From<io::Error> for BridgeError {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

/// Runs a bridge until `stop` completes. `connect` opens an authenticated connection to the hub. It runs again
/// after each lost connection.
pub async fn run<C, F>(
    options: BridgeOptions,
    mut connect: impl FnMut() -> F,
    stop: impl Future<Output = ()>,
    mut report: impl FnMut(BridgeNotice) + Send,
) -> Result<(), BridgeError>
where
    C: RoomConnection,
    F: Future<Output = Result<C, ConnectFailure>>,
{
    // Opening reads files and may wait for a lock.
    let opened = tokio::task::spawn_blocking(move || Bridge::open(options)).await;
    let mut bridge = opened.map_err(io::Error::other)??;
    let mut stop = pin!(stop);
    let mut delay = MIN_RETRY_DELAY;
    let mut was_connected = bridge.options.patient;
    let rejected = loop {
        let connected = tokio::select! {
            () = &mut stop => break None,
            connected = connect() => connected,
        };
        let why = match connected {
            Ok(connection) => {
                let started = Instant::now();
                let end = bridge.serve(connection, stop.as_mut(), &mut report).await;
                was_connected |= bridge.has_followed;
                if bridge.has_followed && started.elapsed() >= STABLE_AFTER {
                    delay = MIN_RETRY_DELAY;
                }
                match end {
                    SessionEnd::Stopped => break None,
                    SessionEnd::Refused(why) if !was_connected => break Some(why),
                    SessionEnd::Refused(why) | SessionEnd::Lost(why) => why,
                }
            }
            Err(ConnectFailure::Permanent(why)) if !was_connected => break Some(why),
            Err(ConnectFailure::Permanent(why) | ConnectFailure::Temporary(why)) => why,
        };
        // Jitter, so that bridges that lost the hub together do not reconnect together.
        let again = delay.mul_f64(0.7 + 0.6 * random_fraction());
        delay = (delay * 2).min(MAX_RETRY_DELAY);
        report(BridgeNotice::Lost { why, again });
        tokio::select! {
            () = &mut stop => break None,
            () = sleep(again) => {}
        }
    };
    if bridge.state.position.is_some() {
        bridge.disk.finish(&mut bridge.state, &mut report).await;
    }
    match rejected {
        Some(why) => Err(BridgeError::Rejected(why)),
        None => Ok(()),
    }
}

/// Everything of a bridge that outlives a connection.
struct Bridge {
    options: BridgeOptions,
    state: BridgeState,
    disk: Disk,
    follower: Follower,
    to_room: ToRoom,
    to_file: ToFile,
    members: Members,
    /// Whether the room was followed over any connection.
    has_followed: bool,
    /// Time at which the follower has something to do even if the file does not change.
    wake_at: Option<std::time::Instant>,
}

impl Bridge {
    /// Locks the file against other bridges, loads the state, completes an append that was interrupted, and
    /// opens the file.
    fn open(options: BridgeOptions) -> Result<Self, BridgeError> {
        let workplace = Workplace::open(&options.directory)?;
        let state_file = StateFile::lock(&workplace)?;
        let mut state = load(&state_file, &options)?;
        state.hub.clone_from(&options.hub);
        disk::recover(&workplace, &mut state)?;
        let start = match state.cursor.take() {
            Some(cursor) => Start::Content(Some(cursor)),
            None => Start::Content(None),
        };
        // The state is not saved before the room is followed: an attempt that fails changes nothing.
        let saved_generation = match &start {
            Start::Content(Some(cursor)) => Some(cursor.generation.clone()),
            _ => None,
        };
        let follower = Follower::open(workplace.clone(), start)?;
        if saved_generation.as_ref().is_some_and(|saved| *saved != follower.cursor().generation) {
            state.separate();
        }
        state.advance(follower.cursor());
        Ok(Self {
            to_room: ToRoom::new(follower.cursor(), saved_generation),
            to_file: ToFile::new(state.position),
            disk: Disk::new(workplace, state_file),
            options,
            state,
            follower,
            members: Members::default(),
            has_followed: false,
            wake_at: None,
        })
    }
}

fn load(state_file: &StateFile, options: &BridgeOptions) -> Result<BridgeState, BridgeError> {
    let new = || BridgeState::new(&options.room, &options.hub);
    match state_file.read() {
        Ok(None) => Ok(new()),
        Ok(Some(state)) if options.reset => Ok(state.reset(&options.room, &options.hub)),
        Ok(Some(state)) if state.room == options.room => Ok(state),
        Ok(Some(state)) => Err(BridgeError::OtherRoom { room: state.room }),
        Err(error) if error.kind() == io::ErrorKind::InvalidData && options.reset => Ok(new()),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            let message = format!("{error}; --reset starts anew");
            Err(io::Error::new(error.kind(), message).into())
        }
        Err(error) => Err(error.into()),
    }
}

/// Explains a refusal of the hub that concerns the whole room.
fn explain(sentence: &str) -> String {
    let hint = match sentence {
        "Not allowed" => "the API key needs the scopes read, write and agents",
        "Not found" => "there is no such room",
        "Not a member of this room" => "the account is not a member of the room",
        _ => return sentence.to_owned(),
    };
    debug_assert_eq!(refusal_scope(sentence), RefusalScope::Room);
    hint.to_owned()
}

/// Digest of several texts, as hexadecimal digits.
fn digest(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hex(&hasher.finalize()[..16])
}

fn random_fraction() -> f64 {
    let mut byte = [0];
    // Without random bytes the fraction is 0, which only loses the jitter.
    let _ = getrandom::fill(&mut byte);
    f64::from(byte[0]) / 255.0
}
