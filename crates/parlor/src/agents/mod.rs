//! Agents that this process hosts: as a gateway of a remote hub, or inside the hub itself.

pub mod command;
pub mod entry;
pub mod folders;
pub mod gateway;
mod in_process;
pub mod join;
pub mod local;
mod run_environment;
pub mod services;
pub mod show;
pub mod tool_programs;

pub use entry::AgentEntry;
