//! Commands on the tasks of a room.

mod assignment;
mod change_task;
mod create_task;
pub mod put;
mod remove_task;
mod report_task;
mod texts;
