//! Changes of presence sets in the last minutes, in memory.

use parlor_model::{Occupant, OccupantChange, Time};
use std::sync::Arc;

/// A query for the changes of a place that clients made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OccupantHistory {
    /// Oldest first; otherwise newest first.
    pub forwards: bool,
    /// Inclusive.
    pub start: Option<Time>,
    /// Inclusive.
    pub end: Option<Time>,
    /// Exclusive: the page begins after the record with this number, in its direction.
    pub cursor: Option<u64>,
    pub limit: usize,
}

/// A change of a presence set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OccupantRecord {
    /// Increases with each change of all places.
    pub number: u64,
    pub change: OccupantChange,
    pub occupant: Arc<Occupant>,
}
