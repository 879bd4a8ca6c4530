//! Bodies of the REST routes that the Jaibber SDK and app call.

mod agents;
mod files;
mod generic;
mod invites;
mod scopes;
mod tasks;

pub use agents::*;
pub use files::*;
pub use invites::*;
pub use scopes::*;
pub use tasks::*;

use super::FileEntry;
use crate::time::iso;
use parlor_model::{Destination, MemberId, MessageKind, RoomRole, Sender};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use utoipa::ToSchema;

/// Body of `/api/auth/register` and `/api/auth/token`.
#[derive(Deserialize, ToSchema)]
#[schema(as = JaibberCredentials)]
pub struct Credentials {
    pub username: Box<str>,
    pub password: Box<str>,
    pub email: Option<Box<str>>,
}

/// Answer to `/api/auth/register` and `/api/auth/token`.
#[derive(Serialize, ToSchema)]
#[schema(as = JaibberSignedIn)]
#[serde(rename_all = "camelCase")]
pub struct SignedIn<'a> {
    pub token: &'a str,
    pub user_id: &'a str,
    pub username: &'a str,
}

/// Body of `POST /api/ably/token`: the parameters that the `ably` client sends. The hub ignores them.
#[derive(Deserialize, ToSchema)]
#[schema(as = AblyTokenParameters)]
#[serde(rename_all = "camelCase")]
pub struct TokenParameters {
    pub client_id: Option<Box<str>>,
}

/// Answer to `GET /api/auth/me`.
#[derive(Serialize, ToSchema)]
#[schema(as = JaibberAccount)]
#[serde(rename_all = "camelCase")]
pub struct Me<'a> {
    pub user_id: &'a str,
    pub username: &'a str,
}

/// Body of `POST /api/projects`.
#[derive(Deserialize, ToSchema)]
#[schema(as = NewJaibberProject)]
pub struct NewProject {
    pub name: Box<str>,
    pub description: Option<Box<str>>,
}

/// Changes of `PATCH /api/projects/{id}`.
#[derive(Deserialize, ToSchema)]
#[schema(as = JaibberProjectChanges)]
pub struct ProjectChanges {
    pub name: Option<Box<str>>,
    pub description: Option<Box<str>>,
}

/// A room as a project.
#[derive(Serialize, ToSchema)]
#[schema(as = JaibberProject)]
#[serde(rename_all = "camelCase")]
pub struct Project<'a> {
    pub id: &'a str,
    pub name: &'a str,
    #[schema(required)]
    pub description: Option<&'a str>,
    pub ably_channel_name: String,
    pub owner_id: &'a str,
    /// Organisations are not supported.
    #[schema(required)]
    pub org_id: Option<&'a str>,
    /// `admin` or `member`.
    pub role: &'static str,
    #[schema(format = DateTime)]
    pub created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub member_count: Option<usize>,
}

impl<'a> Project<'a> {
    pub fn of(room: &'a parlor_model::Room, role: RoomRole, member_count: Option<usize>) -> Self {
        Self {
            id: room.id.as_str(),
            name: &room.name,
            description: room.description.as_deref(),
            ably_channel_name: format!("jaibber:project:{}", room.id),
            owner_id: room.created_by.as_str(),
            org_id: None,
            role: role_name(role),
            created_at: iso(room.created_at),
            member_count,
        }
    }
}

/// Role of a member in Jaibber, which has no owner.
pub fn role_name(role: RoomRole) -> &'static str {
    match role {
        RoomRole::Member => "member",
        RoomRole::Admin | RoomRole::Owner => "admin",
    }
}

pub fn parse_role(text: &str) -> Option<RoomRole> {
    match text {
        "member" => Some(RoomRole::Member),
        "admin" => Some(RoomRole::Admin),
        _ => None,
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = JaibberProjectAnswer)]
pub struct ProjectAnswer<'a> {
    pub project: Project<'a>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = JaibberProjectList)]
pub struct ProjectList<'a> {
    pub projects: Vec<Project<'a>>,
}

/// Body of `POST /api/projects/{id}/members`.
#[derive(Deserialize, ToSchema)]
#[schema(as = NewJaibberMember)]
pub struct NewMember {
    pub username: Box<str>,
    /// `admin` or `member`. Default: `member`.
    #[schema(example = "member")]
    pub role: Option<Box<str>>,
}

/// A user in a project. Agents are no members in Jaibber.
#[derive(Serialize, ToSchema)]
#[schema(as = JaibberMember)]
#[serde(rename_all = "camelCase")]
pub struct Member<'a> {
    pub user_id: &'a str,
    pub username: &'a str,
    /// `admin` or `member`.
    pub role: &'static str,
    #[schema(format = DateTime)]
    pub joined_at: String,
}

impl<'a> Member<'a> {
    /// `None` for an agent.
    pub fn of(member: &'a parlor_model::Member) -> Option<Self> {
        let MemberId::User(user) = &member.member else { return None };
        Some(Self {
            user_id: user.as_str(),
            username: &member.handle,
            role: role_name(member.role),
            joined_at: iso(member.joined_at),
        })
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = JaibberMemberAnswer)]
pub struct MemberAnswer<'a> {
    pub member: Member<'a>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = JaibberMemberList)]
pub struct MemberList<'a> {
    pub members: Vec<Member<'a>>,
}

/// Body of `POST /api/projects/{id}/messages`. With an `id` the message is stored once.
#[derive(Deserialize, ToSchema)]
#[schema(as = NewJaibberMessage)]
#[serde(rename_all = "camelCase")]
pub struct NewMessage {
    pub id: Option<Box<str>>,
    /// `user`, `agent` or `api`. Default: `user`.
    #[schema(example = "user")]
    pub sender_type: Option<Box<str>>,
    /// Name of the caller's agent that sends the message, with the type `agent`.
    pub sender_name: Option<Box<str>>,
    #[serde(rename = "type")]
    pub kind: Option<Box<str>>,
    pub text: Box<str>,
    pub parent_message_id: Option<Box<str>>,
}

/// A stored message.
#[derive(Serialize, ToSchema)]
#[schema(as = JaibberMessage)]
#[serde(rename_all = "camelCase")]
pub struct ServerMessage<'a> {
    pub id: &'a str,
    pub project_id: &'a str,
    /// User id; for an agent, the id of its owner if the hub knows it.
    pub sender_id: &'a str,
    /// `user`, `agent` or `api`.
    pub sender_type: &'static str,
    pub sender_name: &'a str,
    /// `message` or `response`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub parent_message_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<FileEntry>,
    #[schema(format = DateTime)]
    pub created_at: String,
}

impl<'a> ServerMessage<'a> {
    /// `None` if the message belongs to no room.
    pub fn of(message: &'a parlor_model::Message) -> Option<Self> {
        let Destination::Room(room) = &message.destination else { return None };
        Some(Self {
            id: message.id.as_str(),
            project_id: room.as_str(),
            // The account behind an agent, as for all senders in Jaibber.
            sender_id: message.answer.as_ref().map_or(message.sender.id(), |answer| answer.owner.as_str()),
            sender_type: match message.sender {
                Sender::User(_) => "user",
                Sender::Agent(_) => "agent",
                Sender::Source(_) => "api",
            },
            sender_name: &message.sender_name,
            kind: match message.kind {
                MessageKind::Text => "message",
                MessageKind::AgentResponse => "response",
            },
            text: &message.text,
            parent_message_id: message.reply_to.as_ref().map(|id| id.as_str()),
            attachments: message.attachments.iter().map(FileEntry::from).collect(),
            created_at: iso(message.at),
        })
    }
}

/// A page of a list. The app reads `pagination`, other clients read `meta`.
#[derive(Serialize)]
pub struct Page<'a, T> {
    pub data: Vec<T>,
    pub pagination: Pagination<'a>,
    pub meta: PageEnd<'a>,
}

#[derive(Clone, Serialize, ToSchema)]
#[schema(as = JaibberPageEnd)]
#[serde(rename_all = "camelCase")]
pub struct PageEnd<'a> {
    #[schema(required)]
    pub cursor: Option<Cow<'a, str>>,
    pub has_more: bool,
}

#[derive(Serialize, ToSchema)]
#[schema(as = JaibberPagination)]
#[serde(rename_all = "camelCase")]
pub struct Pagination<'a> {
    #[schema(required)]
    pub cursor: Option<Cow<'a, str>>,
    pub has_more: bool,
    pub links: PageLinks,
}

#[derive(Serialize, ToSchema)]
#[schema(as = JaibberPageLinks)]
pub struct PageLinks {
    #[serde(rename = "self")]
    pub current: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub next: Option<String>,
}

/// Query parameter that continues a list after a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Continuation {
    Before,
    After,
}

impl<'a, T> Page<'a, T> {
    /// `cursor` is that of the last item. Without `more`, newest-first lists have no cursor; a list that is
    /// read forwards keeps it, because new items may follow.
    pub fn of(
        data: Vec<T>,
        path: &str,
        continuation: Continuation,
        cursor: Option<Cow<'a, str>>,
        has_more: bool,
    ) -> Self {
        let cursor = cursor.filter(|_| has_more || continuation == Continuation::After);
        let parameter = match continuation {
            Continuation::Before => "before",
            Continuation::After => "after",
        };
        let next = cursor.as_ref().filter(|_| has_more);
        let next = next.map(|cursor| format!("{path}?{parameter}={cursor}"));
        let links = PageLinks { current: path.into(), next };
        let meta = PageEnd { cursor: cursor.clone(), has_more };
        Self { data, pagination: Pagination { cursor, has_more, links }, meta }
    }
}

/// Answer with one value.
#[derive(Serialize)]
pub struct One<T> {
    pub data: T,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_both_forms_of_the_cursor() {
        let page = Page::of(vec![1], "/m", Continuation::Before, Some("c".into()), true);
        assert_eq!(
            serde_json::to_string(&page).unwrap(),
            r#"{"data":[1],"pagination":{"cursor":"c","hasMore":true,"links":{"self":"/m","next":"/m?before=c"}},"meta":{"cursor":"c","hasMore":true}}"#
        );
    }

    #[test]
    fn only_a_list_that_is_read_forwards_has_a_cursor_at_its_end() {
        let meta = |continuation| Page::of(vec![1], "/m", continuation, Some("c".into()), false).meta.cursor;
        assert_eq!(meta(Continuation::Before), None);
        assert_eq!(meta(Continuation::After).as_deref(), Some("c"));
    }
}
