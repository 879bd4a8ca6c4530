//! Commands on agents.

mod change_agent;
mod change_session;
mod configure_agent;
mod create_agent;
pub mod existing_agent;
mod host_agent;
mod move_agent;
pub mod new_agent;
mod predecessors;
mod profile;
mod register_agent;
mod registration;
pub mod removal;
mod remove_agent;
