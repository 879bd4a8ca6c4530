//! Attacks on a real hub, one file for each kind, and what the attacker gets: nothing.

mod after_revocation;
mod agents;
mod agents_gone;
mod bodies;
mod floods;
mod ids;
mod impersonation;
mod origin;
mod tokens;
pub mod uploads;
