//! Commands on gateways, and their receipts.

use crate::{Device, GatewayId};
use serde::{Deserialize, Serialize};

/// Creates a gateway, or marks a known gateway as online. Returns the gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectGateway {
    pub id: GatewayId,
    pub device: Device,
    pub ephemeral: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DisconnectGateway {
    pub gateway: GatewayId,
}

/// Removes a gateway together with the agents that it hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoveGateway {
    pub gateway: GatewayId,
}
