//! Tests of the agent kinds with real programs and without a gateway: a run input goes in, its output comes
//! out.

mod acp;
mod claude;
#[cfg(feature = "real-agents")]
mod real;
mod stage;
