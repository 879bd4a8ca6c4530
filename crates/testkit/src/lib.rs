//! Test support: a hub harness, protocol clients, stub endpoints and fault injection. Development only.

pub mod ably;
pub mod agentim;
pub mod anthropic_stub;
pub mod broker;
pub mod browser;
pub mod crash;
pub mod events;
pub mod faultfs;
pub mod gateway;
pub mod gateway_process;
pub mod http;
pub mod hub;
pub mod model_endpoint;
pub mod oracle;
pub mod program;
pub mod rest;
mod skip;
pub mod socket;
#[cfg(feature = "stores")]
pub mod stores;

/// Seeds of random tests.
pub use parlor_seed as seed;
/// Random generator that starts from a [`seed`].
pub mod rng {
    pub use parlor_seed::Rng;
}
