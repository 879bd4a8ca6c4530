//! Decodes `client:*` frames into requests. Never panics, whatever the input.

pub mod agents;

use super::frames::ClientFrame;
use super::frames::client::{Auth, InRoom, JoinRoom, Ping, SendMessage, Subscribe};
use crate::json::{self, JsonLimits};
use agents::AgentAction;
use parlor_model::{MessageId, Post, RoomId};
use serde::Deserialize;
use std::borrow::Cow;

#[derive(Debug, Clone, Copy)]
pub struct FrameLimits {
    pub bytes: usize,
    pub json: JsonLimits,
}

/// Request of a user's client.
#[derive(Debug, PartialEq)]
pub enum ClientRequest {
    Auth {
        token: Box<str>,
        version: Option<Box<str>>,
    },
    Join {
        room: Option<RoomId>,
        since: Option<Box<str>>,
    },
    Leave {
        room: Option<RoomId>,
    },
    /// Subscribes to the chat events of all rooms of the user.
    SubscribeEvents {
        since: Option<Box<str>>,
    },
    /// Opens all rooms of the user.
    Follow {
        since: Option<Box<str>>,
    },
    Send {
        room: Option<RoomId>,
        post: Draft,
    },
    Typing {
        room: Option<RoomId>,
    },
    OfAgents(AgentAction),
    Ping {
        ts: serde_json::Number,
    },
}

/// A decoded message to be posted. The room is decoded separately.
#[derive(Debug, PartialEq)]
pub struct Draft {
    pub content: Box<str>,
    pub mentions: Vec<Box<str>>,
    /// `Err` if the text is not a valid message id.
    pub reply_to: Result<Option<MessageId>, ()>,
    pub attachments: Vec<Box<str>>,
    pub client_message_id: Option<Box<str>>,
}

impl Draft {
    pub fn into_post(self, room: RoomId) -> Post {
        // An invalid id becomes an id that no message has, so that it is refused like an unknown id.
        let reply_to = self.reply_to.unwrap_or_else(|()| Some(MessageId::stored("")));
        Post {
            id: None,
            origin: None,
            author: None,
            room,
            text: self.content.into(),
            mentions: self.mentions,
            reply_to,
            attachments: self.attachments,
            client_message_id: self.client_message_id,
        }
    }
}

/// Reason why a frame could not be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameError {
    TooLarge,
    NotJson,
    TooDeep,
    TooMany,
    Unknown,
}

impl FrameError {
    /// Returns error code and message for the client.
    pub fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::TooLarge => ("MESSAGE_TOO_LARGE", "Message exceeds maximum size"),
            Self::NotJson => ("INVALID_JSON", "Invalid JSON"),
            Self::TooDeep => ("JSON_TOO_DEEP", "JSON nesting depth exceeded"),
            Self::TooMany => ("JSON_TOO_DEEP", "JSON collection size exceeded"),
            Self::Unknown => ("INVALID_MESSAGE", "Invalid message format"),
        }
    }
}

/// Checks size and JSON limits of a frame and returns its `type`.
pub(super) fn check_frame<'a>(text: &'a str, limits: &FrameLimits) -> Result<Cow<'a, str>, FrameError> {
    if text.len() > limits.bytes {
        return Err(FrameError::TooLarge);
    }
    json::check(text, limits.json).map_err(|defect| match defect {
        json::JsonDefect::Syntax => FrameError::NotJson,
        json::JsonDefect::TooDeep => FrameError::TooDeep,
        json::JsonDefect::TooMany => FrameError::TooMany,
        json::JsonDefect::RepeatedKey => FrameError::Unknown,
    })?;
    parse(text).map(|Kind { kind }| kind)
}

pub fn read(text: &str, limits: &FrameLimits) -> Result<ClientRequest, FrameError> {
    let kind = check_frame(text, limits)?;
    let frame = ClientFrame::parse(&kind, text).map_err(|_| FrameError::Unknown)?;
    Ok(match frame.ok_or(FrameError::Unknown)? {
        ClientFrame::Auth(Auth { token, protocol_version }) => {
            ClientRequest::Auth { token: token.into(), version: protocol_version.map(Into::into) }
        }
        ClientFrame::JoinRoom(JoinRoom { room_id, since }) => {
            ClientRequest::Join { room: RoomId::parse(&room_id).ok(), since: since.map(Into::into) }
        }
        ClientFrame::SubscribeEvents(Subscribe { since }) => {
            ClientRequest::SubscribeEvents { since: since.map(Into::into) }
        }
        ClientFrame::Follow(Subscribe { since }) => ClientRequest::Follow { since: since.map(Into::into) },
        ClientFrame::LeaveRoom(InRoom { room_id }) => {
            ClientRequest::Leave { room: RoomId::parse(&room_id).ok() }
        }
        ClientFrame::Typing(InRoom { room_id }) => {
            ClientRequest::Typing { room: RoomId::parse(&room_id).ok() }
        }
        ClientFrame::SendMessage(send) => {
            ClientRequest::Send { room: RoomId::parse(&send.room_id).ok(), post: draft(send) }
        }
        ClientFrame::Ping(Ping { ts }) => ClientRequest::Ping { ts },
        of_agents => ClientRequest::OfAgents(agents::read(of_agents, text)?),
    })
}

fn draft(send: SendMessage<'_>) -> Draft {
    let reply_to = match send.reply_to_id {
        None => Ok(None),
        Some(id) => MessageId::parse(&id).map(Some).map_err(|_| ()),
    };
    Draft {
        content: send.content.into(),
        mentions: send.mentions.unwrap_or_default(),
        reply_to,
        attachments: send.attachment_ids.unwrap_or_default(),
        client_message_id: send.client_message_id,
    }
}

pub(super) fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, FrameError> {
    serde_json::from_str(text).map_err(|_| FrameError::Unknown)
}

#[derive(Deserialize)]
struct Kind<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: FrameLimits = FrameLimits { bytes: 65_536, json: JsonLimits { depth: 15, items: 1000 } };

    #[track_caller]
    fn expect_error(text: &str, expected: FrameError) {
        assert_eq!(read(text, &LIMITS), Err(expected), "{text:.80}");
    }

    #[test]
    fn each_kind_of_invalid_frame_has_its_own_error() {
        expect_error("nope", FrameError::NotJson);
        expect_error("[]", FrameError::Unknown);
        expect_error("{}", FrameError::Unknown);
        expect_error(r#"{"type":"client:nope"}"#, FrameError::Unknown);
        expect_error(r#"{"type":"client:join_room","roomId":5}"#, FrameError::Unknown);
        expect_error(r#"{"type":"client:ping","ts":1,"ts":2}"#, FrameError::Unknown);
        expect_error(
            &format!(r#"{{"type":"client:ping","ts":1,"x":{}{}}}"#, "[".repeat(15), "]".repeat(15)),
            FrameError::TooDeep,
        );
        expect_error(
            &format!(r#"{{"type":"client:ping","ts":1,"x":[{}0]}}"#, "0,".repeat(1000)),
            FrameError::TooMany,
        );
        expect_error(
            &format!(r#"{{"type":"client:ping","ts":1,"x":"{}"}}"#, "x".repeat(65_536)),
            FrameError::TooLarge,
        );
    }

    #[test]
    fn a_null_field_counts_as_absent() {
        let text =
            r#"{"type":"client:send_message","roomId":"r","content":"hi","replyToId":null,"mentions":null}"#;
        let Ok(ClientRequest::Send { post, .. }) = read(text, &LIMITS) else { panic!("not a send request") };
        assert_eq!((post.reply_to, post.mentions.len()), (Ok(None), 0));
    }

    proptest! {
        #![proptest_config(parlor_seed::proptest_config())]

        #[test]
        fn no_input_causes_a_panic(text in "\\PC{0,200}|\\{\"type\":\"client:[a-z_]{0,25}\",\"[a-zA-Z]{0,9}\":\\PC{0,40}\\}") {
            let _ = read(&text, &LIMITS);
        }
    }
}
