//! Frames for programs that follow a room: `msg.room.*`. An extension of Parlor.

use super::frames::hub::{
    MemberKind, RoomHistory, RoomListening, RoomMember, RoomMembers, RoomMessage, RoomNotice, RoomPush,
};
use super::frames::{Answer, Push};
use crate::files::FileFrame;
use crate::frames::{encode, encode_about};
use crate::relayed::RelayedFrame;
use parlor_model::{Epoch, Event, LoggedEvent, Member, MemberId, Mention, Message, Position, RoomId};
use serde_json::value::RawValue;
use std::sync::Arc;

/// Encodes the event of a room for a connection that follows it. `None` if the protocol has no frame for it.
pub fn event(logged_event: &LoggedEvent, epoch: Epoch) -> Option<String> {
    match &logged_event.event {
        Event::MessagePosted { message, .. } => {
            let room_id = message.destination.room()?.as_str().into();
            let push = RoomPush { room_id, message: room_message(message, epoch) };
            Some(encode_about(&Push::RoomMessage(push), 512 + message.text.len()))
        }
        Event::MembersChanged { room, .. } => Some(changed(&room.id)),
        Event::RoomRemoved { room, .. } => Some(lost(room)),
        _ => None,
    }
}

/// Encodes the notice that the account can no longer read a room.
pub fn lost(room: &RoomId) -> String {
    encode(&Push::RoomLost(RoomNotice { room_id: room.as_str().into() }))
}

/// Encodes the notice that the members of a room have changed.
pub fn changed(room: &RoomId) -> String {
    encode(&Push::RoomChanged(RoomNotice { room_id: room.as_str().into() }))
}

/// Encodes the answer to `msg.room.listen`. Messages after `from` follow as pushes.
pub fn listening(room: &RoomId, from: Position, members: &[Member], req_id: Option<&RawValue>) -> String {
    let (room_id, position) = (room.as_str().into(), from.to_string().into());
    encode(&Answer::RoomListen(RoomListening { room_id, position, members: listed(members), req_id }))
}

pub fn members(room: &RoomId, members: &[Member], req_id: Option<&RawValue>) -> String {
    let room_id = room.as_str().into();
    encode(&Answer::RoomMembers(RoomMembers { room_id, members: listed(members), req_id }))
}

pub fn history(room: &RoomId, messages: &[Arc<Message>], epoch: Epoch, req_id: Option<&RawValue>) -> String {
    let messages = messages.iter().map(|message| room_message(message, epoch)).collect();
    encode(&Answer::RoomHistory(RoomHistory { room_id: room.as_str().into(), messages, req_id }))
}

pub(super) fn room_message(message: &Message, epoch: Epoch) -> RoomMessage<'_> {
    RoomMessage {
        id: message.id.as_str().into(),
        position: Position { epoch, seq: message.seq }.to_string().into(),
        timestamp: message.at.millis(),
        sender_id: message.sender.id().into(),
        sender_type: message.sender.kind().into(),
        sender_name: (&*message.sender_name).into(),
        text: (&*message.text).into(),
        mentions: message.mentions.iter().map(mentioned).collect(),
        attachments: message.attachments.iter().map(FileFrame::from).collect(),
        source: (&*message.source).into(),
        external_id: message.external_id.as_deref().map(Into::into),
        relayed: message.relayed.as_deref().map(RelayedFrame::from),
    }
}

fn mentioned(mention: &Mention) -> RoomMember<'_> {
    RoomMember {
        id: mention.member.as_str().into(),
        kind: member_kind(&mention.member),
        name: (&*mention.name).into(),
        handle: None,
    }
}

fn listed(members: &[Member]) -> Vec<RoomMember<'_>> {
    members.iter().map(room_member).collect()
}

pub(super) fn room_member(member: &Member) -> RoomMember<'_> {
    RoomMember {
        id: member.member.as_str().into(),
        kind: member_kind(&member.member),
        name: (&*member.name).into(),
        handle: Some((&*member.handle).into()),
    }
}

fn member_kind(member: &MemberId) -> MemberKind {
    match member {
        MemberId::User(_) => MemberKind::User,
        MemberId::Agent(_) => MemberKind::Agent,
    }
}
