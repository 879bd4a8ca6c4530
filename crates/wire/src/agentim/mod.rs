//! The AgentIM protocol: `/ws/client`, `/ws/gateway` and the REST API.

pub mod codes;
pub mod egress;
pub mod fields;
pub mod frames;
pub mod gateway;
pub mod ingress;
pub mod rest;
