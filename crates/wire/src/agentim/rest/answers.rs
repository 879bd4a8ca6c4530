//! Response bodies of the REST API. Unlike frames, they may contain `null`, because AgentIM's clients require
//! these keys.

use super::{False, MemberType, NotificationPref, RoomKind, RoomPolicy, RoomRole, Scope, SiteRole, True};
use crate::agentim::frames::MessageFrame;
use crate::time::iso;
use parlor_model::{Epoch, MessageId, Position, Seq, SignInId, Time, query};
use serde::Serialize;
use std::collections::BTreeMap;
#[cfg(test)]
use ts_rs::TS;
use utoipa::ToSchema;

/// Successful response with data.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
pub struct Success<T> {
    #[schema(inline)]
    pub ok: True,
    pub data: T,
}

/// Successful response without data.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
pub struct Done {
    #[schema(inline)]
    pub ok: True,
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct User<'a> {
    pub id: &'a str,
    pub username: &'a str,
    pub display_name: &'a str,
    #[schema(required)]
    pub avatar_url: Option<&'a str>,
    pub role: SiteRole,
    pub totp_enabled: bool,
    #[schema(format = DateTime)]
    pub created_at: String,
    #[schema(format = DateTime)]
    pub updated_at: String,
}

impl<'a> From<&'a parlor_model::User> for User<'a> {
    fn from(user: &'a parlor_model::User) -> Self {
        Self {
            id: user.id.as_str(),
            username: &user.username,
            display_name: &user.display_name,
            avatar_url: user.avatar_url.as_deref(),
            role: user.role.into(),
            totp_enabled: user.second_factor,
            created_at: iso(user.created_at),
            updated_at: iso(user.updated_at),
        }
    }
}

/// User account with the properties that only site admins see.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct ManagedUser<'a> {
    #[serde(flatten)]
    pub user: User<'a>,
    /// Maximum connections of this user; `null` if the hub-wide limit applies.
    #[schema(required)]
    pub max_connections: Option<u32>,
    /// Path patterns of external sources that this user's agents may receive.
    pub hears: Vec<&'a str>,
    pub locked: bool,
}

impl<'a> ManagedUser<'a> {
    pub fn new(user: &'a parlor_model::User, now: Time) -> Self {
        let hears = user.source_patterns.iter().map(|pattern| pattern.as_str()).collect();
        Self { user: user.into(), max_connections: user.max_connections, hears, locked: user.is_locked(now) }
    }
}

/// Public profile of a user.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Person<'a> {
    pub id: &'a str,
    pub username: &'a str,
    pub display_name: &'a str,
    #[schema(required)]
    pub avatar_url: Option<&'a str>,
}

impl<'a> From<&'a parlor_model::User> for Person<'a> {
    fn from(user: &'a parlor_model::User) -> Self {
        Self {
            id: user.id.as_str(),
            username: &user.username,
            display_name: &user.display_name,
            avatar_url: user.avatar_url.as_deref(),
        }
    }
}

/// Tokens and account after a successful sign-in.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct SignedIn<'a> {
    pub access_token: &'a str,
    pub refresh_token: &'a str,
    pub user: User<'a>,
}

/// New tokens after a refresh. Contains a refresh token only if the request body contained one.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Tokens<'a> {
    pub access_token: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub refresh_token: Option<&'a str>,
}

/// Name of an external OAuth provider for sign-in. None is supported yet.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
pub struct OauthProvider<'a>(pub &'a str);

/// A sign-in: an authenticated device or browser of the user.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Session<'a> {
    pub id: &'a str,
    pub device: &'a str,
    pub address: &'a str,
    #[schema(format = DateTime)]
    pub created_at: String,
    #[schema(format = DateTime)]
    pub last_used_at: String,
    #[schema(format = DateTime)]
    pub expires_at: String,
    /// Whether this sign-in made the request.
    pub current: bool,
}

impl<'a> Session<'a> {
    pub fn new(sign_in: &'a parlor_model::SignIn, current: Option<&SignInId>) -> Self {
        Self {
            id: sign_in.id.as_str(),
            device: &sign_in.device,
            address: &sign_in.address,
            created_at: iso(sign_in.created_at),
            last_used_at: iso(sign_in.used_at),
            expires_at: iso(sign_in.expires_at),
            current: current == Some(&sign_in.id),
        }
    }
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Key<'a> {
    pub id: &'a str,
    pub name: &'a str,
    pub scopes: Vec<Scope>,
    /// Capability of a key of the Ably protocol, as JSON text. Such a key is accepted by that protocol only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    #[cfg_attr(test, ts(optional))]
    pub capability: Option<&'a str>,
    #[schema(format = DateTime)]
    pub created_at: String,
}

impl<'a> From<&'a parlor_model::ApiKey> for Key<'a> {
    fn from(key: &'a parlor_model::ApiKey) -> Self {
        Self {
            id: key.id.as_str(),
            name: &key.name,
            scopes: key.scopes.iter().map(|scope| (*scope).into()).collect(),
            capability: key.grant.as_ref().map(|grant| &*grant.notation),
            created_at: iso(key.created_at),
        }
    }
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
pub struct CreatedKey<'a> {
    #[serde(flatten)]
    pub about: Key<'a>,
    /// The secret. Returned only in this response.
    pub key: &'a str,
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Room<'a> {
    pub id: &'a str,
    pub name: &'a str,
    #[serde(rename = "type")]
    pub kind: RoomKind,
    /// Whether `policy` is not `mention`.
    pub broadcast_mode: bool,
    pub policy: RoomPolicy,
    #[schema(required)]
    pub system_prompt: Option<&'a str>,
    pub agent_command_role: RoomRole,
    pub approve_role: RoomRole,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    #[cfg_attr(test, ts(optional))]
    pub frozen_at: Option<String>,
    /// User that froze the room; absent if the operator did.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    #[cfg_attr(test, ts(optional))]
    pub frozen_by: Option<&'a str>,
    pub created_by_id: &'a str,
    #[schema(format = DateTime)]
    pub created_at: String,
    #[schema(format = DateTime)]
    pub updated_at: String,
    #[schema(required)]
    pub router_id: Option<&'a str>,
    /// Project root: folder on the hub's machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    #[cfg_attr(test, ts(optional))]
    pub project_root: Option<&'a str>,
}

impl<'a> From<&'a parlor_model::Room> for Room<'a> {
    fn from(room: &'a parlor_model::Room) -> Self {
        Self {
            id: room.id.as_str(),
            name: &room.name,
            kind: room.kind.into(),
            broadcast_mode: room.policy != parlor_model::AnswerPolicy::Mention,
            policy: room.policy.into(),
            system_prompt: room.system_prompt.as_deref(),
            agent_command_role: room.agent_command_role.into(),
            approve_role: room.approve_role.into(),
            frozen_at: room.frozen.as_ref().map(|frozen| iso(frozen.at)),
            frozen_by: room.frozen.as_ref().and_then(|frozen| frozen.by.as_ref()).map(|by| by.as_str()),
            created_by_id: room.created_by.as_str(),
            created_at: iso(room.created_at),
            updated_at: iso(room.updated_at),
            router_id: room.router.as_ref().map(|router| router.as_str()),
            project_root: room.project_root.as_deref(),
        }
    }
}

/// A room with the membership and the room preferences of the caller.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct RoomOfMember<'a> {
    #[serde(flatten)]
    pub room: Room<'a>,
    #[schema(required, format = DateTime)]
    pub pinned_at: Option<String>,
    #[schema(required, format = DateTime)]
    pub archived_at: Option<String>,
    #[schema(required, format = DateTime)]
    pub cleared_at: Option<String>,
    #[schema(required, format = DateTime)]
    pub last_read_at: Option<String>,
    pub notification_pref: NotificationPref,
    pub role: RoomRole,
    #[schema(required)]
    pub role_description: Option<&'a str>,
}

impl<'a> RoomOfMember<'a> {
    pub fn new(room: &'a parlor_model::Room, member: &'a parlor_model::Member) -> Self {
        let own = &member.room_preferences;
        Self {
            room: room.into(),
            pinned_at: own.pinned_at.map(iso),
            archived_at: own.archived_at.map(iso),
            cleared_at: own.cleared_at.map(iso),
            last_read_at: member.read_at.map(iso),
            notification_pref: own.notifications.into(),
            role: member.role.into(),
            role_description: member.role_description.as_deref(),
        }
    }
}

/// A room with the first page of its members.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct RoomWithMembers<'a> {
    #[serde(flatten)]
    pub room: Room<'a>,
    pub members: Vec<Member<'a>>,
    pub total_members: usize,
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Member<'a> {
    pub room_id: &'a str,
    pub member_id: &'a str,
    pub member_type: MemberType,
    pub role: RoomRole,
    pub notification_pref: NotificationPref,
    pub display_name: &'a str,
    #[schema(required, format = DateTime)]
    pub last_read_at: Option<String>,
    #[schema(format = DateTime)]
    pub joined_at: String,
    #[schema(required)]
    pub role_description: Option<&'a str>,
    #[schema(required, format = DateTime)]
    pub pinned_at: Option<String>,
    #[schema(required, format = DateTime)]
    pub archived_at: Option<String>,
    #[schema(required, format = DateTime)]
    pub cleared_at: Option<String>,
}

impl<'a> From<&'a parlor_model::Member> for Member<'a> {
    fn from(member: &'a parlor_model::Member) -> Self {
        Self {
            room_id: member.room.as_str(),
            member_id: member.member.as_str(),
            member_type: (&member.member).into(),
            role: member.role.into(),
            notification_pref: member.room_preferences.notifications.into(),
            display_name: &member.name,
            last_read_at: member.read_at.map(iso),
            joined_at: iso(member.joined_at),
            role_description: member.role_description.as_deref(),
            pinned_at: member.room_preferences.pinned_at.map(iso),
            archived_at: member.room_preferences.archived_at.map(iso),
            cleared_at: member.room_preferences.cleared_at.map(iso),
        }
    }
}

/// A page of members with its offset and the total number.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
pub struct Members<'a> {
    #[schema(inline)]
    pub ok: True,
    pub data: Vec<Member<'a>>,
    pub pagination: Pagination,
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
pub struct Pagination {
    pub limit: usize,
    pub offset: usize,
    pub total: usize,
}

/// A page of accounts with the total number.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
pub struct Users<'a> {
    #[schema(inline)]
    pub ok: True,
    pub data: Vec<ManagedUser<'a>>,
    pub total: usize,
}

/// Message created by an earlier request with the same `clientMessageId`.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(untagged)]
pub enum Repeated<'a> {
    Message(Box<MessageFrame<'a>>),
    Deleted(DeletedMessage<'a>),
}

/// Id and sequence number of a message that has been deleted.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
pub struct DeletedMessage<'a> {
    pub id: &'a str,
    pub seq: u64,
    pub deleted: bool,
}

impl<'a> DeletedMessage<'a> {
    pub fn new(id: &'a MessageId, seq: Seq) -> Self {
        Self { id: id.as_str(), seq: seq.0, deleted: true }
    }
}

/// A page of a room's history.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct History<'a> {
    pub items: Vec<MessageFrame<'a>>,
    pub has_more: bool,
    /// Cursor of the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub next_cursor: Option<String>,
}

impl<'a> History<'a> {
    pub fn new(
        messages: impl IntoIterator<Item = &'a parlor_model::Message>,
        has_more: bool,
        epoch: Epoch,
        last: Option<&parlor_model::Message>,
    ) -> Self {
        Self {
            items: messages.into_iter().map(MessageFrame::from).collect(),
            has_more,
            next_cursor: last.map(|last| Position { epoch, seq: last.seq }.to_string()),
        }
    }
}

/// The newest message of each room, by the room's id.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
pub struct RecentRooms<'a>(pub BTreeMap<&'a str, Recent<'a>>);

impl<'a> RecentRooms<'a> {
    pub fn new(recent: &'a [query::Recent]) -> Self {
        let entry =
            |found: &'a query::Recent| Some((found.message.destination.room()?.as_str(), found.into()));
        Self(recent.iter().filter_map(entry).collect())
    }
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Recent<'a> {
    pub content: &'a str,
    pub sender_name: &'a str,
    #[schema(format = DateTime)]
    pub created_at: String,
    pub unread: u64,
    /// Number of unread messages that mention the caller.
    pub mentions: u64,
}

impl<'a> From<&'a query::Recent> for Recent<'a> {
    fn from(found: &'a query::Recent) -> Self {
        let message = &found.message;
        // For a message without text, the name of its first file.
        let file = message.attachments.first().filter(|_| message.text.is_empty());
        Self {
            content: file.map_or(&message.text, |attachment| &attachment.file.name),
            sender_name: &message.sender_name,
            created_at: iso(message.at),
            unread: found.unread,
            mentions: found.mentions,
        }
    }
}

/// Text of a message before an edit.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Revision<'a> {
    pub message_id: &'a str,
    pub previous_content: &'a str,
    #[schema(format = DateTime)]
    pub edited_at: String,
}

impl<'a> From<&'a parlor_model::Revision> for Revision<'a> {
    fn from(revision: &'a parlor_model::Revision) -> Self {
        Self {
            message_id: revision.message.as_str(),
            previous_content: &revision.text,
            edited_at: iso(revision.edited_at),
        }
    }
}

/// Health of the hub.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
pub struct Health<'a> {
    pub ok: bool,
    pub status: &'a str,
    #[schema(format = DateTime)]
    pub timestamp: String,
    pub version: &'a str,
    pub checks: Checks<'a>,
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
pub struct Checks<'a> {
    pub store: &'a str,
}

/// Error response: a message for people and, for errors that programs must distinguish, a code.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
pub struct Problem<'a> {
    #[schema(inline)]
    pub ok: False,
    pub error: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub fields: Option<Vec<Field<'a>>>,
    /// Current position of the log, if the position in the request is no longer available.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub position: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
pub struct Field<'a> {
    pub field: &'a str,
    pub message: &'a str,
}
