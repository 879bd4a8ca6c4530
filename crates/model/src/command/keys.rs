//! Commands on API keys, and their receipts.

use crate::{KeyId, Scope, SecretHash, UserId};
use serde::{Deserialize, Serialize};

/// Creates an API key. Returns the key without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateKey {
    /// `None` for a key of the caller.
    pub owner: Option<UserId>,
    pub name: Box<str>,
    pub scopes: Vec<Scope>,
    pub secret: SecretHash,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevokeKey {
    pub key: KeyId,
}
