//! Commands on agents.

pub mod existing_agent;
pub mod new_agent;
pub mod removal;
