//! End-to-end tests of the hub through its public protocols, over real sockets.
//!
//! Each test starts its own hub inside the test process (see `scene`). Tests that need separate processes
//! (crashes, signals, the command line, gateways and the programs that they start) are in `process/`.

mod ably;
mod agents_root;
mod attacks;
mod broker_attacks;
mod broker_leases;
mod broker_mail;
mod broker_recorded;
mod broker_rooms;
mod broker_session;
mod broker_sessions;
mod chatmd;
mod dedupe;
mod endings;
mod events;
mod files;
mod follow;
pub mod gateway;
mod heartbeats;
mod limits;
mod malformed;
mod models;
mod old_database;
mod openapi;
mod operating;
mod page;
mod process;
mod recorded_everything;
mod recorded_page;
mod rest;
mod resume;
mod scene;
mod service_agents;
mod session_runs;
mod sign_in;
mod walks;
