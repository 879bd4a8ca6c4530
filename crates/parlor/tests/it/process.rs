//! Tests that need a separate hub process: crashes and power loss, signals, start-up and shutdown, the
//! command line, gateways and the programs they run.

pub mod agents;
mod broker_crash;
mod browser;
mod chatmd;
mod chatmd_bridge;
pub mod command_line;
mod crash;
mod disk_faults;
pub mod first_admin;
pub mod operating;
mod secrets;
mod slow_reader;
mod turn_crash;
