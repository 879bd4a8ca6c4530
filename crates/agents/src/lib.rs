//! Agents that Parlor brings along. They speak the frames of `/ws/gateway`, as an agent on any other machine does:
//! the hub gives them no way around its rules.

pub mod guide;
pub mod link;

pub use guide::guide;
pub use link::{Link, link};
