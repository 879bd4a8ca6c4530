//! Settings that site admins change while the hub runs.

/// Runtime settings. `None` means that the value from start-up applies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HubSettings {
    /// Display name of the hub.
    pub name: Option<Box<str>>,
    /// Whether invitations can be created and used.
    pub invitations: Option<bool>,
    pub lockout_failures: Option<u32>,
    pub lockout_seconds: Option<u32>,
}

/// Changes to runtime settings. `None` leaves a setting unchanged, `Some(None)` restores the value from
/// start-up.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SettingChanges {
    pub name: Option<Option<Box<str>>>,
    pub invitations: Option<Option<bool>>,
    pub lockout_failures: Option<Option<u32>>,
    pub lockout_seconds: Option<Option<u32>>,
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
        fn apply<T: Clone>(current: &Option<T>, change: &Option<Option<T>>) -> Option<T> {
            change.as_ref().unwrap_or(current).clone()
        }
        Self {
            name: apply(&self.name, &changes.name),
            invitations: apply(&self.invitations, &changes.invitations),
            lockout_failures: apply(&self.lockout_failures, &changes.lockout_failures),
            lockout_seconds: apply(&self.lockout_seconds, &changes.lockout_seconds),
        }
    }
}
