//! Queries about accounts and profiles, and their answers.

use crate::User;
use serde::{Deserialize, Serialize};

/// The caller's own account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetMe;

/// Looks up an account by its username, with its password hash. The answer is `None` if no account has this
/// username.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindAccount {
    pub username: Box<str>,
}

/// Whether the hub has no admin account yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeedsSetup;

/// A page of all accounts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListUsers {
    pub limit: usize,
    pub offset: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserPage {
    pub users: Vec<User>,
    /// Number of all accounts.
    pub total: usize,
}

/// Finds the user with exactly this username.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindUser {
    pub username: Box<str>,
}

/// Other users whose username or display name contains the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchUsers {
    pub text: Box<str>,
}
