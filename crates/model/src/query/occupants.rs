//! Queries about presence sets. They only check permissions: the sets are not in the store, so the fan-out answers.

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
