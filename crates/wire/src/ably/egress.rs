//! Messages of channels in the store and in frames.
//!
//! A message of a channel that is no room is stored with its Ably form as payload, so that JSON clients, msgpack
//! clients and the history return the same fields and bytes.

use super::data::Data;
use super::frames::{Action, Frame, Message, Version};
use super::serial::{MessageSerial, channel_serial};
use parlor_model::command::PathMessage;
use parlor_model::{Epoch, Payload, Seq, Time};
use sha2::{Digest, Sha256};
use std::borrow::Cow;

/// Payload under which a message of a channel that is no room is stored: the message as Ably writes it in JSON,
/// without the fields that the hub assigns.
pub fn stored(message: &Message<'_>) -> Payload {
    let stored = Message {
        timestamp: None,
        action: None,
        serial: None,
        version: None,
        connection_id: None,
        connection_key: None,
        ..message.clone()
    };
    Payload(serde_json::to_string(&stored).expect("a message consists of strings and JSON").into())
}

/// A message to publish on the path of a channel. `is_chosen` tells whether the client chose its id.
pub fn path_message(message: &Message<'_>, channel: &str, is_chosen: bool) -> PathMessage {
    let id = message.id.as_deref().unwrap_or_default();
    PathMessage {
        name: message.name.as_deref().unwrap_or_default().into(),
        payload: stored(message),
        external_id: if is_chosen { idempotency_key(id, channel).into() } else { id.into() },
        connection: message.connection_id.as_deref().map(Into::into),
    }
}

/// Idempotency key of a publication whose first message has an id that the client chose. Ids are unique in a channel.
fn idempotency_key(id: &str, channel: &str) -> String {
    let key = format!("{id}@{channel}");
    if key.len() <= 500 {
        return key;
    }
    Sha256::digest(key).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads a message on a path. Messages of other protocols become data with the encoding `json`.
pub fn restore(message: &parlor_model::Message) -> Message<'static> {
    let payload = message.payload.as_ref().map(|payload| &*payload.0);
    let restored =
        payload.filter(|_| &*message.source == SOURCE).and_then(|text| serde_json::from_str(text).ok());
    let connection = message.origin.as_ref().map(|origin| origin.connection.to_string().into());
    let restored = restored.map(|restored: Message<'_>| Message { connection_id: connection, ..restored });
    restored.unwrap_or_else(|| Message {
        id: Some(message.id.as_str().to_owned().into()),
        name: message.command.as_deref().map(|name| name.to_owned().into()),
        data: Some(Data::Text(payload.map_or_else(|| message.text.to_string(), str::to_owned).into())),
        encoding: payload.map(|_| "json".into()),
        client_id: message.sender.user().map(|user| user.as_str().to_owned().into()),
        ..Message::default()
    })
}

/// `Message.source` of messages that were published on a channel. Only they have a [`stored`] payload.
pub const SOURCE: &str = crate::words::CHANNEL_SOURCE;

/// MESSAGE frame of a restored message on a path.
pub fn path_frame<'a>(
    restored: &'a Message<'_>,
    message: &'a parlor_model::Message,
    epoch: Epoch,
    channel: &'a str,
) -> Frame<'a> {
    let inner = Message {
        name: restored.name.as_deref().map(Cow::Borrowed),
        data: restored.data.clone().map(|data| match data {
            Data::Text(text) => Data::Text(text.into_owned().into()),
            Data::Bytes(bytes) => Data::Bytes(bytes.into_owned().into()),
        }),
        encoding: restored.encoding.as_deref().map(Cow::Borrowed),
        client_id: restored.client_id.as_deref().map(Cow::Borrowed),
        extras: restored.extras.clone(),
        ..Message::default()
    };
    let id = restored.id.as_deref().unwrap_or(message.id.as_str());
    let connection = restored.connection_id.as_deref();
    delivered(inner, Publication { id, connection, seq: message.seq, at: message.at, epoch }, channel)
}

/// Message of the history of a channel: the message of its frame with the fields of the frame.
pub fn in_history(frame: Frame<'_>) -> Vec<Message<'_>> {
    let (connection_id, timestamp) = (frame.connection_id, frame.timestamp);
    let messages = frame.messages.unwrap_or_default().into_iter();
    messages.map(|message| Message { connection_id: connection_id.clone(), timestamp, ..message }).collect()
}

/// Id, connection and position of a published message.
#[derive(Debug, Clone, Copy)]
pub struct Publication<'a> {
    pub id: &'a str,
    pub connection: Option<&'a str>,
    pub seq: Seq,
    pub at: Time,
    pub epoch: Epoch,
}

/// Completes a message with the fields that the hub assigns.
pub(super) fn delivered<'a>(inner: Message<'a>, publication: Publication<'a>, channel: &'a str) -> Frame<'a> {
    let Publication { id, connection, seq, at, epoch } = publication;
    let serial = MessageSerial::new(epoch, seq, 0);
    let timestamp = at.millis();
    let version = Version { serial: serial.to_string(), timestamp };
    // The id of the frame is that of its first message without the index.
    let frame_id = id.strip_suffix(":0").unwrap_or(id);
    Frame {
        id: Some(frame_id.into()),
        connection_id: connection.map(Cow::Borrowed),
        channel: Some(channel.into()),
        channel_serial: Some(channel_serial(serial.position).into()),
        timestamp: Some(timestamp),
        messages: Some(vec![Message {
            id: Some(id.into()),
            action: Some(0),
            serial: Some(version.serial.clone().into()),
            version: Some(version),
            ..inner
        }]),
        ..Frame::new(Action::Message)
    }
}
