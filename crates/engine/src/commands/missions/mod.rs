//! Commands on missions and idle prompts.

mod audit;
mod end_mission;
mod in_scope;
mod prompt_idle;
mod set_idle_prompt;
mod set_mission;
mod validate;
