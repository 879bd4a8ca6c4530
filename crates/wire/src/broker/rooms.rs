//! Frames for programs that follow a room: `msg.room.*`. An extension of Parlor.

use super::frames::Frame;
use super::ingress::RoomRequest;
use crate::files::FileFrame;
use crate::relayed::RelayedFrame;
use parlor_model::{Epoch, Event, LoggedEvent, Member, MemberId, Mention, Message, Position, RoomId};
use serde::Serialize;
use std::sync::Arc;

/// Encodes the event of a room for a connection that follows it. `None` if the protocol has no frame for it.
pub fn event(logged_event: &LoggedEvent, epoch: Epoch) -> Option<String> {
    match &logged_event.event {
        Event::MessagePosted { message, .. } => {
            let room = message.destination.room()?;
            let frame = Frame::new("msg.room.push").with("roomId", room.as_str());
            Some(frame.with("message", &RoomMessage::of(message, epoch)).end(None))
        }
        Event::MembersChanged { room, .. } => Some(changed(&room.id)),
        Event::RoomRemoved { room, .. } => Some(lost(room)),
        _ => None,
    }
}

/// Encodes the notice that the account can no longer read a room.
pub fn lost(room: &RoomId) -> String {
    Frame::new("msg.room.lost").with("roomId", room.as_str()).end(None)
}

/// Encodes the answer to `msg.room.listen`. Messages after `from` follow as pushes.
pub fn listening(room: &RoomId, from: Position, members: &[Member], req_id: Option<&str>) -> String {
    let frame = Frame::new("msg.room.listen.ok").with("roomId", room.as_str());
    frame.with("position", &from.to_string()).with("members", &listed(members)).end(req_id)
}

pub fn members(room: &RoomId, members: &[Member], req_id: Option<&str>) -> String {
    let frame = Frame::new("msg.room.members.ok").with("roomId", room.as_str());
    frame.with("members", &listed(members)).end(req_id)
}

/// Encodes the notice that the members of a room have changed.
pub fn changed(room: &RoomId) -> String {
    Frame::new("msg.room.changed").with("roomId", room.as_str()).end(None)
}

pub fn history(room: &RoomId, messages: &[Arc<Message>], epoch: Epoch, req_id: Option<&str>) -> String {
    let messages: Vec<RoomMessage<'_>> =
        messages.iter().map(|message| RoomMessage::of(message, epoch)).collect();
    let frame = Frame::new("msg.room.history.ok").with("roomId", room.as_str());
    frame.with("messages", &messages).end(req_id)
}

/// Type of the frame that refuses a request.
pub fn error_type(request: &RoomRequest) -> &'static str {
    match request {
        RoomRequest::Listen => "msg.room.listen.error",
        RoomRequest::Members => "msg.room.members.error",
        RoomRequest::History { .. } => "msg.room.history.error",
    }
}

/// A message as the members of its room see it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RoomMessage<'a> {
    id: &'a str,
    position: String,
    /// Milliseconds since 1970-01-01 UTC.
    timestamp: i64,
    sender_id: &'a str,
    sender_type: &'static str,
    sender_name: &'a str,
    text: &'a str,
    mentions: Vec<NamedMember<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attachments: Vec<FileFrame<'a>>,
    source: &'a str,
    external_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    relayed: Option<RelayedFrame<'a>>,
}

impl<'a> RoomMessage<'a> {
    fn of(message: &'a Message, epoch: Epoch) -> Self {
        Self {
            id: message.id.as_str(),
            position: Position { epoch, seq: message.seq }.to_string(),
            timestamp: message.at.millis(),
            sender_id: message.sender.id(),
            sender_type: message.sender.kind(),
            sender_name: &message.sender_name,
            text: &message.text,
            mentions: message.mentions.iter().map(NamedMember::from).collect(),
            attachments: message.attachments.iter().map(FileFrame::from).collect(),
            source: &message.source,
            external_id: message.external_id.as_deref(),
            relayed: message.relayed.as_deref().map(RelayedFrame::from),
        }
    }
}

/// A member that a message mentions, or a member of a room with its handle.
#[derive(Serialize)]
struct NamedMember<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    handle: Option<&'a str>,
}

impl<'a> From<&'a Mention> for NamedMember<'a> {
    fn from(mention: &'a Mention) -> Self {
        Self {
            id: mention.member.as_str(),
            kind: member_type(&mention.member),
            name: &mention.name,
            handle: None,
        }
    }
}

fn listed(members: &[Member]) -> Vec<NamedMember<'_>> {
    let listed = members.iter().map(|Member { member, name, handle, .. }| NamedMember {
        id: member.as_str(),
        kind: member_type(member),
        name,
        handle: Some(handle),
    });
    listed.collect()
}

fn member_type(member: &MemberId) -> &'static str {
    match member {
        MemberId::User(_) => "user",
        MemberId::Agent(_) => "agent",
    }
}
