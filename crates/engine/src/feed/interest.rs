//! Codecs, orders and kinds of items, and the filter for the rooms that a connection follows.

use parlor_model::{Event, RoomId, Signal};

/// Index of an encoding's cache slot in every [`super::Shared`]. The protocol adapters number their encodings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Codec(u8);

impl Codec {
    /// Number of cache slots.
    pub const SLOTS: usize = 12;
    /// Maximum number of encodings that a connection has for itself.
    pub const PRIVATES: usize = 16;
    /// An encoding of a single connection, such as a filtered stream: nothing is cached.
    pub const PRIVATE: Self = Self::private(0);

    pub const fn new(slot: u8) -> Self {
        assert!((slot as usize) < Self::SLOTS);
        Self(slot)
    }

    /// Returns one of the private encodings of a connection. Feeds with different encodings are separate.
    pub const fn private(index: u8) -> Self {
        assert!((index as usize) < Self::PRIVATES);
        Self(u8::MAX - index)
    }

    /// The cache slot; `None` for a private encoding.
    pub fn slot(self) -> Option<usize> {
        (usize::from(self.0) < Self::SLOTS).then_some(self.0.into())
    }

    /// Index of a private encoding among those of its connection.
    pub fn private_index(self) -> Option<usize> {
        self.slot().is_none().then_some((u8::MAX - self.0).into())
    }
}

/// Order across rooms. Within a room it is always the order of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// All events of a room and a commit are one group.
    PerRoom,
    /// The order of the log; only adjacent events of one room are grouped.
    Log,
}

impl Order {
    /// Whether a connection with this order receives events only while it follows rooms ([`super::Interest::MyRooms`]).
    pub(super) fn only_follows(self) -> bool {
        self == Self::Log
    }
}

/// Bit mask of the kinds of items that a connection has frames for. The fan-out tests it before it queues an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kinds(u8);

impl Kinds {
    pub const NONE: Self = Self(0);
    /// Posted messages and their changes.
    pub const MESSAGES: Self = Self(1);
    /// All other changes of rooms and accounts.
    pub const CHANGES: Self = Self(1 << 1);
    /// Typing, terminals, answers and the status of users and agents.
    pub const SIGNALS: Self = Self(1 << 2);
    /// Text of streaming replies.
    pub const REPLY_TEXT: Self = Self(1 << 3);
    /// Text of streaming replies, merged per interval, and their starts and failures.
    pub const MERGED_REPLIES: Self = Self(1 << 6);
    /// Runs, the activities in them, and backlogs.
    pub const RUNS: Self = Self(1 << 4);
    /// Presence sets of places and their changes.
    pub const PRESENCE: Self = Self(1 << 5);
    /// Complete replies of runs in sessions, and the sessions in which agents work.
    pub const SESSIONS: Self = Self(1 << 7);
    /// All items except presence sets, which which a subscriber must request, and merged or complete replies, which repeat
    /// the text of the single chunks.
    pub const ALL: Self = Self(!(Self::PRESENCE.0 | Self::MERGED_REPLIES.0 | Self::SESSIONS.0));

    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub fn includes(self, kind: Self) -> bool {
        self.0 & kind.0 != 0
    }

    pub fn of_event(event: &Event) -> Self {
        match event {
            Event::MessagePosted { .. }
            | Event::MessageEdited(_)
            | Event::MessageDeleted { .. }
            | Event::ReactionsChanged { .. } => Self::MESSAGES,
            Event::RunChanged(_) => Self::RUNS,
            _ => Self::CHANGES,
        }
    }

    pub fn of_signal(signal: &Signal) -> Self {
        match signal {
            Signal::Chunk { .. } => Self::REPLY_TEXT,
            Signal::Reply { .. } | Signal::AgentsDismissed { .. } => Self::MERGED_REPLIES,
            Signal::RunEvent { .. } | Signal::Activity { .. } | Signal::Queue { .. } | Signal::Refresh => {
                Self::RUNS
            }
            Signal::SessionReply { .. } | Signal::AgentSessions(_) => Self::SESSIONS,
            Signal::Occupant { .. } => Self::PRESENCE,
            _ => Self::SIGNALS,
        }
    }
}

/// The rooms that a connection follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoomFilter {
    /// All rooms of its user, including rooms joined later.
    All,
    Only(RoomId),
}

impl RoomFilter {
    pub fn includes(&self, room: &RoomId) -> bool {
        match self {
            Self::All => true,
            Self::Only(only) => only == room,
        }
    }
}
