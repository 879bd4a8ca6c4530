//! The control socket, through which `parlor admin` reaches a running hub.
//!
//! Owns: the path of the socket, its permissions, and the exchange of one JSON line in each direction per
//! connection. The socket has mode 0600 in the data directory, so it is as private as the data.

mod client;
mod path;
mod server;
#[cfg(test)]
mod tests;

pub use client::ask;
pub use server::ControlSocket;

/// File name of the socket in the data directory.
pub const SOCKET_NAME: &str = "control.sock";

/// Maximum bytes of a request line.
const MAX_REQUEST_BYTES: u64 = 64 * 1024;
/// Maximum bytes of a reply line; large enough to list the users of a large hub.
const MAX_REPLY_BYTES: u64 = 64 * 1024 * 1024;
