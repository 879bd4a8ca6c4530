//! Encoders of realtime connections: one per format for all connections, and those of a single connection that does not
//! receive its own messages or names channels with parameters.

use super::jaibber;
use crate::connection::frame;
use crate::encoders::{Encoder, concat};
use bytes::Bytes;
use parking_lot::Mutex;
use parlor_engine::feed::{Codec, DisconnectReason, Names, OccupantList};
use parlor_model::{Destination, Epoch, Event, LoggedEvent, Occupant, RoomId, Signal, SignalStamp};
use parlor_wire::ably::channel::Channel;
use parlor_wire::ably::codes::{self, ErrorInfo};
use parlor_wire::ably::frames::{Action, Format, Frame};
use parlor_wire::ably::presence::PresenceAction;
use parlor_wire::ably::serial::{ConnectionId, sync_serial};
use parlor_wire::ably::{egress, occupants};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// Encodes a frame as a WebSocket message.
pub fn encode(frame: &Frame<'_>, format: Format) -> Bytes {
    message(&format.encode(frame), format)
}

fn message(payload: &[u8], format: Format) -> Bytes {
    match format {
        Format::Json => frame::text_of_utf8(payload),
        Format::Msgpack => frame::binary(payload),
    }
}

/// Maximum number of members in one SYNC frame.
const MEMBERS_PER_SYNC: usize = 100;

/// Encoder of all connections with one format.
pub struct AblyEncoder {
    pub format: Format,
    pub epoch: Epoch,
    pub names: Arc<Names>,
}

impl AblyEncoder {
    fn event_payload(&self, logged_event: &LoggedEvent) -> Option<Vec<u8>> {
        if let Event::MessagePosted { message, .. } = &logged_event.event
            && let Destination::Path(_) = &message.destination
        {
            let channel = Channel::name_of(&message.destination)?;
            let restored = egress::restore(message);
            return Some(self.format.encode(&egress::path_frame(&restored, message, self.epoch, &channel)));
        }
        if let Event::RoomRemoved { room, .. } = &logged_event.event {
            return self.lost_payload(room);
        }
        jaibber::event(logged_event, self.epoch, &self.names, self.format)
    }

    fn signal_payload(&self, signal: &Signal, stamp: SignalStamp) -> Option<Vec<u8>> {
        match signal {
            Signal::Occupant { place, change, occupant } => {
                occupants::change(place, *change, occupant, self.format)
            }
            _ => jaibber::signal(signal, stamp, self.format),
        }
    }

    /// SYNC frames of a presence set. The last one has no cursor; an empty set is one frame.
    fn occupants_payloads(&self, list: &OccupantList) -> Option<Vec<Vec<u8>>> {
        let channel = Channel::of_place(&list.place)?;
        let (name, sync) = (channel.name(), list.stamp.ordinal.0.to_string());
        let frame = |members: &[Arc<Occupant>], cursor| {
            let presence =
                members.iter().map(|member| occupants::message(member, PresenceAction::Present, &channel));
            let frame = Frame {
                channel_serial: Some(sync_serial(&sync, cursor).into()),
                timestamp: Some(list.stamp.at.millis()),
                presence: Some(presence.collect()),
                ..Frame::of_channel(Action::Sync, &name)
            };
            self.format.encode(&frame)
        };
        let parts = list.occupants.len().div_ceil(MEMBERS_PER_SYNC).max(1);
        let part = |number: usize| {
            let from = number * MEMBERS_PER_SYNC;
            let to = list.occupants.len().min(from + MEMBERS_PER_SYNC);
            let next = number + 1;
            frame(&list.occupants[from..to], (next < parts).then_some(next as u64))
        };
        Some((0..parts).map(part).collect())
    }

    fn lost_payload(&self, room: &RoomId) -> Option<Vec<u8>> {
        let name = Channel::Project(room.clone()).name();
        let error = ErrorInfo::new(codes::NOT_PERMITTED, "You are no longer a member of the project");
        Some(self.format.encode(&Frame::error(Some(&name), error)))
    }
}

impl Encoder for AblyEncoder {
    fn event(&self, logged_event: &LoggedEvent, _: Option<&str>) -> Option<Bytes> {
        self.event_payload(logged_event).map(|payload| message(&payload, self.format))
    }

    fn room_lost(&self, room: &RoomId, _: &LoggedEvent, _: Option<&str>) -> Option<Bytes> {
        self.lost_payload(room).map(|payload| message(&payload, self.format))
    }

    fn signal(&self, signal: &Signal, stamp: SignalStamp, _: Option<&str>) -> Option<Bytes> {
        self.signal_payload(signal, stamp).map(|payload| message(&payload, self.format))
    }

    fn occupants(&self, list: &OccupantList) -> Option<Bytes> {
        let payloads = self.occupants_payloads(list)?;
        concat(payloads.iter().map(|payload| message(payload, self.format)))
    }

    fn disconnect(&self, reason: DisconnectReason) -> Bytes {
        let (code, words, close) = match reason {
            DisconnectReason::TooSlow => (codes::DISCONNECTED, "The client reads too slowly", 1013),
            DisconnectReason::Revoked => (codes::TOKEN_REVOKED, "The credential was revoked", 1008),
            DisconnectReason::ShuttingDown => (codes::DISCONNECTED, "The server is shutting down", 1001),
            DisconnectReason::Unavailable => {
                (codes::UNAVAILABLE, "The server cannot read missed messages now", 1013)
            }
        };
        disconnected(ErrorInfo::new(code, words), close, self.format)
    }
}

/// Last frames of a connection whose client connects again.
pub fn disconnected(error: ErrorInfo, close: u16, format: Format) -> Bytes {
    let reason = error.message.clone();
    let last = Frame { error: Some(error), ..Frame::new(Action::Disconnected) };
    frame::concat(&[encode(&last, format), frame::close(close, &reason)])
}

/// Encoders of a single connection: one for the channels under their plain names, if the connection does not receive
/// its own messages, and one for each name with parameters of the same channel, so that each name has a feed of its own.
pub struct OwnEncoders {
    shared: AblyEncoder,
    /// Whether the connection receives its own messages.
    echo: bool,
    /// Set when the connection has authenticated, before its first item.
    id: OnceLock<ConnectionId>,
    /// The connection's loop writes the names, and its writer reads them.
    names: Mutex<AttachedNames>,
}

/// Attached names with parameters.
#[derive(Default)]
struct AttachedNames {
    /// Names by channel, with the index of their codec.
    by_channel: HashMap<Box<str>, Vec<(usize, Box<str>)>>,
    /// Index that was assigned last. The next one follows it, so that an index is not used again at once: items of a
    /// detached name may still be queued.
    last: usize,
}

/// Maximum number of attached names of one channel with parameters.
pub const MAX_NAMES: usize = 8;

/// Encoder of the private codec with this index; 0 is that of plain names.
struct OwnEncoder {
    connection: Arc<OwnEncoders>,
    index: usize,
}

impl OwnEncoders {
    pub fn new(shared: AblyEncoder, echo: bool) -> Self {
        Self { shared, echo, id: OnceLock::new(), names: Mutex::default() }
    }

    /// The encoders by the index of their codec.
    pub fn all(self: &Arc<Self>) -> Arc<[Arc<dyn Encoder>]> {
        let encoder = |index| Arc::new(OwnEncoder { connection: self.clone(), index }) as Arc<dyn Encoder>;
        (0..=MAX_NAMES).map(encoder).collect()
    }

    pub fn begin(&self, id: &ConnectionId) {
        let _ = self.id.set(id.clone());
    }

    /// Assigns a codec to a name of a channel; `None` if the channel has too many names.
    pub fn add_name(&self, channel: &str, name: &str) -> Option<Codec> {
        let AttachedNames { by_channel, last } = &mut *self.names.lock();
        let of_channel = by_channel.entry(channel.into()).or_default();
        if let Some((index, _)) = of_channel.iter().find(|(_, known)| **known == *name) {
            return codec(*index);
        }
        let is_free = |index: &usize| of_channel.iter().all(|(used, _)| used != index);
        let index = (0..MAX_NAMES).map(|step| 1 + (*last + step) % MAX_NAMES).find(is_free)?;
        of_channel.push((index, name.into()));
        *last = index;
        codec(index)
    }

    pub fn remove_name(&self, channel: &str, name: &str) {
        let by_channel = &mut self.names.lock().by_channel;
        if let Some(of_channel) = by_channel.get_mut(channel) {
            of_channel.retain(|(_, known)| **known != *name);
            if of_channel.is_empty() {
                by_channel.remove(channel);
            }
        }
    }

    fn is_own_signal(&self, signal: &Signal) -> bool {
        let Signal::Reply { connection, .. } = signal else { return false };
        self.id.get().is_some_and(|own| connection.as_deref() == Some(own.as_str()))
    }

    fn is_own(&self, logged_event: &LoggedEvent) -> bool {
        let Event::MessagePosted { message, .. } = &logged_event.event else { return false };
        let own = self.id.get().map(|own| own.as_str());
        own.is_some() && message.origin.as_ref().map(|origin| &*origin.connection) == own
    }
}

fn codec(index: usize) -> Option<Codec> {
    u8::try_from(index).ok().map(Codec::private)
}

impl OwnEncoder {
    /// Frames a payload under the name of its channel; `None` if the name is no longer attached.
    fn named(&self, payload: &[u8]) -> Option<Bytes> {
        let format = self.connection.shared.format;
        if self.index == 0 {
            return Some(message(payload, format));
        }
        let decoded = Frame::decode(payload, format).ok()?;
        let names = self.connection.names.lock();
        let (_, name) = names
            .by_channel
            .get(decoded.channel.as_deref()?)?
            .iter()
            .find(|(index, _)| *index == self.index)?;
        let renamed = Frame { channel: Some(Cow::Borrowed(name)), ..decoded.clone() };
        Some(encode(&renamed, format))
    }
}

impl Encoder for OwnEncoder {
    fn event(&self, logged_event: &LoggedEvent, _: Option<&str>) -> Option<Bytes> {
        if !self.connection.echo && self.connection.is_own(logged_event) {
            return None;
        }
        self.named(&self.connection.shared.event_payload(logged_event)?)
    }

    fn room_lost(&self, room: &RoomId, _: &LoggedEvent, _: Option<&str>) -> Option<Bytes> {
        self.named(&self.connection.shared.lost_payload(room)?)
    }

    fn signal(&self, signal: &Signal, stamp: SignalStamp, _: Option<&str>) -> Option<Bytes> {
        if !self.connection.echo && self.connection.is_own_signal(signal) {
            return None;
        }
        self.named(&self.connection.shared.signal_payload(signal, stamp)?)
    }

    fn occupants(&self, list: &OccupantList) -> Option<Bytes> {
        let payloads = self.connection.shared.occupants_payloads(list)?;
        concat(payloads.iter().filter_map(|payload| self.named(payload)))
    }

    fn disconnect(&self, reason: DisconnectReason) -> Bytes {
        self.connection.shared.disconnect(reason)
    }
}
