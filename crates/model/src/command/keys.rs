//! Commands on API keys, and their receipts.

use crate::{KeyGrant, KeyId, Scope, SealedKey, SecretHash, Time, UserId};
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

/// Creates an API key that is limited to a grant and whose secret signs tokens. Returns the key without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateSigningKey {
    /// New random id. The encryption of the secret is bound to it.
    pub id: KeyId,
    /// `None` for a key of the caller.
    pub owner: Option<UserId>,
    pub name: Box<str>,
    pub grant: KeyGrant,
    pub secret: SecretHash,
    pub sealed: SealedKey,
}

/// Revokes tokens of a key, and closes its connections so that they authenticate again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevokeTokens {
    pub key: KeyId,
    /// Properties of the tokens; see `Revocation::target`.
    pub targets: Vec<Box<str>>,
    /// Tokens issued before this time are revoked. A time in the future counts as now.
    pub issued_before: Time,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevokeKey {
    pub key: KeyId,
}
