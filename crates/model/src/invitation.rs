//! Links with which people make their own accounts.

use crate::{InvitationId, SiteRole, Time, UserId};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invitation {
    pub id: InvitationId,
    /// What whoever takes it becomes.
    pub role: SiteRole,
    /// For whom it is, in the words of who made it.
    pub note: Option<Box<str>>,
    pub uses: u32,
    pub uses_left: u32,
    /// `None` when whoever runs the hub made it.
    pub created_by: Option<UserId>,
    pub created_at: Time,
    pub expires_at: Time,
}

impl Invitation {
    pub fn is_open(&self, now: Time) -> bool {
        self.uses_left > 0 && now < self.expires_at
    }
}
