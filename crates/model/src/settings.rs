//! Settings that site admins change while the hub runs.

use crate::Edit;
use serde::{Deserialize, Serialize};

/// Runtime settings. `None` means that the value from start-up applies.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HubSettings {
    /// Display name of the hub.
    pub name: Option<Box<str>>,
    /// Whether invitations can be created and used.
    pub invitations: Option<bool>,
    pub lockout_failures: Option<u32>,
    pub lockout_seconds: Option<u32>,
}

/// Changes to runtime settings. A cleared setting has its value from start-up again.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SettingChanges {
    pub name: Edit<Box<str>>,
    pub invitations: Edit<bool>,
    pub lockout_failures: Edit<u32>,
    pub lockout_seconds: Edit<u32>,
}

impl HubSettings {
    pub const NAME: &str = "Parlor";

    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(Self::NAME)
    }

    pub fn invites(&self) -> bool {
        self.invitations.unwrap_or(true)
    }

    pub fn with(&self, changes: &SettingChanges) -> Self {
        Self {
            name: changes.name.apply(&self.name),
            invitations: changes.invitations.apply(&self.invitations),
            lockout_failures: changes.lockout_failures.apply(&self.lockout_failures),
            lockout_seconds: changes.lockout_seconds.apply(&self.lockout_seconds),
        }
    }
}
