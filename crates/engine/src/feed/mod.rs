//! Feeds: deliver each committed event to every connection that may see it at that moment.
//!
//! Permissions follow from the same events, in order: a member added at `Seq` n receives the events of the room
//! after n, and a member removed at n receives those up to n. A subscription is opened in four steps (`open`),
//! without a read of the store under the fan-out's lock. Queues hold typed items that all subscribers share; the
//! writer of a connection encodes them, once per codec. This module does not depend on the scheduler, which is a
//! projection of the log tailer and publishes through the fan-out.

mod activities;
mod attach;
mod backlog;
mod batching;
mod fanout;
mod in_process;
mod interest;
mod item;
mod log_tailer;
pub(crate) mod merged_replies;
mod names;
pub(crate) mod occupants;
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
mod session;
mod subscribe;
mod topic_subscribers;
mod viewers;

pub use fanout::Fanout;
pub use in_process::Feed;
pub use interest::{Codec, Kinds, Order, RoomFilter};
pub use item::{
    Encoded, Entry, Events, Item, Live, LiveFrame, LostRoom, Mail, MailGroup, NumberedSignal, Opened,
    OpenedFrame, Resync, Shared,
};
pub use log_tailer::{LogTailer, Projection};
pub use merged_replies::Begun;
pub use names::Names;
pub use occupants::{
    Access, Occupancy, OccupantHistory, OccupantList, OccupantRecord, OccupantUpdate, PresenceGuard,
    SharedOccupants,
};
pub use queue::{Drained, Outbox, OutboxLimits};
pub use reply_buffer::{ReplyBuffer, ReplyLimits};
pub use reply_text::{ChunkRejected, ReplyPiece};
pub use room_roots::RoomRoots;
pub use session::{Encoding, Interest, NewSession, Open, Session, Since};

use parlor_model::{Principal, UserId};
use std::sync::Arc;

/// Reason why the hub closes a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisconnectReason {
    TooSlow,
    Revoked,
    ShuttingDown,
    /// The hub could not read the events that the connection missed.
    Unavailable,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SubscriberId(pub(crate) u64);

/// One encoding of a session.
#[derive(Clone)]
pub struct Subscriber {
    pub id: SubscriberId,
    pub user: UserId,
    pub principal: Principal,
    pub outbox: Arc<Outbox>,
    pub codec: Codec,
    pub kinds: Kinds,
    pub order: Order,
    /// Whether this connection makes its user count as online.
    pub present: bool,
    /// Whether the client enters presence sets itself, so that the hub derives no member from this connection.
    pub enters_places: bool,
    /// Whether this connection receives events only while it follows rooms ([`Interest::MyRooms`]). An event
    /// that is published before that is part of the replay; delivering it at once would repeat it.
    pub only_follows: bool,
}

impl Subscriber {
    /// Whether the hub derives members of presence sets from this connection.
    fn derives_members(&self) -> bool {
        self.present && !self.enters_places
    }

    fn set_encoding(&mut self, Encoding { codec, kinds, order }: Encoding) {
        (self.codec, self.kinds, self.order) = (codec, kinds, order);
        self.only_follows = order.only_follows();
    }
}

#[cfg(test)]
mod tests;
