//! The hub's engine: executes commands and queries, publishes events, and schedules the runs of agents.
//!
//! Every command takes the same path, in this order: validate → authorise → decide → commit → publish. The
//! engine knows no wire protocol and no database: protocol adapters translate requests into commands, and
//! stores implement the traits in `ports`.

pub mod agent_changes;
pub mod audit;
pub mod blob_gc;
pub mod cache;
pub mod changes;
pub mod commands;
mod digest;
pub mod effects;
mod fault;
pub mod feed;
mod health;
pub mod hub;
mod limits;
pub mod local;
pub mod log_row;
pub mod metrics;
mod paths;
pub mod permission;
mod pipeline;
pub mod ports;
pub mod queries;
pub mod read_view;
mod room_selection;
mod routing_index;
pub mod runs;
pub mod search;
mod sniff;
pub mod tasks;
mod turns;
mod validate;

pub use commands::PendingReceipt;
pub use commands::accounts::welcome::{GUIDE, HUB, ROOM as WELCOME_ROOM};
pub use commands::rooms::members::MAX_MEMBERS_IN_EVENT;
pub use fault::{Fault, Severity};
pub use health::Health;
pub use hub::Hub;
pub use limits::Limits;
pub use sniff::Sniffer;
pub use validate::password_errors;
