//! The other side of `/ws/gateway`, for programs of ours that host agents: what the hub says, and how to tell it.

pub mod egress;
pub mod ingress;
