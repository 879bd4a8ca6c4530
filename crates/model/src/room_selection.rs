//! Selection of rooms by a request: by room, by project root, or both.

use crate::RoomId;
use serde::{Deserialize, Serialize};

/// The rooms that a request concerns. With a project root, these are the caller's rooms with that root, or only
/// `room` if it has that root. The meaning of an empty selection depends on the request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomSelection {
    pub room: Option<RoomId>,
    pub root: Option<Box<str>>,
}

impl RoomSelection {
    /// Selects neither a room nor a project root.
    pub const EMPTY: Self = Self { room: None, root: None };

    pub fn is_empty(&self) -> bool {
        self.room.is_none() && self.root.is_none()
    }
}

impl From<RoomId> for RoomSelection {
    fn from(room: RoomId) -> Self {
        Self { room: Some(room), root: None }
    }
}
