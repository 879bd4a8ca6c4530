//! Commands on agents.

mod change_agent;
mod change_session;
mod create_agent;
pub mod existing_agent;
mod host_agent;
pub mod new_agent;
mod predecessors;
mod profile;
mod register_agent;
mod registration;
pub mod removal;
mod remove_agent;
