//! Queries about missions and idle prompts.

mod get_idle_prompt;
mod list_missions;
