//! Queries about API keys, and their answers.

use crate::SecretHash;
use serde::{Deserialize, Serialize};

/// API keys of the caller; all keys for the operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListKeys;

/// The API key with this secret; `None` if there is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindKey {
    pub secret: SecretHash,
}
