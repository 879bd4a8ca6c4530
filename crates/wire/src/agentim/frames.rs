//! Frames of `/ws/client` in both directions, and the types that frames and REST bodies share. Absent fields are
//! omitted, never `null`, because AgentIM's clients discard a frame that contains `null`.

pub mod client;
pub mod server;

pub use client::ClientFrame;
pub use server::ServerFrame;

use super::egress::agents::object_without_nulls;
use super::rest::{MemberType, MessageType, NotificationPref, RoomKind, RoomPolicy, RoomRole, SenderType};
use crate::files::FileFrame;
use crate::relayed::RelayedFrame;
use crate::time::iso;
use parlor_model::{AnswerPolicy, Chunk, Forwarded, Member, Message, Reaction, Room};
use serde::Serialize;
use serde_json::value::RawValue;
#[cfg(test)]
use ts_rs::TS;
use utoipa::ToSchema;

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(rename = "Message", optional_fields))]
#[schema(as = Message)]
#[serde(rename_all = "camelCase")]
pub struct MessageFrame<'a> {
    pub id: &'a str,
    pub room_id: &'a str,
    pub sender_id: &'a str,
    pub sender_type: SenderType,
    pub sender_name: &'a str,
    #[serde(rename = "type")]
    pub kind: MessageType,
    pub content: &'a str,
    pub mentions: Vec<&'a str>,
    pub attachments: Vec<FileFrame<'a>>,
    pub reactions: Vec<ReactionFrame<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reply_to_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub thread_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub metadata: Option<Metadata<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub chunks: Vec<ChunkFrame<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub client_message_id: Option<&'a str>,
    #[schema(format = DateTime)]
    pub created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub updated_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub edited_at: Option<String>,
    pub seq: u64,
}

impl<'a> From<&'a Message> for MessageFrame<'a> {
    fn from(message: &'a Message) -> Self {
        let edited = message.edited_at.map(iso);
        Self {
            id: message.id.as_str(),
            room_id: message.destination.room().map_or("", |room| room.as_str()),
            sender_id: message.sender.id(),
            sender_type: (&message.sender).into(),
            sender_name: &message.sender_name,
            kind: message.kind.into(),
            content: &message.text,
            mentions: message.mentions.iter().map(|mention| &*mention.name).collect(),
            reactions: message.reactions.iter().map(ReactionFrame::from).collect(),
            attachments: message.attachments.iter().map(FileFrame::from).collect(),
            reply_to_id: message.reply_to.as_ref().map(|id| id.as_str()),
            thread_id: message.thread.as_ref().map(|id| id.as_str()),
            metadata: Metadata::of(message),
            chunks: message
                .run_output
                .iter()
                .flat_map(|output| &output.chunks)
                .map(ChunkFrame::from)
                .collect(),
            client_message_id: message.client_message_id.as_deref(),
            created_at: iso(message.at),
            updated_at: edited.clone(),
            edited_at: edited,
            seq: message.seq.0,
        }
    }
}

/// An emoji with the ids and, in the same order, the names of the users that added it.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(rename = "Reaction"))]
#[schema(as = Reaction)]
#[serde(rename_all = "camelCase")]
pub struct ReactionFrame<'a> {
    pub emoji: &'a str,
    pub user_ids: Vec<&'a str>,
    pub usernames: Vec<&'a str>,
}

impl<'a> From<&'a Reaction> for ReactionFrame<'a> {
    fn from(reaction: &'a Reaction) -> Self {
        Self {
            emoji: &reaction.emoji,
            user_ids: reaction.people.iter().map(|person| person.user.as_str()).collect(),
            usernames: reaction.people.iter().map(|person| &*person.username).collect(),
        }
    }
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, ts(optional_fields))]
pub struct Metadata<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub forwarded_from: Option<ForwardedFrame<'a>>,
    /// Run in which an agent sent the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub run_id: Option<&'a str>,
    /// `complete`, `failed`, `cancelled` or `interrupted`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub outcome: Option<&'a str>,
    /// Author and addressees, if the message was relayed from outside the hub.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub relayed: Option<RelayedFrame<'a>>,
}

impl<'a> Metadata<'a> {
    fn of(message: &'a Message) -> Option<Self> {
        let (forwarded, output) = (message.forwarded.as_deref(), message.run_output.as_deref());
        let relayed = message.relayed.as_deref();
        (forwarded.is_some() || output.is_some() || relayed.is_some()).then(|| Self {
            forwarded_from: forwarded.map(Into::into),
            run_id: output.map(|output| output.run.as_str()),
            outcome: output.map(|output| output.outcome.as_str()),
            relayed: relayed.map(Into::into),
        })
    }
}

/// Part of an agent's reply.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(rename = "Chunk", optional_fields))]
#[schema(as = Chunk)]
pub struct ChunkFrame<'a> {
    #[serde(rename = "type")]
    pub kind: &'a str,
    pub content: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Object)]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::AnyObject>"))]
    pub metadata: Option<Box<RawValue>>,
}

impl<'a> From<&'a Chunk> for ChunkFrame<'a> {
    fn from(chunk: &'a Chunk) -> Self {
        let metadata = chunk.metadata.as_ref().and_then(object_without_nulls);
        Self { kind: chunk.kind.as_str(), content: &chunk.content, metadata }
    }
}

/// Original message, sender and time of a forwarded message.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(rename = "Forwarded"))]
#[schema(as = Forwarded)]
#[serde(rename_all = "camelCase")]
pub struct ForwardedFrame<'a> {
    pub message_id: &'a str,
    pub sender_id: &'a str,
    pub sender_type: SenderType,
    pub sender_name: &'a str,
    #[schema(format = DateTime)]
    pub created_at: String,
}

impl<'a> From<&'a Forwarded> for ForwardedFrame<'a> {
    fn from(from: &'a Forwarded) -> Self {
        Self {
            message_id: from.message.as_str(),
            sender_id: from.sender.id(),
            sender_type: (&from.sender).into(),
            sender_name: &from.sender_name,
            created_at: iso(from.at),
        }
    }
}

#[derive(Serialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct RoomFrame<'a> {
    pub id: &'a str,
    pub name: &'a str,
    #[serde(rename = "type")]
    pub kind: RoomKind,
    pub broadcast_mode: bool,
    pub policy: RoomPolicy,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<&'a str>,
    pub agent_command_role: RoomRole,
    pub approve_role: RoomRole,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub router_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frozen_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frozen_by: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_root: Option<&'a str>,
    pub created_by_id: &'a str,
    pub created_at: String,
    pub updated_at: String,
}

impl<'a> From<&'a Room> for RoomFrame<'a> {
    fn from(room: &'a Room) -> Self {
        Self {
            id: room.id.as_str(),
            name: &room.name,
            kind: room.kind.into(),
            broadcast_mode: room.policy != AnswerPolicy::Mention,
            policy: room.policy.into(),
            system_prompt: room.system_prompt.as_deref(),
            agent_command_role: room.agent_command_role.into(),
            approve_role: room.approve_role.into(),
            router_id: room.router.as_ref().map(|router| router.as_str()),
            frozen_at: room.frozen.as_ref().map(|frozen| iso(frozen.at)),
            frozen_by: room.frozen.as_ref().and_then(|frozen| frozen.by.as_ref()).map(|by| by.as_str()),
            project_root: room.project_root.as_deref(),
            created_by_id: room.created_by.as_str(),
            created_at: iso(room.created_at),
            updated_at: iso(room.updated_at),
        }
    }
}

#[derive(Serialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct MemberFrame<'a> {
    pub room_id: &'a str,
    pub member_id: &'a str,
    pub member_type: MemberType,
    pub role: RoomRole,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role_description: Option<&'a str>,
    pub notification_pref: NotificationPref,
    pub display_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_read_at: Option<String>,
    pub joined_at: String,
}

impl<'a> From<&'a Member> for MemberFrame<'a> {
    fn from(member: &'a Member) -> Self {
        Self {
            room_id: member.room.as_str(),
            member_id: member.member.as_str(),
            member_type: (&member.member).into(),
            role: member.role.into(),
            role_description: member.role_description.as_deref(),
            notification_pref: member.room_preferences.notifications.into(),
            display_name: &member.name,
            last_read_at: member.read_at.map(iso),
            joined_at: iso(member.joined_at),
        }
    }
}
