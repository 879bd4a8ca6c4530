//! Feeds: deliver each committed event to every connection that may see it at that moment.
//!
//! Permissions follow from the same events, in order: a member added or removed at `Seq` n receives the events of
//! the room after n, or up to n. A subscription is opened in four steps (`open`), without a read of the store under
//! the fan-out's lock. A frame for many subscribers of one protocol is encoded once and shared. Nothing here knows
//! the scheduler: it publishes through the fan-out and is a projection of the log tailer.

mod activities;
mod batching;
mod fanout;
mod log_tailer;
mod open;
mod ordinals;
pub(crate) mod presence;
mod queue;
mod replay_buffer;
mod reply_buffer;
mod reply_text;
mod reservations;
mod revocation;
mod room_roots;
mod room_state;
mod subscribe;
mod topic_subscribers;

pub use fanout::Fanout;
pub use log_tailer::{LogTailer, Projection};
pub use queue::{Drained, Outbox, OutboxLimits};
pub use reply_buffer::{ReplyBuffer, ReplyLimits};
pub use reply_text::ChunkRejected;
pub use room_roots::RoomRoots;
pub use subscribe::RoomFilter;

use bytes::Bytes;
use parlor_model::{Delivery, Epoch, LoggedEvent, Message, Principal, RoomId, Signal, SignalStamp, UserId};
use std::sync::Arc;

/// Encoder of one protocol: returns complete bytes for its kind of socket, framing included.
pub trait Egress: Send + Sync {
    /// Returns `None` if this protocol has no frame for the event.
    fn event(&self, logged_event: &LoggedEvent, epoch: Epoch) -> Option<Bytes>;
    /// Encodes an earlier event whose state still applies, such as an open approval, for a late joiner.
    fn replay_event(&self, logged_event: &LoggedEvent, epoch: Epoch, _: SignalStamp) -> Option<Bytes> {
        self.event(logged_event, epoch)
    }
    /// Encodes the notice to a user who has just lost access to the room through the event `by`.
    fn room_lost(&self, room: &RoomId, by: &LoggedEvent) -> Option<Bytes>;
    fn delivery(&self, message: &Message, delivery: &Delivery) -> Option<Bytes>;
    fn signal(&self, signal: &Signal, given: SignalStamp) -> Option<Bytes>;
    fn disconnect_frame(&self, reason: DisconnectReason) -> Bytes;
    /// Whether all connections of the protocol share this encoder: then its frames are worth caching.
    fn is_shared(&self) -> bool {
        true
    }
    /// Whether subscribers receive the events of all their rooms in one total order. Otherwise only the order
    /// within each room is kept.
    fn is_totally_ordered(&self) -> bool {
        false
    }
}

/// Reason why the hub closes a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisconnectReason {
    TooSlow,
    Revoked,
    ShuttingDown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SubscriberId(pub(crate) u64);

/// One authenticated connection. A socket may own several.
#[derive(Clone)]
pub struct Subscriber {
    pub id: SubscriberId,
    pub user: UserId,
    pub principal: Principal,
    pub egress: Arc<dyn Egress>,
    pub outbox: Arc<Outbox>,
    /// Whether this connection makes its user count as online.
    pub present: bool,
    /// Whether this connection receives events only while it follows rooms ([`crate::Hub::follow`]). An event
    /// that is published before that is part of the replay; delivering it at once would repeat it.
    pub only_follows: bool,
}

#[cfg(test)]
mod tests;
