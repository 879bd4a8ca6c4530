//! The binary's parts: arguments, settings, composition, and what is printed.
//!
//! A library beside `main.rs`, so that tests reach everything the binary does.

pub mod secret;
pub mod settings;
