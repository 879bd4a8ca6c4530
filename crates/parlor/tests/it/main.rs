//! The hub as a real process, seen from outside.

mod broker_door;
mod crash;
mod dedupe;
mod disk_faults;
mod endings;
mod limits;
mod malformed;
mod resume;
mod scene;
mod slow_reader;
mod walks;
