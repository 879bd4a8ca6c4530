//! The kinds of agents, each with real programs and nothing of the gateway: a turn goes in, what is said comes out.

mod acp;
mod claude;
#[cfg(feature = "real-agents")]
mod real;
mod stage;
