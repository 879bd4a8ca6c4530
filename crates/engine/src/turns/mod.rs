//! Turns: what agents are asked, say and are told, behind the fan-out.

mod adding;
mod approvals;
pub mod desk;
pub mod host;
mod hosting;
pub(crate) mod idle;
mod inquiries;
pub(crate) mod keeper;
mod questions;
mod queue;
mod relays;
mod resuming;
pub mod rollup;
mod terminal;
mod triage;

pub use approvals::Asking;
pub use desk::{LinkId, Waits};
pub use host::{Beside, Host, Order};
pub use hosting::{Finished, Turns, Voice};
pub use relays::Answering;
pub use triage::PlainRules;
