//! The binary's parts: arguments, settings, composition, and what is printed.
//!
//! A library beside `main.rs`, so that tests reach everything the binary does.

pub mod admin;
pub mod admin_command;
pub mod agents;
pub mod arguments;
pub mod backup;
pub mod config_command;
pub mod control;
pub mod doctor;
mod guide;
pub mod handbook;
pub mod house;
pub mod listing;
pub mod log;
mod models;
pub mod offline;
pub mod paint;
pub mod password;
mod perform;
pub mod report;
pub mod run;
pub mod secret;
pub mod serve;
pub mod settings;
mod traces;
mod triage;
