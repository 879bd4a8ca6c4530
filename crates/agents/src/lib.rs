//! The agents that are part of Parlor, and the gateway that hosts them.
//!
//! They use the frames of `/ws/gateway`, exactly like a gateway on another machine, so the hub applies the
//! same permission checks and limits to them.

pub mod context;
pub mod finding;
pub mod frame_channel;
pub mod gateway;
pub mod guide;
pub mod kinds;
pub mod pick;
pub mod process;
pub mod run;
pub mod sanitize;
#[cfg(target_os = "linux")]
pub mod supervisor;
pub mod tool_program;
pub mod triage_batch;

pub use frame_channel::{FrameChannel, frame_channel};
pub use guide::guide;
