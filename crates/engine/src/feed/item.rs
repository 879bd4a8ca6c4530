//! Items of a connection's queue: typed and shared by all subscribers, with one cached encoding per codec.

use super::Codec;
use super::occupants::{OccupantList, SharedOccupants};
use super::reply_text::ReplyPiece;
use bytes::Bytes;
use parlor_model::{Delivery, Event, LoggedEvent, Message, Position, RoomId, Signal, SignalStamp};
use std::sync::{Arc, OnceLock};

/// Weight of an item beside its text: fields, names and framing.
const ITEM_WEIGHT: usize = 256;

/// A value for many subscribers. The first connection writer that needs an encoding creates it.
pub struct Shared<T> {
    pub value: T,
    /// Project root of the room when the value was published. Encoders must not look it up later.
    pub root: Option<Arc<str>>,
    weight: usize,
    encoded: [OnceLock<Option<Bytes>>; Codec::SLOTS],
}

impl<T> Shared<T> {
    fn new(value: T, root: Option<Arc<str>>, weight: usize) -> Arc<Self> {
        Arc::new(Self { value, root, weight, encoded: Default::default() })
    }

    /// The encoding of this codec, created by `encode` if it is the first use. A private encoding is not cached.
    pub fn encoded(&self, codec: Codec, encode: impl FnOnce(&Self) -> Option<Bytes>) -> Option<Encoded<'_>> {
        match codec.slot() {
            Some(slot) => self.encoded[slot].get_or_init(|| encode(self)).as_ref().map(Encoded::Shared),
            None => encode(self).map(Encoded::Own),
        }
    }
}

/// Encoded bytes of an item.
pub enum Encoded<'a> {
    Shared(&'a Bytes),
    Own(Bytes),
}

impl std::ops::Deref for Encoded<'_> {
    type Target = Bytes;

    fn deref(&self) -> &Bytes {
        match self {
            Self::Shared(bytes) => bytes,
            Self::Own(bytes) => bytes,
        }
    }
}

/// Events of one room, or a single event without a room, from one commit.
pub type Events = Shared<Box<[LoggedEvent]>>;

impl Events {
    pub fn of(events: Box<[LoggedEvent]>, root: Option<Arc<str>>) -> Arc<Self> {
        let weight = events.iter().map(|logged_event| weight(&logged_event.event)).sum();
        Self::new(events, root, weight)
    }
}

pub type NumberedSignal = Shared<(Signal, SignalStamp)>;

impl NumberedSignal {
    pub fn of(signal: Signal, stamp: SignalStamp, root: Option<Arc<str>>) -> Arc<Self> {
        let weight = ITEM_WEIGHT + signal.length();
        Self::new((signal, stamp), root, weight)
    }
}

/// A copy of a message for one mailbox.
pub struct Mail {
    pub message: Arc<Message>,
    deliveries: Arc<[Delivery]>,
    index: usize,
}

impl Mail {
    pub fn new(message: &Arc<Message>, deliveries: &Arc<[Delivery]>, index: usize) -> Self {
        Self { message: message.clone(), deliveries: deliveries.clone(), index }
    }

    pub fn delivery(&self) -> &Delivery {
        &self.deliveries[self.index]
    }

    pub fn weight(&self) -> usize {
        ITEM_WEIGHT + self.message.length()
    }
}

/// New mail of one mailbox from one commit.
pub type MailGroup = Shared<Box<[Mail]>>;

impl MailGroup {
    pub fn of(mail: Box<[Mail]>) -> Arc<Self> {
        let weight = mail.iter().map(Mail::weight).sum();
        Self::new(mail, None, weight)
    }
}

/// Notice to a user who has just lost access to a room.
pub struct LostRoom {
    pub room: RoomId,
    /// The event that ended the access.
    pub by: LoggedEvent,
}

impl Shared<LostRoom> {
    pub fn of(room: &RoomId, by: &LoggedEvent, root: Option<Arc<str>>) -> Arc<Self> {
        Self::new(LostRoom { room: room.clone(), by: by.clone() }, root, ITEM_WEIGHT)
    }
}

impl SharedOccupants {
    pub fn of(occupants: OccupantList) -> Arc<Self> {
        let members = occupants.occupants.iter().map(|occupant| ITEM_WEIGHT + occupant.length());
        let weight = ITEM_WEIGHT + members.sum::<usize>();
        Self::new(occupants, None, weight)
    }
}

/// Facts of a feed that has been opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    /// The events after this position follow.
    pub from: Position,
    /// Whether events that the subscriber has missed follow before the live ones.
    pub missed: bool,
    /// Set if the position to resume from was unknown: earlier events are missing.
    pub resync: Option<Resync>,
}

/// Encodes the frame of [`Item::Opened`]. Called by the connection's writer.
pub type OpenedFrame = Arc<dyn Fn(&Opened) -> Bytes + Send + Sync>;

/// Marks the point from which the events of a feed are live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Live {
    /// All events up to this position have been sent before.
    pub at: Position,
    /// Set if the position to resume from was unknown: earlier events are missing.
    pub resync: Option<Resync>,
}

/// Loss of events that cannot be replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resync {
    /// Number of events between the unknown position and the head of the log, if they are of the same epoch.
    pub lost: Option<u64>,
    pub stamp: SignalStamp,
}

/// Encodes the frame of [`Item::Live`]. Called by the connection's writer.
pub type LiveFrame = Arc<dyn Fn(&Live) -> Bytes + Send + Sync>;

/// One item of a queue.
#[derive(Clone)]
pub enum Item {
    /// Frames of the connection itself: replies, pongs, close frames.
    Frames(Bytes),
    Events(Arc<Events>),
    Mail(Arc<MailGroup>),
    Signal(Arc<NumberedSignal>),
    /// Next part of a streaming reply.
    ReplyText(ReplyPiece),
    /// An open approval for a late joiner, with an ordinal of its own.
    OpenApproval {
        asked: Arc<Events>,
        stamp: SignalStamp,
    },
    RoomLost(Arc<Shared<LostRoom>>),
    /// Part of a place's presence set. It follows the opening of a feed of the place.
    Occupants(Arc<SharedOccupants>),
    /// The feed is open: its missed events follow, then its live ones.
    Opened {
        opened: Opened,
        frame: OpenedFrame,
    },
    /// The missed events are complete; the following items are live.
    Live {
        live: Live,
        frame: LiveFrame,
    },
}

impl Item {
    /// Estimated number of encoded bytes.
    pub fn weight(&self) -> usize {
        match self {
            Self::Frames(bytes) => bytes.len(),
            Self::Events(events) | Self::OpenApproval { asked: events, .. } => events.weight,
            Self::Mail(mail) => mail.weight,
            Self::Signal(signal) => signal.weight,
            Self::RoomLost(lost) => lost.weight,
            Self::Occupants(occupants) => occupants.weight,
            Self::ReplyText(_) | Self::Opened { .. } | Self::Live { .. } => ITEM_WEIGHT,
        }
    }

    /// Number of events that are lost if the item is dropped.
    pub fn events(&self) -> u64 {
        match self {
            Self::Events(events) => events.value.len() as u64,
            _ => 1,
        }
    }
}

/// An item, with the encoding that its subscription uses.
#[derive(Clone)]
pub struct Entry {
    pub codec: Codec,
    pub item: Item,
}

fn weight(event: &Event) -> usize {
    let members = match event {
        Event::MembersChanged { members, .. } => members.len() * ITEM_WEIGHT,
        _ => 0,
    };
    ITEM_WEIGHT + members + event.length()
}
