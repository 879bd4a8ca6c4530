//! Queries about messages in rooms.

mod count_replies;
mod get_message;
mod list_destination_history;
mod list_history;
mod list_recent;
mod list_replies;
mod list_revisions;
mod may_prompt_agent;
mod page;
mod search_messages;
