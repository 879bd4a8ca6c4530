//! Queries about annotations: pins and bookmarks.

use crate::{Bookmark, Message, Pin, RoomId, Seq};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Pinned messages of a room, newest pin first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListPins {
    pub room: RoomId,
}

/// Pins with their messages.
pub type PinnedMessages = Vec<(Pin, Arc<Message>)>;

/// The caller's bookmarks of messages that they may see now, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListBookmarks {
    pub before: Option<Seq>,
    pub limit: usize,
}

/// A page of bookmarks with their messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BookmarkPage {
    pub bookmarks: Vec<(Bookmark, Arc<Message>)>,
    /// Whether there are older bookmarks.
    pub more: bool,
}
