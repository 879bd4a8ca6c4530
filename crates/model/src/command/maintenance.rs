//! Commands on operating the hub.

use crate::Seq;
use serde::{Deserialize, Serialize};

/// Records in the audit log that a backup was made, complete up to and including `through`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordBackup {
    pub through: Seq,
}

/// Appends an event without content. Later signals get higher ordinals than all earlier ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppendNoop;
