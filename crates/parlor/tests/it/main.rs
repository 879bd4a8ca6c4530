//! The hub as a real process, seen from outside.

mod attacks;
mod crash;
mod disk_faults;
mod scene;
mod sign_in;
