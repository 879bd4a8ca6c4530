//! Encodes events, signals and responses as `server:*` frames for clients.

pub mod agents;

use super::codes;
use super::frames::server::{
    AboutMessage, AuthResult, BookmarkUpdate, ErrorFrame, MessageAck, MessageMarked, MessagePinned, Pong,
    Presence, ReactionUpdate, ReadReceipt, RemovedTask, RoomCleared, RoomPosition, RoomRemoved, RoomState,
    RoomUpdate, TaskUpdate, TerminalData, Typing,
};
use super::frames::{MemberFrame, ReactionFrame, ServerFrame};
use super::rest::{False, TaskStatus, True};
use crate::frames::{encode, encode_about};
use crate::time::iso;
use parlor_model::command::Posted;
use parlor_model::{
    ApprovalKind, Decision, Epoch, Event, LoggedEvent, Message, MessageId, Position, Refusal, RoomId, Signal,
};

/// Encodes an event; `None` if AgentIM has no frame for it.
pub fn event(logged_event: &LoggedEvent, epoch: Epoch) -> Option<String> {
    let position = Position { epoch, seq: logged_event.seq }.to_string();
    let position = &*position;
    let frame = match &logged_event.event {
        Event::MessagePosted { message, .. } if message.destination.room().is_some() => {
            let about = about_message(message, position);
            let size = size_about(message);
            // The message of a run completes a streaming reply.
            let frame = match message.run_output {
                Some(_) => ServerFrame::MessageComplete(about),
                None => ServerFrame::NewMessage(about),
            };
            return Some(encode_about(&frame, size));
        }
        Event::MessageEdited(message) => {
            let frame = ServerFrame::MessageEdited(about_message(message, position));
            return Some(encode_about(&frame, size_about(message)));
        }
        Event::MessageDeleted { room, message } => {
            ServerFrame::MessageDeleted(marked(room, message, position))
        }
        Event::ReactionsChanged { room, message, reactions } => ServerFrame::ReactionUpdate(ReactionUpdate {
            room_id: room.as_str(),
            message_id: message.as_str(),
            reactions: reactions.iter().map(ReactionFrame::from).collect(),
            position,
        }),
        Event::MessagePinned(pin) => ServerFrame::MessagePinned(MessagePinned {
            room_id: pin.room.as_str(),
            message_id: pin.message.as_str(),
            pinned_by_id: pin.by.as_str(),
            pinned_at: iso(pin.at),
            position,
        }),
        Event::MessageUnpinned { room, message } => {
            ServerFrame::MessageUnpinned(marked(room, message, position))
        }
        Event::BookmarkChanged { room, message, kept, .. } => ServerFrame::BookmarkUpdate(BookmarkUpdate {
            room_id: room.as_str(),
            message_id: message.as_str(),
            bookmarked: *kept,
            position,
        }),
        Event::RoomChanged(room) => {
            ServerFrame::RoomUpdate(RoomUpdate { room: room.as_ref().into(), members: None, position })
        }
        Event::MembersChanged { room, members, .. } => ServerFrame::RoomUpdate(RoomUpdate {
            room: room.as_ref().into(),
            members: (!members.is_empty()).then(|| members.iter().map(MemberFrame::from).collect()),
            position,
        }),
        Event::RoomRemoved { room, .. } => return Some(room_removed(room)),
        Event::TaskChanged(task) => ServerFrame::TaskUpdate(TaskUpdate::Changed {
            room_id: task.room.as_str(),
            task: task.as_ref().into(),
            position,
        }),
        Event::TaskRemoved { room, task } => ServerFrame::TaskUpdate(TaskUpdate::Removed {
            room_id: room.as_str(),
            task: RemovedTask {
                id: task.as_str(),
                room_id: room.as_str(),
                title: "",
                status: TaskStatus::Cancelled,
                created_by_id: "",
                created_at: iso(logged_event.at),
                updated_at: iso(logged_event.at),
            },
            removed: True,
            position,
        }),
        Event::RoomRead { room, user, username, at } => ServerFrame::ReadReceipt(ReadReceipt {
            room_id: room.as_str(),
            user_id: user.as_str(),
            username,
            last_read_at: iso(*at),
            position,
        }),
        Event::RoomPreferencesChanged(member) => {
            let own = &member.room_preferences;
            ServerFrame::RoomState(RoomState {
                room_id: member.room.as_str(),
                pinned: own.pinned_at.is_some(),
                archived: own.archived_at.is_some(),
                notification_pref: own.notifications.into(),
                pinned_at: own.pinned_at.map(iso),
                archived_at: own.archived_at.map(iso),
                position,
            })
        }
        Event::RoomCleared { room, at, .. } => {
            ServerFrame::RoomCleared(RoomCleared { room_id: room.as_str(), cleared_at: iso(*at), position })
        }
        // Question sets are published as chat events only.
        Event::ApprovalAsked(approval) | Event::ApprovalDecided(approval)
            if approval.subject.kind() == ApprovalKind::Questions =>
        {
            return None;
        }
        // No position: the frame is also sent, out of order, to late joiners while the approval is open.
        Event::ApprovalAsked(approval) => {
            return approval.decision.is_none().then(|| agents::permission_request(approval));
        }
        Event::ApprovalDecided(approval) => {
            return Some(match &approval.decision {
                Some(Decision::Expired) => agents::permission_request_expired(approval),
                _ => agents::permission_resolved(approval),
            });
        }
        Event::MessagePosted { .. }
        | Event::UserChanged { .. }
        | Event::UserRemoved(_)
        | Event::SignInsEnded(_)
        | Event::SignInEnded { .. }
        | Event::KeyRevoked { .. }
        | Event::TokensRevoked { .. }
        | Event::AgentChanged { .. }
        | Event::AgentRemoved { .. }
        | Event::SettingsChanged
        | Event::RunChanged(_)
        | Event::PlanChanged(_)
        | Event::Tombstone => return None,
    };
    Some(encode(&frame))
}

fn about_message<'a>(message: &'a Message, position: &'a str) -> AboutMessage<'a> {
    AboutMessage { message: message.into(), position }
}

fn size_about(message: &Message) -> usize {
    message.text.len() + 640 + 320 * message.attachments.len()
}

fn marked<'a>(room: &'a RoomId, message: &'a MessageId, position: &'a str) -> MessageMarked<'a> {
    MessageMarked { room_id: room.as_str(), message_id: message.as_str(), position }
}

pub fn room_removed(room: &RoomId) -> String {
    encode(&ServerFrame::RoomRemoved(RoomRemoved { room_id: room.as_str() }))
}

/// Encodes a signal; `None` if AgentIM has no frame for it.
pub fn signal(signal: &Signal) -> Option<String> {
    let frame = match signal {
        Signal::Typing { room, user, username } => {
            ServerFrame::Typing(Typing { room_id: room.as_str(), user_id: user.as_str(), username })
        }
        Signal::Presence { user, username, online } => {
            ServerFrame::Presence(Presence { user_id: user.as_str(), username, online: *online })
        }
        Signal::Chunk { place, agent, agent_name, message, chunk, first } => {
            return Some(agents::chunk(place, agent, agent_name, message, chunk, *first));
        }
        Signal::Terminal { room, agent, agent_name, data } => ServerFrame::TerminalData(TerminalData {
            agent_id: agent.as_str(),
            agent_name,
            room_id: room.as_str(),
            data,
        }),
        Signal::AgentStatus { agent, name, kind, model, status, queue_depth } => {
            agents::status(agent, name, kind, model.as_deref(), *status, *queue_depth)
        }
        Signal::Answered(answer) => return agents::answered(answer),
        Signal::Rewound { room, message, removed, text } => {
            agents::room_rewound(room, message, removed, text)
        }
        Signal::RunEvent { .. }
        | Signal::Activity { .. }
        | Signal::Queue { .. }
        | Signal::Reply { .. }
        | Signal::AgentsDismissed { .. }
        | Signal::RoomsChanged { .. }
        | Signal::Refresh
        | Signal::Occupant { .. } => return None,
    };
    Some(encode(&frame))
}

pub fn authenticated(user: &str) -> String {
    encode(&ServerFrame::AuthResult(AuthResult::Accepted { ok: True, user_id: user }))
}

pub fn not_authenticated(error: &str) -> String {
    encode(&ServerFrame::AuthResult(AuthResult::Rejected { ok: False, error }))
}

pub fn pong(ts: &serde_json::Number) -> String {
    encode(&ServerFrame::Pong(Pong { ts }))
}

pub fn error(code: &str, message: &str) -> String {
    encode(&ServerFrame::Error(ErrorFrame { code, message, client_message_id: None }))
}

/// Encodes a refusal, with the `clientMessageId` of the refused message if it has one.
pub fn refusal(refusal: &Refusal, client_message_id: Option<&str>) -> String {
    let (code, message) = codes::frame(refusal);
    encode(&ServerFrame::Error(ErrorFrame { code, message: &message, client_message_id }))
}

pub fn acknowledged(posted: &Posted, client_message_id: &str) -> String {
    encode(&ServerFrame::MessageAck(MessageAck {
        client_message_id,
        message_id: posted.id.as_str(),
        seq: posted.position.seq.0,
        epoch: posted.position.epoch.to_string(),
    }))
}

pub fn joined(room: &RoomId, position: Position) -> String {
    encode(&ServerFrame::RoomJoined(RoomPosition { room_id: room.as_str(), position: position.to_string() }))
}

pub fn resync(room: &RoomId, position: Position) -> String {
    encode(&ServerFrame::Resync(RoomPosition { room_id: room.as_str(), position: position.to_string() }))
}
