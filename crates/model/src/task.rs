//! Tasks of a room, assigned to a user or an agent.

use crate::{MemberId, RoomId, TaskId, Time};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    pub id: TaskId,
    pub room: RoomId,
    pub title: Box<str>,
    pub description: Option<Box<str>>,
    pub status: TaskStatus,
    pub priority: TaskPriority,
    /// Result reported by the assignee or written by a user.
    pub result: Option<Box<str>>,
    pub due_at: Option<Time>,
    /// User or agent that the task is assigned to; a member of the room at the time of the assignment.
    pub assignee: Option<MemberId>,
    /// Task that this task follows up, in the same room. It may have been removed since.
    pub parent: Option<TaskId>,
    pub created_by: MemberId,
    pub created_at: Time,
    pub updated_at: Time,
}

impl Task {
    /// Returns the bytes of all texts of the task.
    pub fn length(&self) -> usize {
        let optional = self.description.iter().chain(&self.result).map(|text| text.len());
        self.title.len() + optional.sum::<usize>()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub enum TaskPriority {
    Low,
    #[default]
    Medium,
    High,
    Urgent,
}

impl TaskPriority {
    pub const ALL: [Self; 4] = [Self::Low, Self::Medium, Self::High, Self::Urgent];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Urgent => "urgent",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|priority| priority.as_str() == text)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaskStatus {
    Pending,
    InProgress,
    InputRequired,
    Completed,
    Failed,
    Cancelled,
}

impl TaskStatus {
    pub const ALL: [Self; 6] = [
        Self::Pending,
        Self::InProgress,
        Self::InputRequired,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// Returns whether the status may change to `next`. A completed or cancelled task must be reopened before
    /// it can be in progress.
    pub fn may_become(self, next: Self) -> bool {
        !(matches!(self, Self::Completed | Self::Cancelled) && next == Self::InProgress)
    }
}
