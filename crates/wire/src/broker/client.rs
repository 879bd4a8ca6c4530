//! The side of a program that follows a room over `/ws/broker` and relays messages into it.
//!
//! Encodes the program's requests and decodes the hub's answers and pushes. Requests have numbers as `reqId`;
//! zero is not used, because the hub does not echo it.

use super::codes;
use crate::files;
use parlor_model::{
    Attachment, EntityKind, Epoch, Member, MemberId, Mention, Message, Position, Refusal, Relayed, RoomId,
};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::time::Duration;

/// Maximum bytes of a frame to the hub. A larger one ends the connection.
pub const MAX_REQUEST_BYTES: usize = 1024 * 1024;

pub fn auth(token: &str, request: u64) -> String {
    encode(&Request { kind: "auth", req_id: Some(request), body: Auth { token } })
}

/// Encodes a request that the hub answers with any frame, which proves that the connection works.
pub fn ping() -> String {
    encode(&Request { kind: "ping", req_id: None, body: NoFields {} })
}

pub fn listen(room: &str, request: u64) -> String {
    encode(&Request { kind: "msg.room.listen", req_id: Some(request), body: OfRoom { room_id: room } })
}

pub fn members(room: &str, request: u64) -> String {
    encode(&Request { kind: "msg.room.members", req_id: Some(request), body: OfRoom { room_id: room } })
}

/// Encodes a request for at most `limit` messages after a position, or from the first message on.
pub fn history(room: &str, after: Option<Position>, limit: usize, request: u64) -> String {
    let body = History { room_id: room, after: after.map(|position| position.to_string()), limit };
    encode(&Request { kind: "msg.room.history", req_id: Some(request), body })
}

pub fn relay(relay: &Relay<'_>, request: u64) -> String {
    encode(&Request { kind: "msg.relay", req_id: Some(request), body: relay })
}

/// A message to post in a room for an author outside the hub.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Relay<'a> {
    pub room_id: &'a str,
    pub author: &'a str,
    /// Name of the addressed member; `None` for the whole room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipient: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub observers: &'a [String],
    pub text: &'a str,
    /// Id of the message that the author answers.
    #[serde(skip_serializing_if = "Option::is_none")]
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

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RoomMessage {
    pub id: Box<str>,
    #[serde(deserialize_with = "position")]
    pub position: Position,
    pub sender_id: Box<str>,
    pub sender_name: Box<str>,
    pub text: Box<str>,
    /// Members that the message addresses, in the order of the text.
    #[serde(default)]
    pub mentions: Vec<RoomMember>,
    #[serde(default)]
    pub attachments: Vec<AttachedFile>,
    pub source: Box<str>,
    pub external_id: Option<Box<str>>,
    pub relayed: Option<RelayedBy>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RoomMember {
    pub id: Box<str>,
    #[serde(rename = "type")]
    pub kind: MemberKind,
    pub name: Box<str>,
    /// User name; absent in mentions.
    pub handle: Option<Box<str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemberKind {
    User,
    Agent,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttachedFile {
    pub filename: Box<str>,
    pub mime_type: Box<str>,
    pub size: u64,
    pub url: Box<str>,
}

/// Author and addressees of a message that was relayed for an author outside the hub.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RelayedBy {
    pub author: Box<str>,
    pub verified: bool,
    pub recipient: Option<Box<str>>,
    #[serde(default)]
    pub observers: Vec<Box<str>>,
}

impl RoomMessage {
    /// The message as a program receives it that follows its room.
    pub fn of(message: &Message, epoch: Epoch) -> Self {
        Self {
            id: message.id.as_str().into(),
            position: Position { epoch, seq: message.seq },
            sender_id: message.sender.id().into(),
            sender_name: (*message.sender_name).into(),
            text: (*message.text).into(),
            mentions: message.mentions.iter().map(RoomMember::from).collect(),
            attachments: message.attachments.iter().map(AttachedFile::from).collect(),
            source: (*message.source).into(),
            external_id: message.external_id.as_deref().map(Into::into),
            relayed: message.relayed.as_deref().map(RelayedBy::from),
        }
    }
}

impl From<&Mention> for RoomMember {
    fn from(mention: &Mention) -> Self {
        let kind = MemberKind::of(&mention.member);
        Self { id: mention.member.as_str().into(), kind, name: (*mention.name).into(), handle: None }
    }
}

impl From<&Member> for RoomMember {
    fn from(member: &Member) -> Self {
        Self {
            id: member.member.as_str().into(),
            kind: MemberKind::of(&member.member),
            name: (*member.name).into(),
            handle: Some((*member.handle).into()),
        }
    }
}

impl MemberKind {
    fn of(member: &MemberId) -> Self {
        match member {
            MemberId::User(_) => Self::User,
            MemberId::Agent(_) => Self::Agent,
        }
    }
}

impl From<&Attachment> for AttachedFile {
    fn from(attachment: &Attachment) -> Self {
        let Attachment { id, file } = attachment;
        Self {
            filename: (*file.name).into(),
            mime_type: file.media.as_str().into(),
            size: file.size,
            url: files::url(id).into(),
        }
    }
}

impl From<&Relayed> for RelayedBy {
    fn from(relayed: &Relayed) -> Self {
        Self {
            author: (*relayed.author).into(),
            verified: relayed.verified,
            recipient: relayed.recipient.as_deref().map(Into::into),
            observers: relayed.observers.iter().map(|observer| (**observer).into()).collect(),
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
    let head: Head<'_> = serde_json::from_str(text).ok()?;
    let Some(request) = head.req_id.as_ref().and_then(Value::as_u64) else {
        return Some(match &*head.kind {
            "msg.room.push" => HubFrame::Message(serde_json::from_str(head.message?.get()).ok()?),
            "msg.room.changed" => HubFrame::MembersChanged { room: head.room_id?.into() },
            "msg.room.lost" => HubFrame::RoomLost { room: head.room_id?.into() },
            "error" | "auth.error" => HubFrame::Failure(head.error.unwrap_or_default().into()),
            _ => HubFrame::Other,
        });
    };
    let outcome = match head.error {
        Some(sentence) => Err(sentence.into()),
        None => Ok(answer(&head.kind, text)?),
    };
    Some(HubFrame::Answer { request, outcome })
}

fn answer(kind: &str, text: &str) -> Option<Answer> {
    Some(match kind {
        "auth.ok" => Answer::Authenticated,
        "msg.room.listen.ok" => {
            let Listening { position, members } = serde_json::from_str(text).ok()?;
            Answer::Listening { position, members }
        }
        "msg.room.members.ok" => {
            let Members { members } = serde_json::from_str(text).ok()?;
            Answer::Members(members)
        }
        "msg.room.history.ok" => {
            let Messages { messages } = serde_json::from_str(text).ok()?;
            Answer::History(messages)
        }
        "msg.relay.ok" => {
            let RelayAnswer { id, position } = serde_json::from_str(text).ok()?;
            Answer::Relayed { id, position }
        }
        _ => Answer::Other,
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    req_id: Option<Value>,
    #[serde(borrow)]
    error: Option<Cow<'a, str>>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    room_id: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Listening {
    #[serde(deserialize_with = "position")]
    position: Position,
    members: Vec<RoomMember>,
}

#[derive(Deserialize)]
struct Members {
    members: Vec<RoomMember>,
}

#[derive(Deserialize)]
struct Messages {
    messages: Vec<RoomMessage>,
}

#[derive(Deserialize)]
struct RelayAnswer {
    id: Box<str>,
    #[serde(deserialize_with = "position")]
    position: Position,
}

fn position<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Position, D::Error> {
    let text = <Cow<'de, str>>::deserialize(deserializer)?;
    // Epoch 0 never applies: a position without an epoch is rejected.
    let position = text.contains('-').then(|| Position::parse(&text, Epoch(0))).flatten();
    position.ok_or_else(|| serde::de::Error::custom("not a position"))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<T> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    req_id: Option<u64>,
    #[serde(flatten)]
    body: T,
}

#[derive(Serialize)]
struct NoFields {}

#[derive(Serialize)]
struct Auth<'a> {
    token: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OfRoom<'a> {
    room_id: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct History<'a> {
    room_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
    limit: usize,
}

fn encode<T: Serialize>(request: &Request<T>) -> String {
    serde_json::to_string(request).expect("requests consist of texts and numbers")
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
