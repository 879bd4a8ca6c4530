//! Bodies for tasks in the terms of Jaibber.

use crate::ably::jaibber::member_type;
use crate::agentim::rest::MemberType;
use crate::time::iso;
use parlor_model::TaskStatus;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use utoipa::ToSchema;

/// Body of `POST /api/projects/{id}/tasks`.
#[derive(Deserialize, ToSchema)]
#[schema(as = NewJaibberTask)]
#[serde(rename_all = "camelCase")]
pub struct NewTask {
    pub title: Box<str>,
    pub description: Option<Box<str>>,
    /// `low`, `medium`, `high` or `urgent`. Default: `medium`.
    #[schema(example = "high")]
    pub priority: Option<Box<str>>,
    /// Name of an agent in the project.
    pub assigned_agent_name: Option<Box<str>>,
    /// Task that the new task follows up.
    pub parent_task_id: Option<Box<str>>,
    /// `user` or `agent`. Default: `user`.
    #[schema(example = "user")]
    pub created_by_type: Option<Box<str>>,
    /// Name of the caller's agent that creates the task, with the type `agent`.
    pub created_by_name: Option<Box<str>>,
}

/// A task. Clients expect `null` for absent values.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = JaibberTask)]
#[serde(rename_all = "camelCase")]
pub struct Task<'a> {
    pub id: Cow<'a, str>,
    pub project_id: Cow<'a, str>,
    pub title: Cow<'a, str>,
    #[schema(required)]
    pub description: Option<Cow<'a, str>>,
    /// `submitted`, `working`, `input-required`, `completed`, `failed` or `cancelled`.
    pub status: &'static str,
    /// `low`, `medium`, `high` or `urgent`.
    pub priority: &'static str,
    #[schema(required)]
    pub assigned_agent_name: Option<Cow<'a, str>>,
    pub created_by: Cow<'a, str>,
    pub created_by_type: &'static str,
    pub created_by_name: Cow<'a, str>,
    #[schema(required)]
    pub source_message_id: Option<Cow<'a, str>>,
    #[schema(required)]
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

/// A changed task with the fields of the hub's own clients too. Its status is in the vocabulary of the
/// request.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangedTask<'a> {
    #[serde(flatten)]
    pub task: Task<'a>,
    pub room_id: &'a str,
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
}

impl<'a> ChangedTask<'a> {
    pub fn of(task: &'a parlor_model::Task, jaibber: Task<'a>, words: StatusWords) -> Self {
        let status = match words {
            StatusWords::Hub => task.status.as_str(),
            StatusWords::Jaibber => jaibber.status,
        };
        Self {
            task: Task { status, ..jaibber },
            room_id: task.room.as_str(),
            result: task.result.as_deref(),
            due_date: task.due_at.map(iso),
            assignee_id: task.assignee.as_ref().map(|member| member.as_str()),
            assignee_type: task.assignee.as_ref().map(MemberType::from),
            created_by_id: task.created_by.as_str(),
        }
    }
}

/// Vocabulary of the status of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusWords {
    Hub,
    Jaibber,
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

/// Parses a status in either vocabulary, and returns the vocabulary if only one of them has the word.
pub fn parse_any_status(text: &str) -> Option<(TaskStatus, Option<StatusWords>)> {
    match (TaskStatus::parse(text), parse_status(text)) {
        (Some(status), Some(_)) => Some((status, None)),
        (Some(status), None) => Some((status, Some(StatusWords::Hub))),
        (None, Some(status)) => Some((status, Some(StatusWords::Jaibber))),
        (None, None) => None,
    }
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
    fn a_status_is_parsed_in_either_vocabulary() {
        let check = |text, expected| assert_eq!(parse_any_status(text), expected, "{text}");
        check("working", Some((TaskStatus::InProgress, Some(StatusWords::Jaibber))));
        check("in_progress", Some((TaskStatus::InProgress, Some(StatusWords::Hub))));
        check("completed", Some((TaskStatus::Completed, None)));
        check("done", None);
    }
}
