//! The verbs: one corridor, written once, in order: admit → authorise → plan → commit → announce.
//!
//! Knows no door and no database: doors translate at the edge, stores stand behind the ports.

mod admit;
pub mod audit;
pub mod authorise;
mod cards;
mod digest;
pub mod facts;
mod fault;
pub mod figures;
mod follower;
mod following;
mod health;
pub mod hub;
pub mod janitor;
mod limits;
pub mod local;
mod pipeline;
pub mod plan;
pub mod ports;
mod routes;
pub mod search;
mod sniff;
pub mod switchboard;
pub mod turns;

pub use admit::password_flaws;
pub use fault::{Fault, Severity};
pub use health::Health;
pub use hub::{Hub, Receipt};
pub use limits::Limits;
pub use sniff::Sniffer;
