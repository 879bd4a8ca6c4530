//! Agents on this machine: of a gateway that belongs to a hub elsewhere, or of the hub itself.

pub mod command;
pub mod entry;
pub mod gateway;
mod in_process;
pub mod join;
pub mod local;
pub mod services;
pub mod show;

pub use entry::AgentEntry;
