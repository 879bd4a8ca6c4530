//! Implementation of the `parlor` binary: command line, settings, composition of the hub, and printed output.
//!
//! It is a library next to `main.rs` so that tests can call every part of the binary.

pub mod admin;
pub mod admin_command;
mod admin_executor;
pub mod agents;
pub mod arguments;
pub mod backup;
pub mod chatmd;
pub mod config_command;
pub mod control;
pub mod doctor;
mod guide;
pub mod instance;
pub mod log;
pub mod manual;
mod models;
pub mod offline;
pub mod password;
pub mod report;
pub mod run;
pub mod secret;
pub mod serve;
pub mod settings;
pub mod style;
pub mod text_table;
mod tool_command;
mod traces;
mod triage;
