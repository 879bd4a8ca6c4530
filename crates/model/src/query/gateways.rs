//! Queries about gateways, and their answers.

use crate::GatewayId;
use serde::{Deserialize, Serialize};

/// Gateways of the caller, sorted by id; all gateways for the operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListGateways;

/// Checks whether the caller may start agents on a gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaySpawnAgents {
    pub gateway: GatewayId,
}

/// Checks whether the caller may manage the credentials stored by a gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MayManageCredentials {
    pub gateway: GatewayId,
}
