//! Encodes events, signals and responses as `server:*` frames for clients.

pub mod agents;

use super::codes;
use super::frames::{MemberFrame, MessageFrame, ReactionFrame, RoomFrame};
use super::rest::Task;
use crate::time::iso;
use parlor_model::command::Posted;
use parlor_model::{ApprovalKind, Decision, Epoch, Event, LoggedEvent, Position, Refusal, RoomId, Signal};
use serde::Serialize;
use serde_json::json;

/// Encodes an event; `None` if AgentIM has no frame for it.
pub fn event(logged_event: &LoggedEvent, epoch: Epoch) -> Option<String> {
    let position = Position { epoch, seq: logged_event.seq }.to_string();
    match &logged_event.event {
        Event::MessagePosted { message, .. } if message.destination.room().is_some() => {
            // The message of a run completes a streaming reply.
            let kind =
                if message.run_output.is_some() { "server:message_complete" } else { "server:new_message" };
            Some(about_message(kind, &message.as_ref().into(), &position))
        }
        Event::MessageEdited(message) => {
            Some(about_message("server:message_edited", &message.as_ref().into(), &position))
        }
        Event::MessageDeleted { room, message } => Some(text(json!({
            "type": "server:message_deleted",
            "roomId": room.as_str(),
            "messageId": message.as_str(),
            "position": position,
        }))),
        Event::ReactionsChanged { room, message, reactions } => Some(encode(&ReactionUpdate {
            kind: "server:reaction_update",
            room_id: room.as_str(),
            message_id: message.as_str(),
            reactions: reactions.iter().map(ReactionFrame::from).collect(),
            position: &position,
        })),
        Event::MessagePinned(pin) => Some(text(json!({
            "type": "server:message_pinned",
            "roomId": pin.room.as_str(),
            "messageId": pin.message.as_str(),
            "pinnedById": pin.by.as_str(),
            "pinnedAt": iso(pin.at),
            "position": position,
        }))),
        Event::MessageUnpinned { room, message } => Some(text(json!({
            "type": "server:message_unpinned",
            "roomId": room.as_str(),
            "messageId": message.as_str(),
            "position": position,
        }))),
        Event::BookmarkChanged { room, message, kept, .. } => Some(text(json!({
            "type": "server:bookmark_update",
            "roomId": room.as_str(),
            "messageId": message.as_str(),
            "bookmarked": kept,
            "position": position,
        }))),
        Event::RoomChanged(room) => Some(encode(&RoomUpdate {
            kind: "server:room_update",
            room: room.as_ref().into(),
            members: Vec::new(),
            position: &position,
        })),
        Event::MembersChanged { room, members, .. } => Some(encode(&RoomUpdate {
            kind: "server:room_update",
            room: room.as_ref().into(),
            members: members.iter().map(MemberFrame::from).collect(),
            position: &position,
        })),
        Event::RoomRemoved { room, .. } => Some(room_removed(room)),
        Event::TaskChanged(task) => Some(encode(&TaskUpdate {
            kind: "server:task_update",
            room_id: task.room.as_str(),
            task: task.as_ref().into(),
            position: &position,
        })),
        Event::TaskRemoved { room, task } => Some(text(json!({
            "type": "server:task_update",
            "roomId": room.as_str(),
            // The task is deleted, but clients require these fields.
            "task": {
                "id": task.as_str(),
                "roomId": room.as_str(),
                "title": "",
                "status": "cancelled",
                "createdById": "",
                "createdAt": iso(logged_event.at),
                "updatedAt": iso(logged_event.at),
            },
            "removed": true,
            "position": position,
        }))),
        Event::RoomRead { room, user, username, at } => Some(text(json!({
            "type": "server:read_receipt",
            "roomId": room.as_str(),
            "userId": user.as_str(),
            "username": username,
            "lastReadAt": iso(*at),
            "position": position,
        }))),
        Event::RoomPreferencesChanged(member) => {
            let own = &member.room_preferences;
            Some(encode(&RoomState {
                kind: "server:room_state",
                room_id: member.room.as_str(),
                pinned: own.pinned_at.is_some(),
                archived: own.archived_at.is_some(),
                notification_pref: own.notifications.as_str(),
                pinned_at: own.pinned_at.map(iso),
                archived_at: own.archived_at.map(iso),
                position: &position,
            }))
        }
        Event::RoomCleared { room, at, .. } => Some(text(json!({
            "type": "server:room_cleared",
            "roomId": room.as_str(),
            "clearedAt": iso(*at),
            "position": position,
        }))),
        // Question sets are published as chat events only.
        Event::ApprovalAsked(approval) | Event::ApprovalDecided(approval)
            if approval.subject.kind() == ApprovalKind::Questions =>
        {
            None
        }
        // No position: the frame is also sent, out of order, to late joiners while the approval is open.
        Event::ApprovalAsked(approval) => {
            approval.decision.is_none().then(|| agents::permission_request(approval))
        }
        Event::ApprovalDecided(approval) => Some(match &approval.decision {
            Some(Decision::Expired) => agents::permission_request_expired(approval),
            _ => agents::permission_resolved(approval),
        }),
        Event::MessagePosted { .. }
        | Event::UserChanged { .. }
        | Event::UserRemoved(_)
        | Event::SignInsEnded(_)
        | Event::SignInEnded { .. }
        | Event::KeyRevoked { .. }
        | Event::AgentChanged { .. }
        | Event::AgentRemoved { .. }
        | Event::SettingsChanged
        | Event::RunChanged(_)
        | Event::PlanChanged(_)
        | Event::Tombstone => None,
    }
}

pub fn room_removed(room: &RoomId) -> String {
    text(json!({ "type": "server:room_removed", "roomId": room.as_str() }))
}

/// Encodes a signal; `None` if AgentIM has no frame for it.
pub fn signal(signal: &Signal) -> Option<String> {
    Some(match signal {
        Signal::Typing { room, user, username } => text(json!({
            "type": "server:typing",
            "roomId": room.as_str(),
            "userId": user.as_str(),
            "username": username,
        })),
        Signal::Presence { user, username, online } => text(json!({
            "type": "server:presence",
            "userId": user.as_str(),
            "username": username,
            "online": online,
        })),
        Signal::Chunk { room, agent, agent_name, message, chunk, first } => {
            agents::chunk(room, agent, agent_name, message, chunk, *first)
        }
        Signal::Terminal { room, agent, agent_name, data } => text(json!({
            "type": "server:terminal_data",
            "agentId": agent.as_str(),
            "agentName": agent_name,
            "roomId": room.as_str(),
            "data": data,
        })),
        Signal::AgentStatus { agent, name, kind, model, status, queue_depth } => {
            agents::status(agent, name, kind, model.as_deref(), *status, *queue_depth)
        }
        Signal::Answered(answer) => return agents::answered(answer),
        Signal::Rewound { room, message, removed, text } => {
            agents::room_rewound(room, message, removed, text)
        }
        Signal::RunEvent { .. } | Signal::Activity { .. } | Signal::Queue { .. } | Signal::Refresh => {
            return None;
        }
    })
}

pub fn authenticated(user: &str) -> String {
    text(json!({ "type": "server:auth_result", "ok": true, "userId": user }))
}

pub fn not_authenticated(error: &str) -> String {
    text(json!({ "type": "server:auth_result", "ok": false, "error": error }))
}

pub fn pong(ts: &serde_json::Number) -> String {
    text(json!({ "type": "server:pong", "ts": ts }))
}

pub fn error(code: &str, message: &str) -> String {
    text(json!({ "type": "server:error", "code": code, "message": message }))
}

/// Encodes a refusal, with the `clientMessageId` of the refused message if it has one.
pub fn refusal(refusal: &Refusal, client_message_id: Option<&str>) -> String {
    let (code, message) = codes::frame(refusal);
    match client_message_id {
        None => error(code, &message),
        Some(id) => text(json!({
            "type": "server:error",
            "code": code,
            "message": message,
            "clientMessageId": id,
        })),
    }
}

pub fn acknowledged(posted: &Posted, client_message_id: &str) -> String {
    encode(&Acknowledged {
        kind: "server:message_ack",
        client_message_id,
        message_id: posted.id.as_str(),
        seq: posted.position.seq.0,
        epoch: posted.position.epoch.to_string(),
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Acknowledged<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    client_message_id: &'a str,
    message_id: &'a str,
    seq: u64,
    epoch: String,
}

pub fn joined(room: &RoomId, position: Position) -> String {
    text(json!({ "type": "server:room_joined", "roomId": room.as_str(), "position": position.to_string() }))
}

pub fn resync(room: &RoomId, position: Position) -> String {
    text(json!({ "type": "server:resync", "roomId": room.as_str(), "position": position.to_string() }))
}

#[derive(Serialize)]
struct AboutMessage<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    message: &'a MessageFrame<'a>,
    position: &'a str,
}

fn about_message(kind: &str, message: &MessageFrame, position: &str) -> String {
    encode_about(
        &AboutMessage { kind, message, position },
        message.content.len() + 640 + 320 * message.attachments.len(),
    )
}

#[derive(Serialize)]
struct RoomUpdate<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    room: RoomFrame<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    members: Vec<MemberFrame<'a>>,
    position: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TaskUpdate<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    room_id: &'a str,
    task: Task<'a>,
    position: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReactionUpdate<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    room_id: &'a str,
    message_id: &'a str,
    reactions: Vec<ReactionFrame<'a>>,
    position: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RoomState<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    room_id: &'a str,
    pinned: bool,
    archived: bool,
    notification_pref: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pinned_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    archived_at: Option<String>,
    position: &'a str,
}

pub(super) fn encode(frame: &impl Serialize) -> String {
    encode_about(frame, 256)
}

/// Encodes a frame into a buffer of initially `size` bytes. A good estimate avoids reallocation.
fn encode_about(frame: &impl Serialize, size: usize) -> String {
    let mut text = Vec::with_capacity(size);
    serde_json::to_writer(&mut text, frame).expect("frames consist of strings, numbers and lists");
    String::from_utf8(text).expect("JSON is UTF-8")
}

fn text(frame: serde_json::Value) -> String {
    frame.to_string()
}
