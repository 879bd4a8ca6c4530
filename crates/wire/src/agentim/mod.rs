//! AgentIM: `/ws/client` and the REST API around it.

pub mod codes;
pub mod egress;
pub mod frames;
pub mod ingress;
pub mod rest;
#[cfg(test)]
mod typescript;
