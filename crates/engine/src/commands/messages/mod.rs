//! Commands on messages in rooms, and the parts that every command that posts a message shares.

pub mod addressee;
pub mod attachments;
mod chosen_id;
mod delete_message;
mod delete_messages;
mod deletion;
mod edit_message;
mod forward_message;
pub mod idempotency;
mod mark_all_read;
mod mark_room_read;
mod new_chat;
mod post;
mod prompt_agent;
mod read_marks;
pub mod recipients;
mod rewind_room;
