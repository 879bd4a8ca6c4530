//! Commands: every state change that a caller can request, and the receipts that it gets after the commit.
//!
//! A command carries no secret in clear text: passwords arrive hashed, tokens as digests, model keys sealed.

mod accounts;
mod agents;
mod annotations;
mod approvals;
mod gateways;
mod invitations;
mod keys;
mod mail;
mod maintenance;
mod messages;
mod missions;
mod plans;
mod rooms;
mod routers;
mod runs;
mod services;
mod settings;
mod sign_ins;
mod tasks;
mod turns;
mod uploads;

pub use accounts::*;
pub use agents::*;
pub use annotations::*;
pub use approvals::*;
pub use gateways::*;
pub use invitations::*;
pub use keys::*;
pub use mail::*;
pub use maintenance::*;
pub use messages::*;
pub use missions::*;
pub use plans::*;
pub use rooms::*;
pub use routers::*;
pub use runs::*;
pub use services::*;
pub use settings::*;
pub use sign_ins::*;
pub use tasks::*;
pub use turns::*;
pub use uploads::*;
