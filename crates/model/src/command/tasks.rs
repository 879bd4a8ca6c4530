//! Commands on tasks. All but the removal return the task.

use crate::{AgentId, Edit, MemberId, RoomId, TaskId, TaskPriority, TaskStatus, Time};
use serde::{Deserialize, Serialize};

/// Creates a task in a room. An agent that it is assigned to gets a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateTask {
    pub room: RoomId,
    /// Agent of the caller that creates the task; `None` if the caller does.
    pub by: Option<AgentId>,
    pub title: Box<str>,
    pub description: Option<Box<str>>,
    pub priority: TaskPriority,
    pub due_at: Option<Time>,
    pub assignee: Option<MemberId>,
    /// Task of the room that the new task follows up.
    pub parent: Option<TaskId>,
}

/// Changes a task. An agent that it is newly assigned to gets a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeTask {
    pub task: TaskId,
    pub changes: TaskChanges,
}

/// Changes to a task. Each field is kept, cleared or set.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TaskChanges {
    pub title: Option<Box<str>>,
    pub description: Edit<Box<str>>,
    pub status: Option<TaskStatus>,
    pub priority: Option<TaskPriority>,
    pub result: Edit<Box<str>>,
    pub due_at: Edit<Time>,
    pub assignee: Edit<MemberId>,
}

impl TaskChanges {
    /// Returns whether nothing but the status changes.
    pub fn is_status_alone(&self) -> bool {
        *self == Self { status: self.status, ..Self::default() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoveTask {
    pub task: TaskId,
}

/// Sets status and result of a task. Submitted for the agent that the task is assigned to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportTask {
    pub task: TaskId,
    pub agent: AgentId,
    pub status: TaskStatus,
    pub result: Option<Box<str>>,
}
