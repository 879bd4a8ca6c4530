//! Agents that Parlor brings along and the gateway that hosts them. They speak the frames of `/ws/gateway`, as an agent
//! on any other machine does: the hub gives them no way around its rules.

pub mod context;
pub mod finding;
pub mod frame_channel;
pub mod gateway;
pub mod guide;
pub mod kinds;
pub mod outbound;
pub mod pick;
pub mod process;
pub mod run;
pub mod sanitize;
#[cfg(target_os = "linux")]
pub mod supervisor;
mod tls;

pub use frame_channel::{FrameChannel, frame_channel};
pub use guide::guide;
