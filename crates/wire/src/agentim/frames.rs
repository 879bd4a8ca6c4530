//! The shapes that AgentIM frames and REST bodies share. Absent fields are left out, never `null`: the real
//! clients throw away a frame that carries one.

use crate::time::iso;
use parlor_model::{Member, MemberId, Message, Room, Sender};
use serde::Serialize;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageFrame<'a> {
    pub id: &'a str,
    pub room_id: &'a str,
    pub sender_id: &'a str,
    pub sender_type: &'a str,
    pub sender_name: &'a str,
    #[serde(rename = "type")]
    pub kind: &'a str,
    pub content: &'a str,
    pub mentions: Vec<&'a str>,
    /// Uploads are not there yet; clients expect the list all the same.
    pub attachments: [(); 0],
    pub reactions: [(); 0],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_message_id: Option<&'a str>,
    pub created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edited_at: Option<String>,
    pub seq: u64,
}

impl<'a> From<&'a Message> for MessageFrame<'a> {
    fn from(message: &'a Message) -> Self {
        let edited = message.edited_at.map(iso);
        Self {
            id: message.id.as_str(),
            room_id: message.place.room().map_or("", |room| room.as_str()),
            sender_id: message.sender.id(),
            // What is neither a person nor an agent is the system's, in the clients' closed list.
            sender_type: match message.sender {
                Sender::User(_) => "user",
                Sender::Agent(_) => "agent",
                Sender::Source(_) => "system",
            },
            sender_name: &message.sender_name,
            kind: message.kind.as_str(),
            content: &message.text,
            mentions: message.mentions.iter().map(|mention| &*mention.name).collect(),
            attachments: [],
            reactions: [],
            reply_to_id: message.reply_to.as_ref().map(|id| id.as_str()),
            client_message_id: message.client_message_id.as_deref(),
            created_at: iso(message.at),
            updated_at: edited.clone(),
            edited_at: edited,
            seq: message.seq.0,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RoomFrame<'a> {
    pub id: &'a str,
    pub name: &'a str,
    #[serde(rename = "type")]
    pub kind: &'a str,
    pub broadcast_mode: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<&'a str>,
    pub agent_command_role: &'a str,
    pub created_by_id: &'a str,
    pub created_at: String,
    pub updated_at: String,
}

impl<'a> From<&'a Room> for RoomFrame<'a> {
    fn from(room: &'a Room) -> Self {
        Self {
            id: room.id.as_str(),
            name: &room.name,
            kind: room.kind.as_str(),
            broadcast_mode: room.broadcast_mode,
            system_prompt: room.system_prompt.as_deref(),
            agent_command_role: room.agent_command_role.as_str(),
            created_by_id: room.created_by.as_str(),
            created_at: iso(room.created_at),
            updated_at: iso(room.updated_at),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MemberFrame<'a> {
    pub room_id: &'a str,
    pub member_id: &'a str,
    pub member_type: &'a str,
    pub role: &'a str,
    pub notification_pref: &'a str,
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
            member_type: match member.member {
                MemberId::User(_) => "user",
                MemberId::Agent(_) => "agent",
            },
            role: member.role.as_str(),
            notification_pref: "all",
            display_name: &member.name,
            last_read_at: member.read_at.map(iso),
            joined_at: iso(member.joined_at),
        }
    }
}
