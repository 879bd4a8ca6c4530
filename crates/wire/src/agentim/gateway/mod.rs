//! The gateway protocol on `/ws/gateway`: programs that host agents connect to the hub with it.

pub mod egress;
pub mod frames;
pub mod host;
pub mod ingress;
pub mod run_event;
