//! Approvals, missions and triage through a whole hub on the SQLite store.
//!
//! Under concurrent answers, leaving members and lost gateways, exactly one decision per approval reaches its
//! gateway, and only from a user who may decide it.

mod missions;
mod races;
mod scene;
mod time;
mod triage;
