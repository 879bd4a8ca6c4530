//! MESSAGE frames of project channels: messages, signals of agents, and changes of tasks.
//!
//! A frame depends only on the event or the signal, so the hub encodes it once per format.

use super::{ChatMessage, MESSAGE, MessageType, REFRESH_PROJECTS, TASK, rest};
use crate::ably::channel::Channel;
use crate::ably::data::Data;
use crate::ably::egress::{Publication, delivered};
use crate::ably::frames::{Action, Frame, Message};
use parlor_model::{Epoch, ReplyPart, RoomId, Signal, SignalStamp, TaskId, Time, UserId};
use serde::Serialize;
use std::borrow::Cow;

/// Connection id of messages that no Ably connection published.
pub const HUB: &str = "hub";

/// Message with JSON as its data.
fn named<'a>(name: &'a str, data: String) -> Message<'a> {
    Message {
        name: Some(name.into()),
        data: Some(Data::Text(data.into())),
        encoding: Some("json".into()),
        action: Some(0),
        ..Message::default()
    }
}

/// MESSAGE frame of a message of a room. `channel` is the name of the project channel.
pub fn room_frame<'a>(
    message: &'a parlor_model::Message,
    epoch: Epoch,
    channel: &'a str,
) -> Option<Frame<'a>> {
    let data = ChatMessage::of(message)?.text();
    let origin = message.origin.as_deref();
    let owner = message.answer.as_ref().map(|answer| &answer.owner).or(message.sender.user());
    let client = origin.and_then(|origin| origin.client.as_deref()).or(owner.map(UserId::as_str));
    let publication = Publication {
        id: origin.map_or(message.id.as_str(), |origin| &origin.id),
        connection: Some(origin.map_or(HUB, |origin| &origin.connection)),
        seq: message.seq,
        at: message.at,
        epoch,
    };
    let inner = Message { client_id: client.map(Cow::Borrowed), ..named(MESSAGE, data) };
    Some(delivered(inner, publication, channel))
}

/// MESSAGE frame of a signal of a room; `None` if Jaibber has no message for it.
pub fn signal_frame(signal: &Signal, stamp: SignalStamp) -> Option<Frame<'static>> {
    if let Signal::RoomsChanged { .. } = signal {
        return Some(refresh_frame(stamp));
    }
    let id = format!("{HUB}:{}", stamp.ordinal.0);
    let (room, chat, connection) = match signal {
        Signal::Typing { room, user, username } => {
            let chat = super::of_agent(MessageType::Typing, room.as_str(), user.as_str(), username, "", &id);
            (room, ChatMessage { agent_name: None, ..chat }, None)
        }
        Signal::Reply { room, agent_name, owner, connection, message, part, .. } => {
            let (room_id, owner, reply) = (room.as_str(), owner.as_str(), message.as_str());
            let chat = match part {
                ReplyPart::Started => super::typing(room_id, owner, agent_name, &id, reply),
                ReplyPart::Text(text) => super::chunk(room_id, owner, agent_name, reply, text),
                ReplyPart::Failed(reason) => super::error(room_id, owner, agent_name, reply, reason),
            };
            (room, chat, connection.as_deref())
        }
        Signal::AgentsDismissed { room, by, username, agent_name } => {
            let kind = MessageType::Deregister;
            let chat = super::of_agent(kind, room.as_str(), by.as_str(), username, "", &id);
            let agent_name = agent_name.as_deref().map(Cow::Borrowed);
            (room, ChatMessage { agent_name, ..chat }, None)
        }
        _ => return None,
    };
    let message = Message {
        id: Some(format!("{id}:0").into()),
        client_id: Some(chat.from.clone().into_owned().into()),
        ..named(MESSAGE, chat.text())
    };
    Some(Frame {
        connection_id: Some(connection.unwrap_or(HUB).to_owned().into()),
        id: Some(id.clone().into()),
        ..of_hub(message, room, stamp.at)
    })
}

/// MESSAGE frame without a position, on the channel of a project.
fn of_hub(message: Message<'static>, room: &RoomId, at: Time) -> Frame<'static> {
    Frame {
        channel: Some(Channel::Project(room.clone()).name().into()),
        timestamp: Some(at.millis()),
        messages: Some(vec![message]),
        ..Frame::new(Action::Message)
    }
}

/// Change of a task, published under the event name `task`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskChange<'a> {
    Created,
    Updated,
    Deleted(&'a TaskId),
}

/// MESSAGE frame of a task event. `task` is `None` if the task was deleted.
pub fn task_frame<'a>(
    change: TaskChange<'_>,
    task: Option<&rest::Task<'_>>,
    room: &RoomId,
    at: Publication<'a>,
    channel: &'a str,
) -> Frame<'a> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Event<'a, T: Serialize> {
        #[serde(rename = "type")]
        kind: &'static str,
        project_id: &'a str,
        task: T,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Deleted<'a> {
        id: &'a str,
        project_id: &'a str,
    }
    let kind = match change {
        TaskChange::Created => "task-created",
        TaskChange::Updated => "task-updated",
        TaskChange::Deleted(_) => "task-deleted",
    };
    let project_id = room.as_str();
    let json = match change {
        TaskChange::Deleted(id) => {
            let task = Deleted { id: id.as_str(), project_id };
            serde_json::to_string(&Event { kind, project_id, task })
        }
        TaskChange::Created | TaskChange::Updated => serde_json::to_string(&Event { kind, project_id, task }),
    };
    let json = json.expect("a task consists of strings");
    delivered(named(TASK, json), Publication { connection: Some(HUB), ..at }, channel)
}

/// MESSAGE frame on `jaibber:presence` that makes clients load their projects again.
fn refresh_frame(stamp: SignalStamp) -> Frame<'static> {
    let id = format!("{HUB}:{}", stamp.ordinal.0);
    let message = Message { id: Some(format!("{id}:0").into()), ..named(REFRESH_PROJECTS, "{}".into()) };
    Frame {
        id: Some(id.into()),
        connection_id: Some(HUB.into()),
        channel: Some(Channel::GlobalPresence.name().into()),
        timestamp: Some(stamp.at.millis()),
        messages: Some(vec![message]),
        ..Frame::new(Action::Message)
    }
}
