//! Gateway side of `/ws/gateway`, for Parlor gateways: decodes frames of the hub and encodes frames to it.

pub mod egress;
pub mod ingress;
