//! Queries about the conversation logs of sessions.

mod list_conversation;
mod search_conversations;
