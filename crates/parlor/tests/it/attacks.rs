//! Security tests: attacks on a running hub, one file per kind of attack.
//!
//! Every attack must fail without side effects.

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
