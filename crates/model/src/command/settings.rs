//! Commands on the hub's settings and the audit log, and their receipts.

use crate::SettingChanges;
use serde::{Deserialize, Serialize};

/// Changes the hub's settings. Returns the new settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeSettings {
    pub changes: SettingChanges,
}
