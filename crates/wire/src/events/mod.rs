//! Chat events: one stream of everything that happens around agents, and a plain API to talk to them.

pub mod answers;
pub mod egress;
pub mod frames;
pub mod ingress;
pub mod missions;
pub mod rest;
pub mod tree;
