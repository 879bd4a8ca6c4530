//! Commands on annotations: reactions, pins and bookmarks.

mod add_bookmark;
mod pin_message;
mod remove_bookmark;
mod toggle_reaction;
mod unpin_message;
