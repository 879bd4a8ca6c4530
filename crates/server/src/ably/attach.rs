//! Channels of a connection: ATTACH and DETACH.

use super::channel_error;
use super::encoder::{MAX_NAMES, encode};
use super::session::{Connected, encoding};
use crate::connection::peer::Peer;
use crate::connection::protocol::Reply;
use parlor_engine::feed::{Codec, Encoding, Interest, Kinds, Open, Opened, OpenedFrame, Since};
use parlor_model::{Destination, Path};
use parlor_wire::ably::capability::{Capability, Operation};
use parlor_wire::ably::channel::{Channel, QualifiedChannel, Rewind};
use parlor_wire::ably::codes::{self, ErrorInfo};
use parlor_wire::ably::frames::{Action, Format, Frame, flags};
use parlor_wire::ably::serial::{channel_serial, parse_channel_serial};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Items of a project channel: messages, tasks, typing and the merged text of replies.
const ROOM_KINDS: Kinds =
    Kinds::MESSAGES.with(Kinds::CHANGES).with(Kinds::SIGNALS).with(Kinds::MERGED_REPLIES);

/// An attached channel.
pub struct Attached {
    pub channel: Channel,
    /// Modes that the client has requested.
    pub requested: u32,
    /// Requested modes that the capability of the client permits.
    pub modes: u32,
    /// Codec of the channel's feed. Each name of a channel has a feed of its own.
    pub codec: Codec,
}

impl Attached {
    pub fn place(&self) -> Path {
        self.channel.destination().path()
    }
}

/// Modes that a capability permits in a channel.
pub fn permitted_modes(capability: &Capability, channel: &str) -> u32 {
    let modes = [
        (Operation::Presence, flags::PRESENCE),
        (Operation::Publish, flags::PUBLISH),
        (Operation::Subscribe, flags::SUBSCRIBE | flags::PRESENCE_SUBSCRIBE),
    ];
    let permitted = modes.iter().filter(|(operation, _)| capability.permits(*operation, channel));
    permitted.fold(0, |all, (_, modes)| all | modes)
}

impl Connected {
    pub async fn attach(&mut self, peer: &Peer, frame: Frame<'static>) -> Reply {
        let Some(name) = frame.channel.as_deref().map(Box::<str>::from) else {
            let error = ErrorInfo::new(codes::INVALID_CHANNEL, "ATTACH needs a channel");
            return Reply::Frames(encode(&Frame::error(None, error), self.format));
        };
        self.settle(peer, &name).await;
        match self.try_attach(peer, &name, frame).await {
            Ok(reply) => reply,
            Err(error) => {
                self.close_channel(peer, &name);
                if let Ok(QualifiedChannel { channel, .. }) = QualifiedChannel::parse(&name) {
                    self.own.remove_name(&channel.name(), &name);
                }
                Reply::Frames(encode(&Frame::error(Some(&name), error), self.format))
            }
        }
    }

    async fn try_attach(
        &mut self,
        peer: &Peer,
        name: &str,
        frame: Frame<'static>,
    ) -> Result<Reply, ErrorInfo> {
        let QualifiedChannel { channel, mut params } = QualifiedChannel::parse(name)?;
        params.extend(frame.params.unwrap_or_default());
        params.retain(|param, _| param == "rewind");
        let rewind = params.get("rewind").map(|text| Rewind::parse(text)).transpose()?;
        let requested = flags::requested_modes(frame.flags);
        let modes = self.modes_in(&channel, requested)?;
        // A repeated ATTACH changes the modes of a channel without a gap. A replay from the serial in the frame would
        // repeat messages that are already queued for the client.
        let is_attached = self.channels.contains_key(name);
        let max_channels = peer.app.config.ably.channels;
        if !is_attached && self.channels.len() >= max_channels {
            let message = format!("A connection has at most {max_channels} channels");
            return Err(ErrorInfo::new(codes::TOO_MANY_CHANNELS, message));
        }
        let codec = self.codec_of(&channel, name)?;
        // Feeds with a codec of their own register it, which only one task may do.
        let has_own_codec = name.starts_with('[');
        let is_resumed = frame.flags.unwrap_or_default() & flags::ATTACH_RESUME != 0;
        let position = frame.channel_serial.as_deref().map(parse_channel_serial);
        let (since, lost) = match (position, rewind) {
            _ if is_attached => (Since::Now, None),
            (Some(Ok(position)), _) => (Since::After(position), None),
            (Some(Err(error)), _) => (Since::Now, Some(error)),
            (None, Some(Rewind::Newest(count))) if !is_resumed && count > 0 => (Since::Newest(count), None),
            (None, Some(Rewind::Since(time))) if !is_resumed => {
                (Since::From(peer.app.hub.now().minus(time)), None)
            }
            (None, _) => (Since::Now, None),
        };
        let answer = Answer {
            name: name.into(),
            modes,
            params,
            resumes: is_attached || matches!(since, Since::After(_)),
            lost,
            format: self.format,
        };
        let opened: OpenedFrame = Arc::new(move |opened| answer.frame(opened));
        let attached = Attached { channel, requested, modes, codec };
        let has_backlog = since != Since::Now;
        match self.feed(peer, &attached, since, Some(opened)) {
            Some(open) if has_backlog && !has_own_codec && self.openings.has_capacity() => {
                let session = peer.signed_in().map_err(|refusal| codes::error(&refusal))?.session.clone();
                let (outbox, format, of) = (peer.outbox.clone(), self.format, Box::<str>::from(name));
                let open = async move { session.open(open).await.map_err(|refusal| channel_error(&refusal)) };
                self.openings.begin(name, open, move |error| {
                    outbox.push(encode(&Frame::error(Some(&of), error), format));
                });
            }
            Some(open) => open_feed(peer, open).await?,
            None => {}
        }
        self.channels.insert(name.into(), attached);
        Ok(Reply::None)
    }

    /// Waits until the feed of a channel is open. Ends the channel if it could not be opened.
    pub async fn settle(&mut self, peer: &Peer, name: &str) {
        if !self.openings.settle(name).await {
            self.close_channel(peer, name);
        }
    }

    /// Codec of the feed of a channel under this name. A plain name shares the encoded frames with other connections,
    /// unless this connection does not receive its own messages.
    fn codec_of(&self, channel: &Channel, name: &str) -> Result<Codec, ErrorInfo> {
        if !name.starts_with('[') {
            return Ok(if self.echo { encoding(self.format).codec } else { Codec::PRIVATE });
        }
        self.own.add_name(&channel.name(), name).ok_or_else(|| {
            let message = format!("A connection has at most {MAX_NAMES} names of one channel");
            ErrorInfo::new(codes::TOO_MANY_CHANNELS, message)
        })
    }

    /// Returns the requested modes that the capability permits.
    pub fn modes_in(&self, channel: &Channel, requested: u32) -> Result<u32, ErrorInfo> {
        match permitted_modes(&self.caller.capability, &channel.name()) & requested {
            0 => Err(ErrorInfo::new(codes::NOT_PERMITTED, "The capability does not permit the channel")),
            modes => Ok(modes),
        }
    }

    /// The feed of a channel, to be opened or to continue with other kinds; `None` if the channel needs no feed.
    pub fn feed(
        &self,
        peer: &Peer,
        attached: &Attached,
        since: Since,
        opened: Option<OpenedFrame>,
    ) -> Option<Open> {
        let encoding = self.encoding_of(attached);
        // The feed of a project channel reports the end of the membership in every mode.
        if encoding.kinds == Kinds::NONE && !matches!(attached.channel, Channel::Project(_)) {
            close_feed(peer, attached);
            if let Some(opened) = opened {
                let facts = Opened { from: peer.app.hub.position(), missed: false, resync: None };
                peer.outbox.push(opened(&facts));
            }
            return None;
        }
        let interest = match attached.channel.destination() {
            Destination::Room(room) => Interest::Room(room),
            Destination::Path(path) => Interest::Path(path),
        };
        Some(Open { interest, since, encoding, opened, live: None })
    }

    fn encoding_of(&self, attached: &Attached) -> Encoding {
        let mut kinds = Kinds::NONE;
        if attached.modes & flags::SUBSCRIBE != 0 {
            kinds = kinds.with(match attached.channel {
                Channel::Project(_) => ROOM_KINDS,
                Channel::GlobalPresence | Channel::Other(_) => Kinds::MESSAGES,
            });
        }
        if attached.modes & flags::PRESENCE_SUBSCRIBE != 0 {
            kinds = kinds.with(Kinds::PRESENCE);
        }
        Encoding { kinds, codec: attached.codec, ..encoding(self.format) }
    }

    pub async fn detach(&mut self, peer: &Peer, frame: Frame<'static>) -> Reply {
        let Some(name) = frame.channel else { return Reply::None };
        self.openings.cancel(&name).await;
        self.close_channel(peer, &name);
        Reply::Frames(encode(&Frame::of_channel(Action::Detached, &name), self.format))
    }

    /// Ends a channel of the connection: its feed and its members.
    pub fn close_channel(&mut self, peer: &Peer, name: &str) {
        let Some(attached) = self.channels.remove(name) else { return };
        self.own.remove_name(&attached.channel.name(), name);
        close_feed(peer, &attached);
        if !self.channels.values().any(|other| other.channel == attached.channel) {
            self.presence.leave_place(&attached.place());
        }
    }
}

pub async fn open_feed(peer: &Peer, open: Open) -> Result<(), ErrorInfo> {
    let session = &peer.signed_in().map_err(|refusal| codes::error(&refusal))?.session;
    session.open(open).await.map_err(|refusal| channel_error(&refusal))
}

fn close_feed(peer: &Peer, attached: &Attached) {
    if let Ok(identity) = peer.signed_in() {
        identity.session.close_encoded(&attached.channel.destination(), attached.codec);
    }
}

/// Facts of an ATTACHED frame that are known before the feed is open.
struct Answer {
    name: Box<str>,
    modes: u32,
    params: BTreeMap<String, String>,
    /// Whether the client misses no message if the feed begins at the requested position.
    resumes: bool,
    /// Error of a malformed `channelSerial`.
    lost: Option<ErrorInfo>,
    format: Format,
}

impl Answer {
    fn frame(&self, opened: &Opened) -> bytes::Bytes {
        let mut all = self.modes;
        if self.modes & flags::PRESENCE_SUBSCRIBE != 0 {
            // SYNC frames follow, also for an empty set.
            all |= flags::HAS_PRESENCE;
        }
        if self.resumes && opened.resync.is_none() {
            all |= flags::RESUMED;
        }
        if opened.missed {
            all |= flags::HAS_BACKLOG;
        }
        let expired = || ErrorInfo::new(codes::CONTINUITY_LOST, "The position is no longer available");
        let frame = Frame {
            channel_serial: Some(channel_serial(opened.from).into()),
            flags: Some(all),
            params: Some(self.params.clone()).filter(|params| !params.is_empty()),
            error: self.lost.clone().or_else(|| opened.resync.map(|_| expired())),
            ..Frame::of_channel(Action::Attached, &self.name)
        };
        encode(&frame, self.format)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_engine::feed::Resync;
    use parlor_model::{Epoch, Ordinal, Position, Seq, SignalStamp, Time};

    #[track_caller]
    fn check(capability: &str, expected: u32) {
        let capability = Capability::parse(capability).unwrap();
        assert_eq!(permitted_modes(&capability, "a:b"), expected);
    }

    #[test]
    fn modes_follow_from_the_operations_of_the_capability() {
        check(r#"{"*":["*"]}"#, flags::MODES);
        check(r#"{"a:*":["publish"]}"#, flags::PUBLISH);
        check(r#"{"a:b":["subscribe","history"]}"#, flags::SUBSCRIBE | flags::PRESENCE_SUBSCRIBE);
        check(r#"{"a:b":["presence"],"a:*":["publish"]}"#, flags::PRESENCE | flags::PUBLISH);
        check(r#"{"b":["*"]}"#, 0);
        check(r#"{"a:b":["history"]}"#, 0);
    }

    fn answer(resumes: bool, opened: Opened) -> Frame<'static> {
        let (name, modes, format) = ("a".into(), flags::MODES, Format::Msgpack);
        let answer = Answer { name, modes, params: BTreeMap::new(), resumes, lost: None, format };
        let bytes = answer.frame(&opened);
        // The header has two bytes more if the length does not fit into seven bits.
        Frame::decode(&bytes[if bytes[1] == 126 { 4 } else { 2 }..], format).unwrap()
    }

    #[test]
    fn attached_reports_whether_messages_are_lost() {
        let from = Position { epoch: Epoch(1), seq: Seq(7) };
        let opened = Opened { from, missed: true, resync: None };
        let frame = answer(true, opened);
        let both = flags::RESUMED | flags::HAS_BACKLOG;
        assert_eq!(frame.flags.unwrap() & both, both);
        assert_eq!(parse_channel_serial(&frame.channel_serial.unwrap()).unwrap(), from);
        assert_eq!(answer(false, opened).flags.unwrap() & flags::RESUMED, 0);
        let stamp = SignalStamp { ordinal: Ordinal(1), at: Time(0) };
        let resync = Some(Resync { lost: None, stamp });
        let frame = answer(true, Opened { resync, missed: false, ..opened });
        assert_eq!(frame.flags.unwrap() & both, 0);
        assert_eq!(frame.error.unwrap().code, codes::CONTINUITY_LOST);
    }
}
