//! Limits of the engine: sizes, queue capacities, concurrency, run budgets and timeouts.
//!
//! The embedding program fills them from its settings; `Limits::default()` holds the defaults.

use std::path::Path;
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Limits {
    pub message_characters: usize,
    pub attachments: usize,
    /// Maximum number of different reactions to one message.
    pub reactions: usize,
    /// Maximum number of pinned messages in one room.
    pub pins: usize,
    /// Maximum number of bookmarks of one user.
    pub bookmarks: usize,
    /// Capacity of the command queue; when it is full, callers wait.
    pub max_queued_commands: usize,
    /// Maximum number of commands in one commit.
    pub max_commit_batch: usize,
    /// Capacity of the replay buffer, in events, for reconnecting clients.
    pub recent_events: usize,
    /// Maximum bytes of text in the replay buffer; the oldest events are dropped first.
    pub recent_bytes: usize,
    /// Maximum number of concurrent reads for callers; further reads wait. Must be lower than the number of
    /// readers of the store: one is reserved for the log tailer, and one for the garbage collector of blobs.
    pub reads: usize,
    /// Maximum number of concurrent searches; further searches wait, so that other queries are not starved. A
    /// search returns the results found within `search_timeout`.
    pub searches: usize,
    pub search_timeout: Duration,
    /// Number of unindexed events from which the search index is updated when the writer is idle.
    pub unindexed: usize,
    /// Number of unindexed events from which the index is updated even under load: more than a search can
    /// scan within `search_timeout`.
    pub most_unindexed: usize,
    /// Whether the hub creates a welcome room with a guide for the first admin, and adds all later users to
    /// it.
    pub welcome: bool,
    /// Whether an account can be created without an invitation.
    pub open_registration: bool,
    /// Maximum number of answers of agents in a chain that a user's message starts.
    pub chain_depth: u32,
    /// Whether members of a room may add their own agents to it, not only its admins.
    pub members_add_agents: bool,
    /// Maximum number of runs that one agent may trigger for another in a room within `pair_window`.
    pub pair_turns: u64,
    pub pair_window: Duration,
    /// Maximum number of replies of an agent within one minute that may still address other agents.
    pub agent_messages: u64,
    /// Maximum number of runs and of tokens of one agent in one room within a day.
    pub room_turns: u64,
    pub room_tokens: u64,
    /// Timeout for the triage decision whether an agent should answer.
    pub triage_timeout: Duration,
    /// Runs per agent and room that start although triage failed: this many at once, then one per
    /// `triage_fallback_interval`.
    pub triage_fallback_burst: u32,
    pub triage_fallback_interval: Duration,
    /// Delays before mail of a failed turn is pending again, after the first, second, … attempt. After one attempt more
    /// than there are delays, and at the latest after the fifth, it becomes a dead letter.
    pub turn_retry_delays: Vec<Duration>,
    /// Maximum bytes of one reply, and maximum number of its chunks that cannot be merged.
    pub reply_bytes: usize,
    pub reply_chunks: usize,
    /// Maximum number of open approvals, in total and per run.
    pub approvals: usize,
    pub run_approvals: usize,
    /// Maximum bytes of all open approvals of one room: all of them are sent to each subscriber that joins.
    pub approval_bytes: usize,
    /// Maximum number of members of presence sets: in total, of one place and of one connection. Derived members do not
    /// count.
    pub occupants: usize,
    pub place_occupants: usize,
    pub connection_occupants: usize,
    /// Maximum bytes of one member's names and data, and of all members.
    pub occupant_bytes: usize,
    pub all_occupant_bytes: usize,
    /// Grace period after which the members of a lost connection leave.
    pub occupant_grace: Duration,
    /// Maximum bytes of the history of all presence sets; the oldest records are dropped first.
    pub occupant_history_bytes: usize,
    /// Grace period that a run survives the loss of its gateway.
    pub gateway_grace: Duration,
    /// Folders on the hub's machine that may be project roots, including their subfolders. Paths are
    /// canonical: they contain no symbolic links.
    pub project_roots: Vec<Box<str>>,
    /// Maximum number of batches of events queued for the fan-out; beyond that, it reads the events from the
    /// store.
    pub max_queued_batches: usize,
    /// Maximum time that a caller waits until an event is published, before the hub refuses as unavailable.
    pub reach_timeout: Duration,
    /// Maximum number of entries of each kind in the writer's cache; with 0, nothing is cached.
    pub cache_entries: usize,
    /// Whether the writer compares its cache with the store before each commit. On in debug builds.
    pub verify_cache: bool,
}

impl Limits {
    /// Whether a folder may be a project root. `root` must be canonical, without symbolic links.
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
            open_registration: false,
            chain_depth: 3,
            members_add_agents: false,
            pair_turns: 10,
            pair_window: Duration::from_secs(600),
            agent_messages: 20,
            room_turns: 200,
            room_tokens: 2_000_000,
            triage_timeout: Duration::from_secs(10),
            triage_fallback_burst: 5,
            triage_fallback_interval: Duration::from_secs(60),
            // From a short fault of the network to an outage of a model.
            turn_retry_delays: [5, 30, 120, 600].map(Duration::from_secs).into(),
            reply_bytes: 10 * 1024 * 1024,
            reply_chunks: 5000,
            approvals: 1000,
            run_approvals: 20,
            approval_bytes: 512 * 1024,
            occupants: 50_000,
            place_occupants: 5000,
            connection_occupants: 500,
            occupant_bytes: 64 * 1024,
            all_occupant_bytes: 64 * 1024 * 1024,
            occupant_grace: Duration::from_secs(15),
            occupant_history_bytes: 16 * 1024 * 1024,
            gateway_grace: Duration::from_secs(60),
            project_roots: Vec::new(),
            max_queued_batches: 64,
            reach_timeout: Duration::from_secs(5),
            cache_entries: 20_000,
            verify_cache: cfg!(debug_assertions),
        }
    }
}
