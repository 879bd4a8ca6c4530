//! Queries about invitations and pairing codes, and their answers.

use crate::SecretHash;
use serde::{Deserialize, Serialize};

/// All unexpired invitations, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListInvitations;

/// Checks whether an account can be created with this invitation now, or without one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MayRegister {
    pub token: Option<SecretHash>,
}
