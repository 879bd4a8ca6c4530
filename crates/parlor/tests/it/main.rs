//! The hub as a real process, seen from outside.

mod broker_door;
mod crash;
mod disk_faults;
mod limits;
mod scene;
mod walks;
