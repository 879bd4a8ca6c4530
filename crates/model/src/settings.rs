//! What admins change while the hub runs.

/// What was changed; what is absent is as the hub was started.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HubSettings {
    /// What this hub calls itself.
    pub name: Option<Box<str>>,
    /// Whether invitations can be made and taken.
    pub invitations: Option<bool>,
    pub lockout_failures: Option<u32>,
    pub lockout_seconds: Option<u32>,
}

/// For each setting: absent leaves it, `Some(None)` takes the change back.
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
        fn one<T: Clone>(known: &Option<T>, change: &Option<Option<T>>) -> Option<T> {
            change.as_ref().unwrap_or(known).clone()
        }
        Self {
            name: one(&self.name, &changes.name),
            invitations: one(&self.invitations, &changes.invitations),
            lockout_failures: one(&self.lockout_failures, &changes.lockout_failures),
            lockout_seconds: one(&self.lockout_seconds, &changes.lockout_seconds),
        }
    }
}
