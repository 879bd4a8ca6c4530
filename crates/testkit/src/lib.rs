//! Development only: fault injection, process harness, clients.

pub mod faultfs;
pub mod rng;
