//! How much of everything. The settings of the hub decide about the first three.

use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Limits {
    pub message_characters: usize,
    pub attachments: usize,
    /// Different reactions to one message.
    pub reactions: usize,
    /// Pinned messages of one room.
    pub pins: usize,
    /// Bookmarks of one person.
    pub bookmarks: usize,
    /// Commands that may wait for the writer; a full queue makes senders wait.
    pub waiting_commands: usize,
    /// Commands that share one commit at most.
    pub group: usize,
    /// Events kept in memory for those who come back quickly.
    pub recent_events: usize,
    /// How much of what people said these may hold together; the oldest are let go first.
    pub recent_bytes: usize,
    /// Reads for callers at once; the rest wait. Fewer than the store has readers: one is for those who join
    /// while the fan-out waits for them, one for the fan-out itself, and one for who removes files.
    pub reads: usize,
    /// Searches at once; the rest wait, so that they leave reads for others. Each answers with what it has
    /// when its time is over.
    pub searches: usize,
    pub search_patience: Duration,
    /// Events that may lie beyond the index for searches before it is brought up to them, when nothing else is
    /// to be done.
    pub unindexed: usize,
    /// Beyond these it is done whatever waits: more than a search can read in its time.
    pub most_unindexed: usize,
    /// Batches of news that may wait for the fan-out; beyond that it reads the store instead.
    pub waiting_news: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_characters: 100_000,
            attachments: 20,
            reactions: 20,
            pins: 100,
            bookmarks: 10_000,
            waiting_commands: 8192,
            group: 1024,
            recent_events: 1024,
            recent_bytes: 16 * 1024 * 1024,
            reads: 4,
            searches: 2,
            search_patience: Duration::from_millis(500),
            unindexed: 1000,
            most_unindexed: 500_000,
            waiting_news: 64,
        }
    }
}
