//! Traits for everything the engine needs from outside: store, snapshots, blobs, bus, clock, ids, triage and the
//! folders of agents.
//!
//! The doc comments are the contract. The test suite in `backends/tests/suite` checks every store against it.

mod agent_folders;
mod reads;

pub use agent_folders::{AgentFolders, FolderError, FolderInfo, NoFolders, ToolProgram};
pub use reads::*;

use crate::metrics::StoreSize;
use crate::{Fault, effects::Effects};
use parlor_model::{
    Agent, AgentId, BlobDigest, Destination, Epoch, LoggedEvent, Message, MessageId, Room, RoomId, Router,
    RunId, Seq, Subscription, Time, UserId,
};
use std::io::{Read, Seek};
use std::sync::Arc;

/// Maximum number of an agent's most recently ended runs that are searched for a conversation.
pub const RECENT_RUNS_SEARCHED: usize = 64;

/// The writer's open transaction. Changes become visible to readers and durable when `commit` returns `Ok`;
/// dropping the transaction undoes everything.
pub trait Transaction {
    /// Reads of the state that the transaction would commit now.
    fn lookup(&mut self) -> &mut dyn Lookup;
    fn apply(&mut self, effects: &Effects) -> Result<(), Fault>;
    fn commit(self: Box<Self>) -> Result<(), Fault>;
}

/// The write side of a store, used by the single writer. After a fault of `Severity::Permanent` it refuses
/// everything until it is reopened.
pub trait Store: Send {
    fn begin(&mut self) -> Result<Box<dyn Transaction + '_>, Fault>;
    fn head(&mut self) -> Result<Head, Fault>;
    /// All agents and subscriptions, from which the routing index is built.
    fn subscriptions(&mut self) -> Result<(Vec<Agent>, Vec<Subscription>), Fault>;
    /// Number of reads in the writer's transactions since the store was opened, if the store counts them.
    fn reads(&self) -> u64 {
        0
    }
    /// Periodic work between batches (checkpoints, retention). `now` decides which rows are old. The log is
    /// trimmed only at its beginning and always keeps its newest event. Messages, unless they are kept for
    /// ever, are deleted in slices, and not within 24 hours after a clock jump, because the clock may be
    /// wrong. Returns whether there is more to do.
    fn run_maintenance(&mut self, now: Time) -> Result<bool, Fault>;
    /// Adds at most `limit` of the oldest unindexed messages to the search index and returns the `Seq` up to
    /// which it is complete. A search finds newer messages too, by reading them.
    fn index(&mut self, limit: usize) -> Result<Seq, Fault> {
        let _ = limit;
        Ok(self.head()?.seq)
    }
    /// Called last, on a store without a permanent fault: flushes buffered state such as a write-ahead log.
    fn close(&mut self) -> Result<(), Fault> {
        Ok(())
    }
}

/// Newest position of the log, and how far the log has been trimmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub epoch: Epoch,
    pub seq: Seq,
    /// Time of the newest event, so that event times keep increasing after a restart.
    pub at: Time,
    /// Events up to and including this `Seq` have been trimmed from the log.
    pub trimmed_through: Seq,
}

pub trait Reader: Send + Sync {
    /// Runs `read` on one consistent snapshot. Blocks; must not be called on async threads.
    fn with(&self, read: &mut dyn FnMut(&mut dyn Snapshot) -> Result<(), Fault>) -> Result<(), Fault>;
    /// Size on disk; zero for a store in memory.
    fn size(&self) -> StoreSize {
        StoreSize::default()
    }
}

/// Stores file contents under their digest, so that equal contents are stored once. All methods block; they
/// must not be called on async threads.
pub trait BlobStore: Send + Sync {
    /// Starts an upload. Dropping it before `keep` leaves no data behind.
    fn receive(&self) -> Result<Box<dyn BlobUpload>, Fault>;
    /// Returns `None` if there is no such content.
    fn open(&self, digest: &BlobDigest) -> Result<Option<Box<dyn Content>>, Fault>;
    /// The digests of all contents whose first byte is `first`.
    fn list(&self, first: u8) -> Result<Vec<BlobDigest>, Fault>;
    /// Removes a content unless it is needed; returns whether it was removed. An upload of the same content
    /// cannot complete between the check and the removal. A content with a live [`StoredBlob`] counts as
    /// needed, without a call of `needed`.
    fn remove_unless(
        &self,
        digest: &BlobDigest,
        needed: &mut dyn FnMut() -> Result<bool, Fault>,
    ) -> Result<bool, Fault>;
}

pub trait BlobUpload: Send {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Fault>;
    /// Completes the upload. When it returns, the content survives a power failure.
    fn keep(self: Box<Self>) -> Result<StoredBlob, Fault>;
}

pub trait Content: Read + Seek + Send {}

impl<T: Read + Seek + Send> Content for T {}

/// Stored content of a file. The content is not removed while this value exists; drop the value once the store
/// refers to the digest.
pub struct StoredBlob {
    pub digest: BlobDigest,
    pub size: u64,
    pub hold: Box<dyn Send>,
}

/// Carries committed events from the writer to the log tailer. It may lose, repeat or reorder batches: the
/// log tailer fills gaps from the store.
pub trait Bus: Send + Sync {
    fn publish(&self, events: Arc<[LoggedEvent]>);
    /// Waits for the next batch; returns `TimedOut` when none arrives for a while.
    fn next(&self) -> BusPoll;
}

pub enum BusPoll {
    Batch(Arc<[LoggedEvent]>),
    TimedOut,
    Closed,
}

/// Decides whether an agent should answer an unaddressed message. May be slow and may fail: the run is then
/// started anyway, at the rate of `Limits::triage_fallback_burst`.
pub trait Triage: Send + Sync {
    fn should_answer(&self, case: TriageCase) -> TriageFuture;
}

pub type TriageFuture = std::pin::Pin<Box<dyn Future<Output = Result<bool, Fault>> + Send>>;

/// The message to triage, with the agent in question and its room.
#[derive(Debug, Clone)]
pub struct TriageCase {
    pub agent: Agent,
    /// All agents that could answer the message, including `agent`, by id, so that one model call can decide
    /// for all of them.
    pub candidates: Vec<Agent>,
    pub message: Arc<Message>,
    pub room: Room,
    /// The room's own router for this decision, if it has one.
    pub router: Option<Router>,
}

pub trait Clock: Send + Sync {
    fn now(&self) -> Time;
}

/// Generates unguessable ids.
pub trait IdGenerator: Send + Sync {
    fn next(&self) -> String;
}

/// Filter for open approvals.
#[derive(Debug, Clone, Copy)]
pub enum OpenApprovalsOf<'a> {
    Everybodys,
    Room(&'a RoomId),
    Run(&'a RunId),
    Agent(&'a AgentId),
    /// Approvals without a room, of the agents of this user.
    Owner(&'a UserId),
}

/// Budget consumed by runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BudgetUsage {
    pub turns: u64,
    pub tokens: u64,
}

/// Messages of a room or path between two positions and two times.
#[derive(Debug, Clone, Copy)]
pub struct MessageRange<'a> {
    pub destination: &'a Destination,
    /// Exclusive lower bound.
    pub after: Seq,
    /// Exclusive upper bound.
    pub before: Option<Seq>,
    /// Earliest time. The range begins after the last message before this time, so that a store need not scan earlier
    /// messages.
    pub start: Option<Time>,
    /// Latest time, inclusive.
    pub end: Option<Time>,
    /// Whether the oldest messages come first; otherwise the newest.
    pub forwards: bool,
}

impl<'a> MessageRange<'a> {
    /// All messages of the destination, newest first.
    pub fn all_of(destination: &'a Destination) -> Self {
        Self { destination, after: Seq(0), before: None, start: None, end: None, forwards: false }
    }
}

/// Client key that makes a retry return the receipt of the first request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IdempotencyKey {
    pub kind: IdempotencyKind,
    /// The sender or the source that chose the key.
    pub owner: Box<str>,
    pub key: Box<str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IdempotencyKind {
    ClientMessage = 1,
    External = 2,
    /// Key for the late reply of a run that the hub had already ended.
    Late = 3,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstRequest {
    /// Digest of the whole body, to distinguish a retry from a different message with the same key.
    pub digest: [u8; 16],
    pub message: MessageId,
    pub seq: Seq,
}
