//! The side of a program that follows a room over `/ws/broker` and relays messages into it.
//!
//! Encodes the program's requests and decodes the hub's answers and pushes. Requests have numbers as `reqId`;
//! zero is not used, because the hub does not echo it.

use super::codes;
use super::frames::hub::{self, Failure};
use super::frames::program::{self, Auth, OfRoom, RoomPage};
use super::frames::{self as wire, Plain, ProgramFrame, Push, Refused};
use super::rooms;
use crate::files::FileFrame;
use crate::frames::{encode, encode_about, peek_type};
use crate::relayed::RelayedFrame;
use parlor_model::{EntityKind, Epoch, Member, Message, Position, Refusal, RoomId};
use serde_json::value::{RawValue, to_raw_value};
use std::time::Duration;

pub use super::frames::hub::MemberKind;

/// Maximum bytes of a frame to the hub. A larger one ends the connection.
pub const MAX_REQUEST_BYTES: usize = 1024 * 1024;

pub fn auth(token: &str, request: u64) -> String {
    let req_id = req_id(request);
    encode(&ProgramFrame::Auth(Auth { req_id: Some(&req_id), token: token.into() }))
}

/// Encodes a request that the hub answers with any frame, which proves that the connection works.
pub fn ping() -> String {
    encode(&ProgramFrame::Ping(Plain { req_id: None }))
}

pub fn listen(room: &str, request: u64) -> String {
    let req_id = req_id(request);
    encode(&ProgramFrame::RoomListen(OfRoom { req_id: Some(&req_id), room_id: room.into() }))
}

pub fn members(room: &str, request: u64) -> String {
    let req_id = req_id(request);
    encode(&ProgramFrame::RoomMembers(OfRoom { req_id: Some(&req_id), room_id: room.into() }))
}

/// Encodes a request for at most `limit` messages after a position, or from the first message on.
pub fn history(room: &str, after: Option<Position>, limit: usize, request: u64) -> String {
    let (req_id, after) = (req_id(request), after.map(|position| position.to_string().into()));
    let page = RoomPage { req_id: Some(&req_id), room_id: room.into(), after, limit: Some(limit) };
    encode(&ProgramFrame::RoomHistory(page))
}

pub fn relay(relay: &Relay<'_>, request: u64) -> String {
    let req_id = req_id(request);
    let observers: Vec<_> = relay.observers.iter().map(|observer| observer.as_str().into()).collect();
    let frame = ProgramFrame::Relay(program::Relay {
        req_id: Some(&req_id),
        room_id: relay.room_id.into(),
        author: relay.author.into(),
        recipient: relay.recipient.map(Into::into),
        observers: (!observers.is_empty()).then_some(observers),
        text: relay.text.into(),
        continues: relay.continues.map(Into::into),
        source: Some(relay.source.into()),
        external_id: Some(relay.external_id.into()),
    });
    encode_about(&frame, 256 + relay.text.len())
}

fn req_id(request: u64) -> Box<RawValue> {
    to_raw_value(&request).expect("a number is JSON")
}

/// A message to post in a room for an author outside the hub.
#[derive(Debug, Clone)]
pub struct Relay<'a> {
    pub room_id: &'a str,
    pub author: &'a str,
    /// Name of the addressed member; `None` for the whole room.
    pub recipient: Option<&'a str>,
    pub observers: &'a [String],
    pub text: &'a str,
    /// Id of the message that the author answers.
    pub continues: Option<&'a str>,
    pub source: &'a str,
    /// Idempotency key together with the source and the content.
    pub external_id: &'a str,
}

/// A frame from the hub.
#[derive(Debug, Clone, PartialEq)]
pub enum HubFrame {
    /// The answer to the request with this number; an error is the hub's sentence.
    Answer { request: u64, outcome: Result<Answer, Box<str>> },
    /// A new message of the followed room.
    Message(Box<RoomMessage>),
    /// The members of a room changed.
    MembersChanged { room: Box<str> },
    /// The account can no longer read a room, followed or not.
    RoomLost { room: Box<str> },
    /// The hub reports an error that is no answer, such as the reason why it disconnects the client.
    Failure(Box<str>),
    /// A frame without meaning for the program.
    Other,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    Authenticated,
    /// The room is followed: every message after `position` is pushed.
    Listening {
        position: Position,
        members: Vec<RoomMember>,
    },
    Members(Vec<RoomMember>),
    /// Messages in order, oldest first.
    History(Vec<RoomMessage>),
    Relayed {
        id: Box<str>,
        position: Position,
    },
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoomMessage {
    pub id: Box<str>,
    pub position: Position,
    pub sender_id: Box<str>,
    pub sender_name: Box<str>,
    pub text: Box<str>,
    /// Members that the message addresses, in the order of the text.
    pub mentions: Vec<RoomMember>,
    pub attachments: Vec<AttachedFile>,
    pub source: Box<str>,
    pub external_id: Option<Box<str>>,
    pub relayed: Option<RelayedBy>,
}

impl RoomMessage {
    /// The message as a program receives it that follows its room.
    pub fn of(message: &Message, epoch: Epoch) -> Self {
        let position = Position { epoch, seq: message.seq };
        Self::from_frame(rooms::room_message(message, epoch), position)
    }

    /// `None` if the position is invalid.
    fn read(message: hub::RoomMessage<'_>) -> Option<Self> {
        let position = position(&message.position)?;
        Some(Self::from_frame(message, position))
    }

    fn from_frame(message: hub::RoomMessage<'_>, position: Position) -> Self {
        Self {
            id: message.id.into(),
            position,
            sender_id: message.sender_id.into(),
            sender_name: message.sender_name.into(),
            text: message.text.into(),
            mentions: message.mentions.into_iter().map(RoomMember::from).collect(),
            attachments: message.attachments.into_iter().map(AttachedFile::from).collect(),
            source: message.source.into(),
            external_id: message.external_id.map(Into::into),
            relayed: message.relayed.map(RelayedBy::from),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoomMember {
    pub id: Box<str>,
    pub kind: MemberKind,
    pub name: Box<str>,
    /// User name; absent in mentions.
    pub handle: Option<Box<str>>,
}

impl From<hub::RoomMember<'_>> for RoomMember {
    fn from(member: hub::RoomMember<'_>) -> Self {
        Self {
            id: member.id.into(),
            kind: member.kind,
            name: member.name.into(),
            handle: member.handle.map(Into::into),
        }
    }
}

impl From<&Member> for RoomMember {
    fn from(member: &Member) -> Self {
        rooms::room_member(member).into()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachedFile {
    pub filename: Box<str>,
    pub mime_type: Box<str>,
    pub size: u64,
    pub url: Box<str>,
}

impl From<FileFrame<'_>> for AttachedFile {
    fn from(file: FileFrame<'_>) -> Self {
        let FileFrame { filename, mime_type, size, url, .. } = file;
        Self { filename: filename.into(), mime_type: mime_type.into(), size, url: url.into() }
    }
}

/// Author and addressees of a message that was relayed for an author outside the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayedBy {
    pub author: Box<str>,
    pub verified: bool,
    pub recipient: Option<Box<str>>,
    pub observers: Vec<Box<str>>,
}

impl From<RelayedFrame<'_>> for RelayedBy {
    fn from(relayed: RelayedFrame<'_>) -> Self {
        Self {
            author: relayed.author.into(),
            verified: relayed.verified,
            recipient: relayed.recipient.map(Into::into),
            observers: relayed.observers.into_iter().map(Into::into).collect(),
        }
    }
}

/// How far a refusal reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalScope {
    /// The hub refuses the request for the moment; the client may send it again unchanged.
    ForNow,
    /// The account cannot read or write this room, or the room does not exist.
    Room,
    /// The hub refuses this request; others may succeed.
    Request,
}

/// Returns how far a refusal with this sentence reaches. The protocol has no error codes.
pub fn refusal_scope(sentence: &str) -> RefusalScope {
    let is = |refusal: Refusal| codes::sentence(&refusal, None) == sentence;
    let for_now = [
        Refusal::Unavailable,
        Refusal::NotSignedIn,
        Refusal::AtCapacity,
        Refusal::TooManyConnections,
        Refusal::RateLimited { retry_after: Duration::ZERO },
    ];
    let of_room = [
        Refusal::Forbidden,
        Refusal::NotFound(EntityKind::Room),
        Refusal::NotAMember { room: RoomId::stored("") },
    ];
    match () {
        () if for_now.into_iter().any(is) => RefusalScope::ForNow,
        () if of_room.into_iter().any(is) => RefusalScope::Room,
        () => RefusalScope::Request,
    }
}

/// Decodes a frame. `None` if it is not a valid frame of the protocol.
pub fn read(text: &str) -> Option<HubFrame> {
    let kind = peek_type(text)??;
    let Some(frame) = wire::HubFrame::parse(&kind, text).ok()? else { return Some(HubFrame::Other) };
    Some(match frame {
        wire::HubFrame::Push(Push::RoomMessage(push)) => {
            HubFrame::Message(Box::new(RoomMessage::read(push.message)?))
        }
        wire::HubFrame::Push(Push::RoomChanged(notice)) => {
            HubFrame::MembersChanged { room: notice.room_id.into() }
        }
        wire::HubFrame::Push(Push::RoomLost(notice)) => HubFrame::RoomLost { room: notice.room_id.into() },
        wire::HubFrame::Push(Push::Error(failure)) | wire::HubFrame::Refused(Refused::Auth(failure)) => {
            failed(failure, HubFrame::Failure)
        }
        wire::HubFrame::Push(_) => HubFrame::Other,
        wire::HubFrame::Refused(refused) => failed(refused.into_failure(), |_| HubFrame::Other),
        wire::HubFrame::Answer(frame) => match number(frame.req_id()) {
            Some(request) => HubFrame::Answer { request, outcome: Ok(answer(frame)?) },
            None => HubFrame::Other,
        },
    })
}

/// An error that answers a request with a number, or else `unasked`.
fn failed(failure: Failure<'_>, unasked: impl FnOnce(Box<str>) -> HubFrame) -> HubFrame {
    let sentence = failure.error.into();
    match number(failure.req_id) {
        Some(request) => HubFrame::Answer { request, outcome: Err(sentence) },
        None => unasked(sentence),
    }
}

fn number(req_id: Option<&RawValue>) -> Option<u64> {
    req_id?.get().parse().ok()
}

fn answer(frame: wire::Answer<'_>) -> Option<Answer> {
    Some(match frame {
        wire::Answer::Auth(_) => Answer::Authenticated,
        wire::Answer::RoomListen(listening) => Answer::Listening {
            position: position(&listening.position)?,
            members: listening.members.into_iter().map(RoomMember::from).collect(),
        },
        wire::Answer::RoomMembers(listed) => {
            Answer::Members(listed.members.into_iter().map(RoomMember::from).collect())
        }
        wire::Answer::RoomHistory(history) => {
            Answer::History(history.messages.into_iter().map(RoomMessage::read).collect::<Option<_>>()?)
        }
        wire::Answer::Relay(posted) => {
            Answer::Relayed { id: posted.id.into(), position: position(&posted.position)? }
        }
        _ => Answer::Other,
    })
}

/// Parses a position. Epoch 0 never applies: a position without an epoch is rejected.
fn position(text: &str) -> Option<Position> {
    text.contains('-').then(|| Position::parse(text, Epoch(0))).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_model::Seq;
    use proptest::prelude::*;

    const AT: Position = Position { epoch: Epoch(0x1f), seq: Seq(7) };

    #[test]
    fn requests_have_a_number_and_only_the_given_fields() {
        assert_eq!(
            history("r", Some(AT), 50, 3),
            r#"{"type":"msg.room.history","reqId":3,"roomId":"r","after":"0000001f-7","limit":50}"#
        );
        let message = Relay {
            room_id: "r",
            author: "coder",
            recipient: None,
            observers: &[],
            text: "a\nb",
            continues: None,
            source: "chatmd",
            external_id: "g:0",
        };
        assert_eq!(
            relay(&message, 4),
            r#"{"type":"msg.relay","reqId":4,"roomId":"r","author":"coder","text":"a\nb","source":"chatmd","externalId":"g:0"}"#
        );
        assert_eq!(ping(), r#"{"type":"ping"}"#);
    }

    #[test]
    fn answers_and_pushes_are_told_apart() {
        let read = |frame: &str| read(frame).unwrap();
        let listening = r#"{"type":"msg.room.listen.ok","reqId":1,"roomId":"r","position":"0000001f-7","members":[{"id":"u","type":"user","name":"Ada","handle":"ada"}]}"#;
        let member = RoomMember {
            id: "u".into(),
            kind: MemberKind::User,
            name: "Ada".into(),
            handle: Some("ada".into()),
        };
        let outcome = Ok(Answer::Listening { position: AT, members: vec![member] });
        assert_eq!(read(listening), HubFrame::Answer { request: 1, outcome });
        let refused = r#"{"type":"msg.relay.error","reqId":9,"error":"Not allowed"}"#;
        assert_eq!(read(refused), HubFrame::Answer { request: 9, outcome: Err("Not allowed".into()) });
        let push = r#"{"type":"msg.room.push","roomId":"r","message":{"id":"m","position":"0000001f-7","timestamp":1,"senderId":"u","senderType":"user","senderName":"Ada","text":"hi","mentions":[],"source":"client","externalId":null}}"#;
        let HubFrame::Message(message) = read(push) else { panic!("a push is a message") };
        assert_eq!((&*message.text, message.position, message.external_id), ("hi", AT, None));
        assert_eq!(read(r#"{"type":"pong"}"#), HubFrame::Other);
        let failure = r#"{"type":"error","error":"Your session was revoked"}"#;
        assert_eq!(read(failure), HubFrame::Failure("Your session was revoked".into()));
    }

    #[test]
    fn a_refusal_reaches_one_request_the_room_or_lasts_only_for_now() {
        for (sentence, scope) in [
            ("Message exceeds the maximum of 100000 characters", RefusalScope::Request),
            ("author must not be empty", RefusalScope::Request),
            ("Not a member of this room", RefusalScope::Room),
            ("Not found", RefusalScope::Room),
            ("Not allowed", RefusalScope::Room),
            ("Too many messages", RefusalScope::ForNow),
            ("The hub cannot store anything now; nothing was changed", RefusalScope::ForNow),
        ] {
            assert_eq!(refusal_scope(sentence), scope, "{sentence}");
        }
    }

    #[test]
    fn an_invalid_frame_is_rejected() {
        for text in [
            "",
            "[]",
            "{}",
            r#"{"type":7}"#,
            r#"{"type":"msg.room.push"}"#,
            r#"{"type":"msg.room.push","message":{}}"#,
            r#"{"type":"msg.relay.ok","reqId":1,"id":"m","position":"7"}"#,
            r#"{"type":"msg.room.history.ok","reqId":1}"#,
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    proptest! {
        #![proptest_config(parlor_seed::proptest_config())]

        #[test]
        fn no_frame_causes_a_panic(text in "\\PC{0,200}|\\{\"type\":\"msg.(room|relay).[a-z.]{0,12}\",\"[a-zA-Z]{0,9}\":\\PC{0,40}\\}") {
            let _ = read(&text);
        }
    }
}
