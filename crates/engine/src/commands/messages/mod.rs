//! Commands on messages in rooms, and the parts that every command that posts a message shares.

pub mod attachments;
pub mod idempotency;
mod post;
pub mod recipients;
