//! `/ws/gateway`: the machines on which agents live.

pub mod egress;
pub mod host;
pub mod ingress;
pub mod run_event;
