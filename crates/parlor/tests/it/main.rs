//! The hub as a real process, seen from outside.

mod crash;
mod disk_faults;
mod page;
