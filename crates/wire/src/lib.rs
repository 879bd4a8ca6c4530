//! The doors as pure translations: frames in the words of each protocol ⇄ the model.
//!
//! No I/O and no clock; a door never knows another door. Every door has the same files: `frames` (the
//! shapes), `ingress` (in), `egress` (out), `codes` (refusals in its words).

pub mod agentim;
pub mod broker;
pub mod canonical;
pub mod events;
pub mod files;
pub mod json;
pub mod time;
