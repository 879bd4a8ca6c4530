//! Bodies of the REST API: request bodies here, response bodies in `answers` and the other modules.
//!
//! The OpenAPI schemas and the TypeScript types of the web app are generated from these types. In a request
//! body, `null` means the same as absent unless the field says otherwise.

mod agents;
mod annotations;
mod answers;
mod approvals;
mod audit;
mod conversations;
mod enums;
mod files;
mod invitations;
mod limits;
mod mail;
mod pairing;
mod routers;
mod runs;
mod search_results;
mod second_factor;
mod services;
mod settings;
mod tasks;
mod turns;

pub use agents::*;
pub use annotations::*;
pub use answers::*;
pub use approvals::*;
pub use audit::*;
pub use conversations::*;
pub use enums::*;
pub use files::*;
pub use invitations::*;
pub use limits::*;
pub use mail::*;
pub use pairing::*;
pub use routers::*;
pub use runs::*;
pub use search_results::*;
pub use second_factor::*;
pub use services::*;
pub use settings::*;
pub use tasks::*;
pub use turns::*;

use crate::frames::given;
use serde::Deserialize;
#[cfg(test)]
use ts_rs::TS;
use utoipa::ToSchema;

#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
pub struct Login {
    pub username: String,
    pub password: String,
}

#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct RefreshBody {
    pub refresh_token: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct SetUp {
    pub token: String,
    pub username: String,
    pub password: String,
    pub display_name: Option<Box<str>>,
}

#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct NewUser {
    pub username: Box<str>,
    pub password: String,
    pub display_name: Option<Box<str>>,
    #[schema(value_type = Option<SiteRole>)]
    #[cfg_attr(test, ts(as = "Option<SiteRole>"))]
    pub role: Option<Box<str>>,
}

#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct UserChanges {
    pub display_name: Option<Box<str>>,
    #[schema(value_type = Option<SiteRole>)]
    #[cfg_attr(test, ts(as = "Option<SiteRole>"))]
    pub role: Option<Box<str>>,
    pub password: Option<String>,
    /// Maximum connections of this user. `null` removes the override; absent leaves it unchanged.
    #[serde(default, deserialize_with = "given", alias = "maxWsConnections")]
    #[schema(value_type = Option<u32>)]
    #[cfg_attr(test, ts(optional = nullable, as = "Option<u32>"))]
    pub max_connections: Option<Option<u32>>,
    /// Path patterns of external sources that this user's agents may receive.
    #[schema(value_type = Option<Vec<String>>)]
    pub hears: Option<Vec<Box<str>>>,
}

#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Profile {
    pub display_name: Option<Box<str>>,
    /// Path of an uploaded image. `null` removes the avatar; absent leaves it unchanged.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>, example = "/uploads/3f2a.png")]
    #[cfg_attr(test, ts(optional = nullable, as = "Option<String>"))]
    pub avatar_url: Option<Option<Box<str>>>,
}

#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct PasswordChange {
    pub current_password: String,
    pub new_password: String,
}

#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
pub struct NewKey {
    pub name: Box<str>,
    /// The names of Jaibber, such as `messages:read`, are accepted too. Required without `preset`.
    #[serde(default)]
    #[schema(value_type = Vec<Scope>)]
    #[cfg_attr(test, ts(as = "Vec<Scope>"))]
    pub scopes: Vec<Box<str>>,
    /// Creates a key of the Ably protocol instead of a key with scopes: operations by channel, as JSON text. For site
    /// admins; `scopes` is empty then.
    #[schema(nullable = false)]
    pub capability: Option<Box<str>>,
    /// Scopes by a name of Jaibber: `read-only`, `agent-operator` or `full-access`.
    #[schema(example = "read-only")]
    pub preset: Option<Box<str>>,
}

#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct RoomBody {
    pub name: Option<Box<str>>,
    #[serde(rename = "type")]
    #[schema(value_type = Option<RoomKind>)]
    #[cfg_attr(test, ts(as = "Option<RoomKind>"))]
    pub kind: Option<Box<str>>,
    /// Alternative to `policy`: `true` means `triage`, `false` means `mention`.
    pub broadcast_mode: Option<bool>,
    #[schema(value_type = Option<RoomPolicy>)]
    #[cfg_attr(test, ts(as = "Option<RoomPolicy>"))]
    pub policy: Option<Box<str>>,
    /// `null` removes the system prompt; absent leaves it unchanged.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    #[cfg_attr(test, ts(optional = nullable, as = "Option<String>"))]
    pub system_prompt: Option<Option<Box<str>>>,
    #[schema(value_type = Option<RoomRole>)]
    #[cfg_attr(test, ts(as = "Option<RoomRole>"))]
    pub agent_command_role: Option<Box<str>>,
    #[schema(value_type = Option<RoomRole>)]
    #[cfg_attr(test, ts(as = "Option<RoomRole>"))]
    pub approve_role: Option<Box<str>>,
    /// Router that selects the answering agents under the policy `triage`. `null` removes it; absent leaves
    /// it unchanged.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    #[cfg_attr(test, ts(optional = nullable, as = "Option<String>"))]
    pub router_id: Option<Option<Box<str>>>,
    pub member_ids: Option<Vec<Box<str>>>,
}

/// Project root of a room. The field is required; `null` clears the project root.
#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewProjectRoot {
    #[serde(deserialize_with = "Option::deserialize")]
    #[schema(required)]
    pub project_root: Option<Box<str>>,
}

#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct NewMember {
    pub member_id: Box<str>,
    #[schema(value_type = Option<MemberType>)]
    #[cfg_attr(test, ts(as = "Option<MemberType>"))]
    pub member_type: Option<Box<str>>,
    #[schema(value_type = Option<RoomRole>)]
    #[cfg_attr(test, ts(as = "Option<RoomRole>"))]
    pub role: Option<Box<str>>,
    pub role_description: Option<Box<str>>,
}

#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct MemberChanges {
    #[schema(value_type = Option<RoomRole>)]
    #[cfg_attr(test, ts(as = "Option<RoomRole>"))]
    pub role: Option<Box<str>>,
    /// `null` removes the description; absent leaves it unchanged.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    #[cfg_attr(test, ts(optional = nullable, as = "Option<String>"))]
    pub role_description: Option<Option<Box<str>>>,
}

#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct NewMessage {
    pub content: Box<str>,
    pub mentions: Option<Vec<Box<str>>>,
    pub reply_to_id: Option<Box<str>>,
    pub attachment_ids: Option<Vec<Box<str>>>,
    pub client_message_id: Option<Box<str>>,
}

#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
pub struct MessageEdit {
    pub content: Box<str>,
}

#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct MessageList {
    #[schema(min_items = 1, max_items = 50)]
    pub message_ids: Vec<Box<str>>,
}

#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct ForwardTo {
    pub target_room_id: Box<str>,
    pub client_message_id: Option<Box<str>>,
}

#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
pub struct NewReaction {
    #[schema(min_length = 1, max_length = 8)]
    pub emoji: Box<str>,
}

#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct NewBookmark {
    pub message_id: Box<str>,
}

#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
pub struct Notify {
    #[schema(value_type = NotificationPref)]
    #[cfg_attr(test, ts(as = "NotificationPref"))]
    pub pref: Box<str>,
}
