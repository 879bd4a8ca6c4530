//! Commands on rooms, members and room preferences.

mod add_member;
pub(crate) mod audit;
mod change_member;
mod change_room;
mod change_room_preferences;
mod create_room;
mod delete_room;
mod freeze_room;
mod freezing;
pub mod leave_all;
pub(crate) mod members;
pub(crate) mod names;
mod remove_member;
mod room_settings;
mod set_project_root;
mod thaw_room;
