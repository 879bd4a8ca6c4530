//! Development only: fault injection, process harness, clients.

pub mod agentim;
pub mod broker;
pub mod browser;
pub mod crash;
pub mod events;
pub mod faultfs;
pub mod gateway;
pub mod hosting;
pub mod http;
pub mod hub;
pub mod messages;
pub mod model_endpoint;
pub mod oracle;
pub mod program;
pub mod rest;
pub mod rng;
mod skip;
pub mod socket;
