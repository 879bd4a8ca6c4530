//! Queries about tasks.

use crate::{RoomId, TaskId};
use serde::{Deserialize, Serialize};

/// Reads one task of a room of the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetTask {
    pub task: TaskId,
}

/// Tasks of a room, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListTasks {
    pub room: RoomId,
}

/// Tasks created by or assigned to the caller, in rooms of the caller, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListOwnTasks {
    pub limit: usize,
    pub offset: usize,
}
