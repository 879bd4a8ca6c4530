//! Commands on missions and idle prompts.

pub mod audit;
mod end_mission;
pub mod in_scope;
mod prompt_idle;
mod set_idle_prompt;
mod set_mission;
mod validate;
