//! Bodies for tasks, and the task type that REST and frames share.

use super::{MemberType, TaskStatus, given};
use crate::time::iso;
use serde::{Deserialize, Serialize};
#[cfg(test)]
use ts_rs::TS;
use utoipa::ToSchema;

#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct NewTask {
    pub title: Box<str>,
    pub description: Option<Box<str>>,
    #[schema(example = "2027-01-01T00:00:00Z", format = DateTime)]
    pub due_date: Option<Box<str>>,
    pub assignee_id: Option<Box<str>>,
    /// Default: `user`.
    #[schema(value_type = Option<MemberType>)]
    #[cfg_attr(test, ts(as = "Option<MemberType>"))]
    pub assignee_type: Option<Box<str>>,
}

/// Changes to a task. `null` removes a value; an absent field stays unchanged.
#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct TaskChanges {
    pub title: Option<Box<str>>,
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    #[cfg_attr(test, ts(optional = nullable, as = "Option<String>"))]
    pub description: Option<Option<Box<str>>>,
    /// The names of Jaibber (`submitted`, `working`, `input-required`) are accepted too.
    #[schema(value_type = Option<TaskStatus>)]
    #[cfg_attr(test, ts(as = "Option<TaskStatus>"))]
    pub status: Option<Box<str>>,
    /// `low`, `medium`, `high` or `urgent`.
    #[schema(example = "high")]
    pub priority: Option<Box<str>>,
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    #[cfg_attr(test, ts(optional = nullable, as = "Option<String>"))]
    pub result: Option<Option<Box<str>>>,
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>, format = DateTime)]
    #[cfg_attr(test, ts(optional = nullable, as = "Option<String>"))]
    #[schema(example = "2027-01-01T00:00:00Z")]
    pub due_date: Option<Option<Box<str>>>,
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    #[cfg_attr(test, ts(optional = nullable, as = "Option<String>"))]
    pub assignee_id: Option<Option<Box<str>>>,
    #[schema(value_type = Option<MemberType>)]
    #[cfg_attr(test, ts(as = "Option<MemberType>"))]
    pub assignee_type: Option<Box<str>>,
    /// Name of an agent in the task's room. Applies if `assigneeId` is absent.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    #[cfg_attr(test, ts(optional = nullable, as = "Option<String>"))]
    pub assigned_agent_name: Option<Option<Box<str>>>,
}

/// A task. Contains no `null`, because frames contain it as well.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Task<'a> {
    pub id: &'a str,
    pub room_id: &'a str,
    pub title: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub description: Option<&'a str>,
    pub status: TaskStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub result: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub due_date: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub assignee_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub assignee_type: Option<MemberType>,
    pub created_by_id: &'a str,
    pub created_by_type: MemberType,
    #[schema(format = DateTime)]
    pub created_at: String,
    #[schema(format = DateTime)]
    pub updated_at: String,
}

impl<'a> From<&'a parlor_model::Task> for Task<'a> {
    fn from(task: &'a parlor_model::Task) -> Self {
        Self {
            id: task.id.as_str(),
            room_id: task.room.as_str(),
            title: &task.title,
            description: task.description.as_deref(),
            status: task.status.into(),
            result: task.result.as_deref(),
            due_date: task.due_at.map(iso),
            assignee_id: task.assignee.as_ref().map(|member| member.as_str()),
            assignee_type: task.assignee.as_ref().map(MemberType::from),
            created_by_id: task.created_by.as_str(),
            created_by_type: (&task.created_by).into(),
            created_at: iso(task.created_at),
            updated_at: iso(task.updated_at),
        }
    }
}
