//! Agents that Parlor brings along and the gateway that hosts them. They speak the frames of `/ws/gateway`, as an agent
//! on any other machine does: the hub gives them no way around its rules.

pub mod context;
pub mod finding;
pub mod gateway;
pub mod guide;
#[cfg(target_os = "linux")]
pub mod keeper;
pub mod kinds;
pub mod link;
pub mod outside;
pub mod pick;
pub mod plain;
pub mod process;
mod tls;
pub mod turn;

pub use guide::guide;
pub use link::{Link, link};
