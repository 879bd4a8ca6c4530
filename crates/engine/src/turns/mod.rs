//! Automatic turns: pending mail of a session starts a run, and heartbeats send mail to agents.
//!
//! Owns the pure [`Lanes`](lanes::Lanes) and [`Heartbeats`](heartbeats::Heartbeats), and the driver loop that checks the
//! lanes that are due. The store is the truth: a lane only says when to read the pending mail. Decisions are committed
//! through the write pipeline (`commands/turns`).

mod budget;
mod changes;
pub mod cron;
pub(crate) mod driver;
mod handle;
mod heartbeats;
mod lanes;

pub use changes::TurnChanges;
pub use handle::TurnsHandle;
