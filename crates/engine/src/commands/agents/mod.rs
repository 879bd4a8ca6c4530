//! Commands on agents.

pub mod removal;
