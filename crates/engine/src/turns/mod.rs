//! Turns: what agents are asked, say and are told, behind the fan-out.

pub mod desk;
pub mod host;
mod hosting;
pub(crate) mod keeper;
pub mod rollup;
mod terminal;
mod triage;

pub use desk::LinkId;
pub use host::{Beside, Host, Order};
pub use hosting::{Finished, Turns, Voice};
pub use triage::PlainRules;
