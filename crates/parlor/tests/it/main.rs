//! The hub as a real process, seen from outside.

mod agents;
mod attacks;
mod broker_attacks;
mod broker_crash;
mod broker_door;
mod broker_leases;
mod broker_mail;
mod broker_recorded;
mod command_line;
mod crash;
mod dedupe;
mod disk_faults;
mod endings;
mod files;
pub mod gateway;
mod limits;
mod malformed;
mod openapi;
mod operating;
mod page;
mod recorded_page;
mod rest;
mod resume;
mod scene;
mod sign_in;
mod slow_reader;
mod walks;
