//! Queries about agents' plans.

use crate::RoomSelection;
use serde::{Deserialize, Serialize};

/// Current plans of agents in the selected rooms, or in all rooms of the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListPlans {
    pub rooms: RoomSelection,
}
