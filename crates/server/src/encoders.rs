//! Encoders: turn the items of a connection's queue into bytes, framing included.
//!
//! The writer of each connection encodes. An item of a numbered codec is encoded by the first writer that needs it and
//! shared with all others, so its bytes must depend on the item alone.

use crate::ably::AblyEncoder;
use crate::agentim::ClientEncoder;
use crate::agentim::page::PageEncoder;
use crate::broker::{BrokerEncoder, RoomEncoder};
use crate::events::EventsEncoder;
use crate::gateway::GatewayEncoder;
use bytes::{Bytes, BytesMut};
use parlor_engine::feed::{
    Codec, DisconnectReason, Encoded, Encoding, Entry, Item, Kinds, Names, OccupantList, Order,
};
use parlor_model::{Delivery, Epoch, LoggedEvent, Message, RoomId, Signal, SignalStamp};
use parlor_wire::ably::frames::Format;
use parlor_wire::events::frames::StreamFormat;
use std::sync::Arc;

/// Frames of `/ws/client`: all items but those of runs.
pub const CLIENT: Encoding = Encoding {
    codec: Codec::new(0),
    kinds: Kinds::MESSAGES.with(Kinds::CHANGES).with(Kinds::SIGNALS).with(Kinds::REPLY_TEXT),
    order: Order::PerRoom,
};
/// Chat events as frames on `/ws/client`.
pub const EVENT_FRAMES: Encoding = Encoding { codec: Codec::new(1), ..EVENT_STREAM };
/// Chat events as server-sent events, without a filter.
pub const EVENT_STREAM: Encoding = Encoding { codec: Codec::new(2), kinds: Kinds::ALL, order: Order::Log };
/// Mail on `/ws/broker`.
pub const BROKER: Encoding = Encoding { codec: Codec::new(3), kinds: Kinds::NONE, order: Order::PerRoom };
/// Events of rooms on `/ws/broker`.
pub const BROKER_ROOMS: Encoding =
    Encoding { codec: Codec::new(4), kinds: Kinds::MESSAGES.with(Kinds::CHANGES), order: Order::PerRoom };
/// Runs in sessions of the user's agents on `/ws/broker`.
pub const BROKER_SESSIONS: Encoding = Encoding {
    kinds: Kinds::RUNS.with(Kinds::REPLY_TEXT).with(Kinds::CHANGES).with(Kinds::SESSIONS),
    ..BROKER
};
/// Frames of `client:follow`: each change once, as an AgentIM frame or, if there is none, as a chat event.
pub const PAGE: Encoding = Encoding { codec: Codec::new(6), ..EVENT_STREAM };
/// Frames of the Ably protocol, by format. The kinds are those of the opened channels.
pub const ABLY_JSON: Encoding = Encoding { codec: Codec::new(7), kinds: Kinds::NONE, order: Order::PerRoom };
pub const ABLY_MSGPACK: Encoding = Encoding { codec: Codec::new(8), ..ABLY_JSON };
pub const GATEWAY: Encoding = Encoding { codec: Codec::new(5), kinds: Kinds::NONE, order: Order::PerRoom };

/// Encoder of one protocol. A method returns `None` if the protocol has no frame for the item. `root` is the project
/// root that the item's room had when it was published.
pub trait Encoder: Send + Sync {
    fn event(&self, _: &LoggedEvent, _root: Option<&str>) -> Option<Bytes> {
        None
    }
    /// Encodes the request of an open approval for a late joiner.
    fn open_approval(&self, asked: &LoggedEvent, _: SignalStamp, root: Option<&str>) -> Option<Bytes> {
        self.event(asked, root)
    }
    /// Encodes the notice to a user who has just lost access to the room through the event `by`.
    fn room_lost(&self, _: &RoomId, _by: &LoggedEvent, _root: Option<&str>) -> Option<Bytes> {
        None
    }
    fn delivery(&self, _: &Message, _: &Delivery) -> Option<Bytes> {
        None
    }
    fn signal(&self, _: &Signal, _: SignalStamp, _root: Option<&str>) -> Option<Bytes> {
        None
    }
    /// Encodes a part of a place's presence set.
    fn occupants(&self, _: &OccupantList) -> Option<Bytes> {
        None
    }
    /// Last bytes of a connection that the hub closes.
    fn disconnect(&self, reason: DisconnectReason) -> Bytes;
}

/// The encoders of all numbered codecs.
pub struct Encoders([Arc<dyn Encoder>; 9]);

impl Encoders {
    pub fn new(epoch: Epoch, names: &Arc<Names>) -> Self {
        let ably = |format| Arc::new(AblyEncoder { format, epoch, names: names.clone() });
        Self([
            Arc::new(ClientEncoder { epoch }),
            Arc::new(EventsEncoder::new(StreamFormat::Frame, epoch)),
            Arc::new(EventsEncoder::new(StreamFormat::Block, epoch)),
            Arc::new(BrokerEncoder),
            Arc::new(RoomEncoder { epoch }),
            Arc::new(GatewayEncoder),
            Arc::new(PageEncoder { epoch }),
            ably(Format::Json),
            ably(Format::Msgpack),
        ])
    }
}

/// The encoders of one connection.
#[derive(Clone)]
pub struct ConnectionEncoder {
    shared: Arc<Encoders>,
    /// Encode the private items of the connection, by the index of their codec; the first one also encodes its end.
    own: Arc<[Arc<dyn Encoder>]>,
}

impl ConnectionEncoder {
    /// A connection whose protocol has this encoding.
    pub fn of(encoders: &Arc<Encoders>, encoding: Encoding) -> Self {
        let slot = encoding.codec.slot().expect("a protocol has a numbered codec");
        Self { shared: encoders.clone(), own: [encoders.0[slot].clone()].into() }
    }

    /// A connection with encodings of its own, at least one.
    pub fn private(encoders: &Arc<Encoders>, own: Arc<[Arc<dyn Encoder>]>) -> Self {
        Self { shared: encoders.clone(), own }
    }

    /// Encodes an item; `None` if its protocol has no frame for it.
    pub fn encode<'a>(&self, entry: &'a Entry) -> Option<Encoded<'a>> {
        let Entry { codec, item } = entry;
        let encoder: &dyn Encoder = match codec.slot() {
            Some(slot) => &*self.shared.0[slot],
            None => {
                let own = codec.private_index().and_then(|index| self.own.get(index));
                &**own.unwrap_or(&self.own[0])
            }
        };
        match item {
            Item::Frames(frames) => Some(Encoded::Shared(frames)),
            Item::Events(events) => events.encoded(*codec, |events| {
                let root = events.root.as_deref();
                concat(events.value.iter().filter_map(|logged_event| encoder.event(logged_event, root)))
            }),
            Item::Mail(mail) => mail.encoded(*codec, |mail| {
                concat(mail.value.iter().filter_map(|mail| encoder.delivery(&mail.message, mail.delivery())))
            }),
            Item::Signal(signal) => signal.encoded(*codec, |shared| {
                let (signal, stamp) = &shared.value;
                encoder.signal(signal, *stamp, shared.root.as_deref())
            }),
            Item::ReplyText(piece) => piece
                .encoded(*codec, |signal, stamp, root| encoder.signal(signal, stamp, root))
                .map(Encoded::Own),
            Item::OpenApproval { asked, stamp } => {
                let asked_event = asked.value.first()?;
                encoder.open_approval(asked_event, *stamp, asked.root.as_deref()).map(Encoded::Own)
            }
            Item::RoomLost(lost) => lost.encoded(*codec, |lost| {
                encoder.room_lost(&lost.value.room, &lost.value.by, lost.root.as_deref())
            }),
            Item::Occupants(occupants) => {
                occupants.encoded(*codec, |occupants| encoder.occupants(&occupants.value))
            }
            Item::Opened { opened, frame } => Some(Encoded::Own(frame(opened))),
            Item::Live { live, frame } => Some(Encoded::Own(frame(live))),
        }
    }

    /// Encodes a private item in place, so that it holds nothing but its bytes while it is written.
    pub fn settle(&self, entry: &mut Entry) {
        let own = match self.encode(entry) {
            Some(Encoded::Shared(_)) => return,
            Some(Encoded::Own(bytes)) => bytes,
            None => Bytes::new(),
        };
        entry.item = Item::Frames(own);
    }

    /// Last bytes of a connection that the hub closes.
    pub fn disconnect(&self, reason: DisconnectReason) -> Bytes {
        self.own[0].disconnect(reason)
    }
}

/// Joins the frames of a group into one buffer.
pub fn concat(mut frames: impl Iterator<Item = Bytes>) -> Option<Bytes> {
    let first = frames.next()?;
    let Some(second) = frames.next() else { return Some(first) };
    let mut joined = BytesMut::from(&first[..]);
    joined.extend_from_slice(&second);
    frames.for_each(|frame| joined.extend_from_slice(&frame));
    Some(joined.freeze())
}
