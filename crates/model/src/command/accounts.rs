//! Commands on accounts and profiles, and their receipts.

use crate::{Edit, Pattern, SecretHash, SiteRole, Time, UserId};
use serde::{Deserialize, Serialize};

/// Offers the first-run setup: the holder of the token creates the first admin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferSetup {
    pub token: SecretHash,
    pub expires_at: Time,
}

/// Creates the first admin with the token of the setup link. Returns the account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetUp {
    pub token: SecretHash,
    pub account: NewUser,
}

/// Creates an account. Returns it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateUser {
    pub account: NewUser,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewUser {
    pub username: Box<str>,
    pub display_name: Option<Box<str>>,
    pub role: SiteRole,
    pub password_hash: Box<str>,
}

/// Changes an account. Returns it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeUser {
    pub user: UserId,
    pub changes: UserChanges,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct UserChanges {
    pub display_name: Option<Box<str>>,
    pub role: Option<SiteRole>,
    pub password_hash: Option<Box<str>>,
    /// `Clear` removes the override, so that the hub-wide limit applies.
    pub max_connections: Edit<u32>,
    /// See [`User::source_patterns`](crate::User::source_patterns).
    pub hears: Option<Vec<Pattern>>,
}

/// Removes an account with everything that only its user has, such as agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoveUser {
    pub user: UserId,
}

/// Changes the caller's own profile. Returns the account.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ChangeProfile {
    pub display_name: Option<Box<str>>,
    /// `Clear` removes the avatar.
    pub avatar_url: Edit<Box<str>>,
}

/// Changes the caller's own password. Returns the account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangePassword {
    /// Hash that the old password was verified against. The command fails if the stored hash has changed since.
    pub verified_password_hash: Box<str>,
    pub password_hash: Box<str>,
}
