//! Queries about API keys, and their answers.

use serde::{Deserialize, Serialize};

/// API keys of the caller; all keys for the operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListKeys;
