//! Queries about runs.

mod agent_names;
mod get_run;
mod get_run_messages;
mod list_child_runs;
mod list_queue;
mod list_runs;
mod list_runs_of_agent;
mod list_runs_of_message;
mod may_inquire;
