//! The broker protocol: frames `msg.*` and `agent.*` on `/ws/broker`.

pub mod client;
pub mod codes;
pub mod egress;
pub mod fields;
pub mod frames;
pub mod ingress;
pub mod rooms;
pub mod tool_client;
