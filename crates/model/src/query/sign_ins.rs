//! Queries about sign-ins and second factors, and their answers.

use serde::{Deserialize, Serialize};

/// Current sign-ins of the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListSignIns;
