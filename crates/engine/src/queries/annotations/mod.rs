//! Queries about annotations: pins and bookmarks.

mod list_bookmarks;
mod list_pins;
