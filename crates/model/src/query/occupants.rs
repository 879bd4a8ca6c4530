//! Queries about presence sets. The sets are no state of the store: the hub adds them to the permission.

use crate::Path;
use serde::{Deserialize, Serialize};

/// Whether the caller may be a member of the presence set of a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MayEnterPlace {
    pub place: Path,
}

/// Whether the caller may see the presence set of a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MayListOccupants {
    pub place: Path,
}

/// Whether the caller may read the recent changes of a presence set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MayReadOccupantHistory {
    pub place: Path,
}

/// Whether the caller may read how many subscribers and members a place has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MayReadOccupancy {
    pub place: Path,
}
