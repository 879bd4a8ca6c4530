//! The state of a bridge that survives restarts, and the file that stores it.
//!
//! Owns: `.workplace/.parlor-bridge.json`. One bridge at a time holds its lock. The state is saved as a whole,
//! so that the two directions and the pending append never contradict each other.

use super::continuations::{Addressed, Continuations};
use super::digest;
use crate::cursor::hex;
use crate::locked_file::LockedFile;
use crate::{Cursor, Workplace};
use parlor_model::Position;
use parlor_wire::broker::client::RoomMessage;
use parlor_wire::chatmd::LineMessage;
use serde::{Deserialize, Serialize};
use std::io;

/// Name of the state file.
pub const STATE: &str = ".parlor-bridge.json";

const VERSION: u32 = 1;

/// Maximum size of the state file. A pending append contains the text of its messages.
const MAX_FILE_BYTES: u64 = 256 * 1024 * 1024;
/// Maximum number of own lines that wait to be passed. While it is reached and lines wait for the hub, the
/// bridge writes nothing to the file; otherwise the oldest are lines of a truncated file, and are dropped.
pub const MAX_OWN_LINES: usize = 10_000;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BridgeState {
    version: u32,
    pub room: String,
    /// URL of the hub, for people who read the file.
    pub hub: String,
    /// Position in the file behind the last line that the hub accepted or refused.
    pub cursor: Option<Cursor>,
    /// Key of the proofs in the ids of relayed lines.
    secret: String,
    /// Position in the room of the last message that was written to the file or needs not be.
    pub position: Option<Position>,
    /// Lines that the bridge wrote and that the follower has not passed yet.
    pub own_lines: Vec<OwnLine>,
    /// Text that is being appended.
    pub pending: Option<PendingAppend>,
    pub continuations: Continuations,
}

/// A line that the bridge itself appended. The digest tells it from another line at the same offset after the
/// file was truncated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnLine {
    pub device: u64,
    pub inode: u64,
    pub offset: u64,
    /// Offset behind the message.
    pub end: u64,
    pub digest: String,
}

/// Messages of the room that are being appended. It is saved before the append, so that a restart can tell
/// whether the text reached the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingAppend {
    /// Whole lines.
    pub text: String,
    /// The messages in the text, in order.
    pub messages: Vec<PendingMessage>,
    /// Position in the room behind the text.
    pub position: Position,
    /// The file before the append; `None` until the append is prepared.
    pub before: Option<FileLength>,
}

impl PendingAppend {
    /// Returns whether the lengths of the messages are those of the text.
    fn is_consistent(&self) -> bool {
        let sum = self.messages.iter().try_fold(0_usize, |sum, message| sum.checked_add(message.bytes));
        sum == Some(self.text.len())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingMessage {
    /// Length of the message in the text, in bytes.
    pub bytes: usize,
    /// Digest of its header line, as [`line_digest`] returns it.
    pub digest: String,
    pub addressed: Addressed,
}

/// A file and its length. The default stands for a file that does not exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileLength {
    pub device: u64,
    pub inode: u64,
    pub bytes: u64,
}

impl BridgeState {
    pub fn new(room: &str, hub: &str) -> Self {
        Self {
            version: VERSION,
            room: room.into(),
            hub: hub.into(),
            cursor: None,
            secret: new_secret(),
            position: None,
            own_lines: Vec::new(),
            pending: None,
            continuations: Continuations::default(),
        }
    }

    /// Returns a new state for another room, or a new start with the same one. The secret stays, so that lines
    /// that were relayed earlier are still recognised.
    pub fn reset(self, room: &str, hub: &str) -> Self {
        Self { secret: self.secret, ..Self::new(room, hub) }
    }

    /// Makes this a state of its own, after the project was copied: lines that the original relays from now on
    /// are not lines of this file.
    pub fn separate(&mut self) {
        self.secret = new_secret();
    }

    /// Moves to a position in the file, and forgets the own lines before it.
    pub fn advance(&mut self, cursor: Cursor) {
        let file = (cursor.device, cursor.inode);
        // A file that was replaced has been read to its end. A truncated file keeps its inode: its old lines
        // stay until the position passes their offset, and their digests tell them from new ones.
        let previous = self.cursor.as_ref().map(|cursor| (cursor.device, cursor.inode));
        self.own_lines.retain(|line| {
            let of = (line.device, line.inode);
            if of == file { line.offset >= cursor.offset } else { Some(of) != previous }
        });
        self.cursor = Some(cursor);
    }

    /// Returns the own line of the bridge that a message of the file is, if any.
    pub fn own_line(&self, file: &Cursor, offset: u64, line: &LineMessage) -> Option<&OwnLine> {
        let at = |own: &&OwnLine| (own.device, own.inode, own.offset) == (file.device, file.inode, offset);
        self.own_lines.iter().find(at).filter(|own| own.digest == line_digest(line))
    }

    /// Returns the id under which a line is relayed: its place and a proof that this bridge relayed exactly this
    /// line. All members of the room see the id; with the proof, they cannot use it for another message, which
    /// the bridge would then take for its own and not write to the file.
    pub fn external_id(&self, line: &RelayedLine<'_>) -> String {
        let RelayedLine { place, author, recipient, text } = line;
        let addressed = if recipient.is_some() { "to" } else { "all" };
        let proof = digest(&[&self.secret, place, author, addressed, recipient.unwrap_or(""), text]);
        format!("{place}:{proof}")
    }

    /// Returns whether this bridge relayed the message.
    pub fn has_relayed(&self, message: &RoomMessage) -> bool {
        let (Some(id), Some(relayed)) = (&message.external_id, &message.relayed) else { return false };
        let Some((place, _)) = id.rsplit_once(':') else { return false };
        let (author, recipient) = (&*relayed.author, relayed.recipient.as_deref());
        self.external_id(&RelayedLine { place, author, recipient, text: &message.text }) == **id
    }

    /// Applies a complete append: the text is in the file, with its messages at these offsets.
    pub fn appended(&mut self, device: u64, inode: u64, offsets: &[u64]) {
        let Some(PendingAppend { messages, position, .. }) = self.pending.take() else { return };
        for (message, &offset) in messages.iter().zip(offsets) {
            let end = offset + message.bytes as u64;
            let digest = message.digest.clone();
            self.own_lines.push(OwnLine { device, inode, offset, end, digest });
            self.continuations.record(&message.addressed);
        }
        let excess = self.own_lines.len().saturating_sub(MAX_OWN_LINES);
        self.own_lines.drain(..excess);
        // The hub may have got another history while the text was appended.
        if self.position.is_none_or(|known| known.epoch == position.epoch) {
            self.position = Some(position);
        }
    }
}

/// A line as the hub gets it.
#[derive(Clone, Copy)]
pub struct RelayedLine<'a> {
    /// Generation of the file and offset of the line.
    pub place: &'a str,
    pub author: &'a str,
    pub recipient: Option<&'a str>,
    pub text: &'a str,
}

fn new_secret() -> String {
    let mut secret = [0; 16];
    // Without random bytes the proofs are worthless, but every line is still relayed once.
    let _ = getrandom::fill(&mut secret);
    hex(&secret)
}

/// Digest of the header line of a message.
pub fn line_digest(line: &LineMessage) -> String {
    digest(&[&line.sender, &line.recipient, &line.broadcast.join(","), &line.message])
}

/// The state file, locked against other bridges.
pub struct StateFile(LockedFile);

impl StateFile {
    /// Fails with [`io::ErrorKind::WouldBlock`] if another bridge serves the file.
    pub fn lock(workplace: &Workplace) -> io::Result<Self> {
        LockedFile::lock(workplace, STATE, "another bridge serves this chat.md and uses").map(Self)
    }

    /// Reads the saved state; `None` if there is no file. A damaged file, or one of a newer version, is an
    /// error of the kind [`io::ErrorKind::InvalidData`].
    pub fn read(&self) -> io::Result<Option<BridgeState>> {
        match self.0.read_json::<BridgeState>(MAX_FILE_BYTES)? {
            Some(state) if state.version != VERSION => {
                Err(self.0.invalid("was written by another version of Parlor"))
            }
            Some(state) if state.pending.as_ref().is_some_and(|pending| !pending.is_consistent()) => {
                Err(self.0.invalid("contains lengths that do not fit its text"))
            }
            state => Ok(state),
        }
    }

    /// Saves an encoded state atomically and durably.
    pub fn save(&self, encoded: &[u8]) -> io::Result<()> {
        self.0.replace(encoded)
    }
}

pub fn encode(state: &BridgeState) -> Vec<u8> {
    serde_json::to_vec(state).expect("the state consists of texts and numbers")
}

#[cfg(test)]
mod tests;
