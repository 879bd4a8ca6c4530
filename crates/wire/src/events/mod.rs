//! The chat-events protocol: one stream of events and signals about agents and rooms, and a REST API to chat
//! with agents.

pub mod answers;
pub mod egress;
pub mod fields;
pub mod frames;
pub mod ingress;
pub mod missions;
pub mod rest;
pub mod tree;
