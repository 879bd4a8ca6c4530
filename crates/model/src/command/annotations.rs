//! Commands on annotations: reactions, pins and bookmarks.

use crate::{Bookmark, Message, MessageId, Pin};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Adds the caller's reaction with `emoji` to a message, or removes it. Returns the message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToggleReaction {
    pub message: MessageId,
    pub emoji: Box<str>,
}

/// Pins a message for all members of its room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinMessage {
    pub message: MessageId,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pinned {
    pub pin: Pin,
    pub message: Arc<Message>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnpinMessage {
    pub message: MessageId,
}

/// Bookmarks a message for the caller alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddBookmark {
    pub message: MessageId,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bookmarked {
    pub bookmark: Bookmark,
    pub message: Arc<Message>,
    /// Whether the caller had bookmarked the message before.
    pub repeated: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoveBookmark {
    pub message: MessageId,
}
