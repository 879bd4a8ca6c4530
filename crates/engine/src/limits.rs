//! How much of everything. The settings of the hub decide about the first three.

use std::path::Path;
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
    pub max_queued_commands: usize,
    /// Commands that share one commit at most.
    pub max_commit_batch: usize,
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
    pub search_timeout: Duration,
    /// Events that may lie beyond the index for searches before it is brought up to them, when nothing else is
    /// to be done.
    pub unindexed: usize,
    /// Beyond these it is done whatever waits: more than a search can read in its time.
    pub most_unindexed: usize,
    /// Whether the first admin finds a room with a guide in it, and everybody who comes later is in it.
    pub welcome: bool,
    /// How many agents may stand between a person and a turn.
    pub chain_depth: u32,
    /// How often one agent may address another in a room, within the time of this window.
    pub pair_turns: u64,
    pub pair_window: Duration,
    /// How often an agent may speak within a minute and still address others.
    pub agent_messages: u64,
    /// Turns and tokens of one agent in one room within a day.
    pub room_turns: u64,
    pub room_tokens: u64,
    /// How long it may take to decide whether an agent should answer.
    pub triage_timeout: Duration,
    /// Turns that an agent gets in a room though nobody could decide that: so many at once, and then one each time.
    pub triage_fallback_burst: u32,
    pub triage_fallback_interval: Duration,
    /// How long one reply may be, and of how many chunks that do not flow together.
    pub reply_bytes: usize,
    pub reply_chunks: usize,
    /// Questions of agents that may be open: in all, and of one turn.
    pub approvals: usize,
    pub run_approvals: usize,
    /// How long what is open in one room may be together: all of it is shown to who joins.
    pub approval_bytes: usize,
    /// How long a turn waits for a gateway that was lost before it is given up.
    pub gateway_grace: Duration,
    /// Rooms may be about these folders of the hub's machine and what lies below, and no others. Without any link in
    /// their way.
    pub project_roots: Vec<Box<str>>,
    /// Batches of news that may wait for the fan-out; beyond that it reads the store instead.
    pub max_queued_batches: usize,
}

impl Limits {
    /// Whether rooms may be about this folder, whose path has no link in its way either.
    pub fn allows_root(&self, root: &str) -> bool {
        self.project_roots.iter().any(|allowed| Path::new(root).starts_with(&**allowed))
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_characters: 100_000,
            attachments: 20,
            reactions: 20,
            pins: 100,
            bookmarks: 10_000,
            max_queued_commands: 8192,
            max_commit_batch: 1024,
            recent_events: 1024,
            recent_bytes: 16 * 1024 * 1024,
            reads: 4,
            searches: 2,
            search_timeout: Duration::from_millis(500),
            unindexed: 1000,
            most_unindexed: 500_000,
            welcome: false,
            chain_depth: 3,
            pair_turns: 10,
            pair_window: Duration::from_secs(600),
            agent_messages: 20,
            room_turns: 200,
            room_tokens: 2_000_000,
            triage_timeout: Duration::from_secs(10),
            triage_fallback_burst: 5,
            triage_fallback_interval: Duration::from_secs(60),
            reply_bytes: 10 * 1024 * 1024,
            reply_chunks: 5000,
            approvals: 1000,
            run_approvals: 20,
            approval_bytes: 512 * 1024,
            gateway_grace: Duration::from_secs(60),
            project_roots: Vec::new(),
            max_queued_batches: 64,
        }
    }
}
