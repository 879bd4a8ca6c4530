//! The broker: `msg.*` and `agent.*` over `/ws/broker`.

pub mod codes;
pub mod egress;
pub mod frames;
pub mod ingress;
