//! Queries about routers, which are models that select the agents that answer an unaddressed message.

use crate::RouterId;
use serde::{Deserialize, Serialize};

/// Routers of the caller, and shared routers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListRouters;

/// Checks whether the caller may create a router, shared or private.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MayCreateRouter {
    pub shared: bool,
}

/// A router that the caller may change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetOwnRouter {
    pub router: RouterId,
}
