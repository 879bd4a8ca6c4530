//! The hub as a real process, seen from outside.

mod attacks;
mod command_line;
mod crash;
mod disk_faults;
mod page;
mod rest;
mod scene;
mod sign_in;
