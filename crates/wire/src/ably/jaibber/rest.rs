//! Bodies of the REST routes that the Jaibber SDK and app call.

use super::{FileEntry, member_type};
use crate::time::iso;
use parlor_model::{Destination, MessageKind, RoomRole, Sender, TaskStatus};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use utoipa::ToSchema;

/// Body of `/api/auth/register` and `/api/auth/token`.
#[derive(Deserialize, ToSchema)]
pub struct Credentials {
    pub username: Box<str>,
    pub password: Box<str>,
    pub email: Option<Box<str>>,
}

/// Answer to `/api/auth/register` and `/api/auth/token`.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignedIn<'a> {
    pub token: &'a str,
    pub user_id: &'a str,
    pub username: &'a str,
}

/// Answer to `GET /api/auth/me`.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Me<'a> {
    pub user_id: &'a str,
    pub username: &'a str,
}

/// Body of `POST /api/projects`.
#[derive(Deserialize, ToSchema)]
pub struct NewProject {
    pub name: Box<str>,
    pub description: Option<Box<str>>,
}

/// Changes of `PATCH /api/projects/{id}`.
#[derive(Deserialize, ToSchema)]
pub struct ProjectChanges {
    pub name: Option<Box<str>>,
    pub description: Option<Box<str>>,
}

/// A room as a project.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Project<'a> {
    pub id: &'a str,
    pub name: &'a str,
    pub description: Option<&'a str>,
    pub ably_channel_name: String,
    pub owner_id: &'a str,
    /// Organisations are not supported.
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
            description: None,
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
pub struct ProjectAnswer<'a> {
    pub project: Project<'a>,
}

#[derive(Serialize, ToSchema)]
pub struct ProjectList<'a> {
    pub projects: Vec<Project<'a>>,
}

/// Body of `POST /api/projects/{id}/members`.
#[derive(Deserialize, ToSchema)]
pub struct NewMember {
    pub username: Box<str>,
    pub role: Option<Box<str>>,
}

/// Body of `POST /api/projects/{id}/messages`. With an `id` the message is stored once.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewMessage {
    pub id: Option<Box<str>>,
    pub sender_type: Option<Box<str>>,
    pub sender_name: Option<Box<str>>,
    #[serde(rename = "type")]
    pub kind: Option<Box<str>>,
    pub text: Box<str>,
    pub parent_message_id: Option<Box<str>>,
}

/// A stored message.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerMessage<'a> {
    pub id: &'a str,
    pub project_id: &'a str,
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
            sender_id: message.sender.id(),
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
#[derive(Serialize, ToSchema)]
pub struct Page<'a, T> {
    pub data: Vec<T>,
    pub pagination: Pagination<'a>,
    pub meta: PageEnd<'a>,
}

#[derive(Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PageEnd<'a> {
    pub cursor: Option<Cow<'a, str>>,
    pub has_more: bool,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pagination<'a> {
    pub cursor: Option<Cow<'a, str>>,
    pub has_more: bool,
    pub links: PageLinks,
}

#[derive(Serialize, ToSchema)]
pub struct PageLinks {
    #[serde(rename = "self")]
    pub current: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub next: Option<String>,
}

impl<'a, T> Page<'a, T> {
    /// `cursor` is that of the next page, if there is one.
    pub fn of(data: Vec<T>, path: &str, cursor: Option<Cow<'a, str>>) -> Self {
        let has_more = cursor.is_some();
        let next = cursor.as_ref().map(|cursor| format!("{path}?before={cursor}"));
        let links = PageLinks { current: path.into(), next };
        let meta = PageEnd { cursor: cursor.clone(), has_more };
        Self { data, pagination: Pagination { cursor, has_more, links }, meta }
    }
}

/// Answer with one value.
#[derive(Serialize, ToSchema)]
pub struct One<T> {
    pub data: T,
}

/// Body of `POST /api/projects/{id}/tasks`.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewTask {
    pub title: Box<str>,
    pub description: Option<Box<str>>,
    /// `low`, `medium`, `high` or `urgent`.
    pub priority: Option<Box<str>>,
    pub assigned_agent_name: Option<Box<str>>,
    pub parent_task_id: Option<Box<str>>,
    pub created_by_type: Option<Box<str>>,
    pub created_by_name: Option<Box<str>>,
}

/// Body of `PATCH /api/tasks/{id}`.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskChanges {
    pub title: Option<Box<str>>,
    pub description: Option<Box<str>>,
    pub status: Option<Box<str>>,
    pub priority: Option<Box<str>>,
    pub assigned_agent_name: Option<Box<str>>,
}

/// A task. Clients expect `null` for absent values.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Task<'a> {
    pub id: Cow<'a, str>,
    pub project_id: Cow<'a, str>,
    pub title: Cow<'a, str>,
    pub description: Option<Cow<'a, str>>,
    pub status: &'static str,
    pub priority: &'static str,
    pub assigned_agent_name: Option<Cow<'a, str>>,
    pub created_by: Cow<'a, str>,
    pub created_by_type: &'static str,
    pub created_by_name: Cow<'a, str>,
    pub source_message_id: Option<Cow<'a, str>>,
    pub parent_task_id: Option<Cow<'a, str>>,
    #[schema(format = DateTime)]
    pub created_at: String,
    #[schema(format = DateTime)]
    pub updated_at: String,
}

impl<'a> Task<'a> {
    pub fn of(task: &'a parlor_model::Task, assignee: Option<&'a str>, creator: &'a str) -> Self {
        Self {
            id: task.id.as_str().into(),
            project_id: task.room.as_str().into(),
            title: (&*task.title).into(),
            description: task.description.as_deref().map(Cow::Borrowed),
            status: status_name(task.status),
            priority: task.priority.as_str(),
            assigned_agent_name: assignee.map(Cow::Borrowed),
            created_by: task.created_by.as_str().into(),
            created_by_type: member_type(&task.created_by),
            created_by_name: creator.into(),
            source_message_id: None,
            parent_task_id: task.parent.as_ref().map(|id| id.as_str().into()),
            created_at: iso(task.created_at),
            updated_at: iso(task.updated_at),
        }
    }
}

/// Name of a status in Jaibber.
pub fn status_name(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Pending => "submitted",
        TaskStatus::InProgress => "working",
        TaskStatus::InputRequired => "input-required",
        TaskStatus::Completed => "completed",
        TaskStatus::Failed => "failed",
        TaskStatus::Cancelled => "cancelled",
    }
}

pub fn parse_status(text: &str) -> Option<TaskStatus> {
    TaskStatus::ALL.into_iter().find(|status| status_name(*status) == text)
}

/// Body of `PUT /api/agent-registrations`.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentRegistration {
    pub project_id: Box<str>,
    pub agent_name: Box<str>,
    pub agent_instructions: Option<Box<str>>,
    pub agent_provider: Option<Box<str>>,
    pub custom_command: Option<Box<str>>,
    pub machine_name: Option<Box<str>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_a_name_in_jaibber() {
        for status in TaskStatus::ALL {
            assert_eq!(parse_status(status_name(status)), Some(status));
        }
        assert_eq!(parse_status("pending"), None);
    }

    #[test]
    fn a_page_has_both_forms_of_the_cursor() {
        let page = Page::of(vec![1], "/m", Some("c".into()));
        assert_eq!(
            serde_json::to_string(&page).unwrap(),
            r#"{"data":[1],"pagination":{"cursor":"c","hasMore":true,"links":{"self":"/m","next":"/m?before=c"}},"meta":{"cursor":"c","hasMore":true}}"#
        );
    }
}
