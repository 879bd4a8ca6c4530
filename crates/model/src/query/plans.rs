//! Queries about agents' plans.

use crate::RoomId;
use serde::{Deserialize, Serialize};

/// Current plans of agents in a room, or in all rooms of the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListPlans {
    pub room: Option<RoomId>,
}
