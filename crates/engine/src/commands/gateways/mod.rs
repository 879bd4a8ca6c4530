//! Commands on gateways.

mod connect_gateway;
mod disconnect_gateway;
mod hosted_agents;
pub mod pending_removals;
mod remove_gateway;
