//! Commands on rooms, members and room preferences.

pub(crate) mod leave_all;
pub(crate) mod members;
