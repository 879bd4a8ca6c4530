//! `/ws/gateway`: the machines on which agents live.

pub mod egress;
pub mod ingress;
