//! Queries about API keys, and their answers.

use crate::{KeyId, SecretHash};
use serde::{Deserialize, Serialize};

/// API keys of the caller; all keys for the operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListKeys;

/// Looks up an API key by its secret. The answer is `None` if no key has this secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindKey {
    pub secret: SecretHash,
}

/// Reads an API key whose secret signs tokens. The answer is `None` for other keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindSigningKey {
    pub key: KeyId,
}
