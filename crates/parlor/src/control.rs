//! The control socket: how `parlor admin` reaches a hub that is running.
//!
//! Owns: the path, its protection, and one JSON line each way for each connection.
//! The socket has mode 0600 in the data directory, so it is as private as the data itself.

mod client;
mod path;
mod server;
#[cfg(test)]
mod tests;

pub use client::ask;
pub use server::ControlSocket;

/// The socket's name in the data directory.
pub const SOCKET_NAME: &str = "control.sock";

/// A line longer than this is no request of ours.
const LONGEST_REQUEST: u64 = 64 * 1024;
/// Room for the listing of a hub with many people.
const LONGEST_REPLY: u64 = 64 * 1024 * 1024;
