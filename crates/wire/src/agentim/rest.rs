//! The bodies of the REST API: what comes in, and what goes out inside `{ok, data}`.

use super::frames::{MemberFrame, MessageFrame, RoomFrame};
use crate::time::iso;
use parlor_model::query::Recent;
use parlor_model::{
    Agent, ApiKey, Epoch, Member, Message, Position, Revision, Room, SignIn, SignInId, Time, User,
};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

#[derive(Deserialize)]
pub struct Login {
    pub username: String,
    pub password: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefreshBody {
    pub refresh_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetUp {
    pub token: String,
    pub username: String,
    pub password: String,
    pub display_name: Option<Box<str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewUser {
    pub username: Box<str>,
    pub password: String,
    pub display_name: Option<Box<str>>,
    pub role: Option<Box<str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserChanges {
    pub display_name: Option<Box<str>>,
    pub role: Option<Box<str>>,
    pub password: Option<String>,
    /// `null` takes the override away; absent leaves it.
    #[serde(default, deserialize_with = "given", alias = "maxWsConnections")]
    pub max_connections: Option<Option<u32>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Profile {
    pub display_name: Box<str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PasswordChange {
    pub current_password: String,
    pub new_password: String,
}

#[derive(Deserialize)]
pub struct NewKey {
    pub name: Box<str>,
    pub scopes: Vec<Box<str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RoomBody {
    pub name: Option<Box<str>>,
    #[serde(rename = "type")]
    pub kind: Option<Box<str>>,
    pub broadcast_mode: Option<bool>,
    #[serde(default, deserialize_with = "given")]
    pub system_prompt: Option<Option<Box<str>>>,
    pub agent_command_role: Option<Box<str>>,
    pub member_ids: Option<Vec<Box<str>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewMember {
    pub member_id: Box<str>,
    pub member_type: Option<Box<str>>,
    pub role: Option<Box<str>>,
}

#[derive(Deserialize)]
pub struct MemberRole {
    pub role: Box<str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewMessage {
    pub content: Box<str>,
    pub mentions: Option<Vec<Box<str>>>,
    pub reply_to_id: Option<Box<str>>,
    pub attachment_ids: Option<Vec<Box<str>>>,
    pub client_message_id: Option<Box<str>>,
}

#[derive(Deserialize)]
pub struct MessageEdit {
    pub content: Box<str>,
}

/// Tells `null` from absent.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

pub fn user(user: &User) -> Value {
    json!({
        "id": user.id.as_str(),
        "username": user.username,
        "displayName": user.display_name,
        "avatarUrl": null,
        "role": user.role.as_str(),
        "totpEnabled": false,
        "createdAt": iso(user.created_at),
        "updatedAt": iso(user.updated_at),
    })
}

/// What only admins see of an account.
pub fn managed_user(found: &User, now: Time) -> Value {
    let mut value = user(found);
    value["maxConnections"] = json!(found.max_connections);
    value["locked"] = json!(found.locked_until.is_some_and(|until| until > now));
    value
}

/// What everyone sees of another person.
pub fn person(user: &User) -> Value {
    json!({
        "id": user.id.as_str(),
        "username": user.username,
        "displayName": user.display_name,
        "avatarUrl": null,
    })
}

pub fn sign_in(sign_in: &SignIn, current: Option<&SignInId>) -> Value {
    json!({
        "id": sign_in.id.as_str(),
        "device": sign_in.device,
        "address": sign_in.address,
        "createdAt": iso(sign_in.created_at),
        "lastUsedAt": iso(sign_in.used_at),
        "expiresAt": iso(sign_in.expires_at),
        "current": current == Some(&sign_in.id),
    })
}

pub fn key(key: &ApiKey) -> Value {
    let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.as_str()).collect();
    json!({ "id": key.id.as_str(), "name": key.name, "scopes": scopes, "createdAt": iso(key.created_at) })
}

/// REST may carry `null` where the socket may not; the real clients expect these keys.
pub fn room(found: &Room) -> Value {
    let mut value = json!(RoomFrame::from(found));
    for absent in ["systemPrompt", "routerId"] {
        if value.get(absent).is_none() {
            value[absent] = Value::Null;
        }
    }
    value
}

pub fn room_of_member(found: &Room, member: &Member) -> Value {
    let mut value = room(found);
    value["pinnedAt"] = Value::Null;
    value["archivedAt"] = Value::Null;
    value["role"] = json!(member.role.as_str());
    value
}

pub fn member(found: &Member) -> Value {
    let mut value = json!(MemberFrame::from(found));
    for absent in ["roleDescription", "pinnedAt", "archivedAt", "lastReadAt", "clearedAt"] {
        if value.get(absent).is_none() {
            value[absent] = Value::Null;
        }
    }
    value
}

pub fn message(message: &Message) -> Value {
    json!(MessageFrame::from(message))
}

pub fn history<'a>(
    messages: impl IntoIterator<Item = &'a Message> + Clone,
    more: bool,
    epoch: Epoch,
    last: Option<&Message>,
) -> Value {
    let items: Vec<MessageFrame> = messages.into_iter().map(MessageFrame::from).collect();
    let mut page = Map::new();
    page.insert("items".into(), json!(items));
    page.insert("hasMore".into(), json!(more));
    if let Some(last) = last {
        let cursor = Position { epoch, seq: last.seq };
        page.insert("nextCursor".into(), json!(cursor.to_string()));
    }
    Value::Object(page)
}

pub fn recent(recent: &[Recent]) -> Value {
    let entry = |found: &Recent| {
        let room = found.message.place.room()?.as_str().to_owned();
        let entry = json!({
            "content": &*found.message.text,
            "senderName": found.message.sender_name,
            "createdAt": iso(found.message.at),
            "unread": found.unread,
        });
        Some((room, entry))
    };
    Value::Object(recent.iter().filter_map(entry).collect())
}

pub fn revision(revision: &Revision) -> Value {
    json!({
        "messageId": revision.message.as_str(),
        "previousContent": revision.text,
        "editedAt": iso(revision.edited_at),
    })
}

pub fn agent(agent: &Agent) -> Value {
    json!({
        "id": agent.id.as_str(),
        "name": agent.name,
        "description": agent.description,
        "type": "generic",
        "status": "offline",
        "visibility": "private",
        "createdAt": iso(agent.created_at),
    })
}
