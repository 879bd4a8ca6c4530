//! Commands on rooms, members and room preferences.

pub mod leave_all;
mod members;
