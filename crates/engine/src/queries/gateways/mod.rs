//! Queries about gateways.

mod list_gateways;
mod may_manage_credentials;
mod may_spawn_agents;
