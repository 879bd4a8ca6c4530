//! Queries about messages, and their answers.

use crate::{
    AgentId, Destination, Message, MessageId, MessageKind, RoomId, RoomSelection, SenderKind, Seq, Time,
};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;

/// A page of the messages of a room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListHistory {
    pub room: RoomId,
    pub page: Page,
    pub limit: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Page {
    /// Newest first, older than the given message; `None` starts at the newest message.
    Before(Option<Seq>),
    /// Oldest first, newer than the given `Seq`.
    After(Seq),
    /// Oldest first, starting after the last message that is not later than the given time.
    AfterTime(Time),
}

/// Messages of a room or a path by time or `Seq`, in either direction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListDestinationHistory {
    pub destination: Destination,
    /// Whether the oldest messages come first; otherwise the newest.
    pub forwards: bool,
    /// Earliest time, inclusive.
    pub start: Option<Time>,
    /// Latest time, inclusive.
    pub end: Option<Time>,
    /// Highest `Seq`, inclusive.
    pub until: Option<Seq>,
    /// `Seq` of the last message of the previous page; this page begins after it, in its direction.
    pub cursor: Option<Seq>,
    pub limit: usize,
}

/// A page of messages, in the order that the query asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessagePage {
    pub messages: Vec<Arc<Message>>,
    /// Whether more messages follow in that order.
    pub more: bool,
}

/// One message of a room of the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetMessage {
    pub message: MessageId,
}

/// The newest message of each room of the caller, except of rooms without messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListRecent;

/// Newest message of a room, and the caller's unread counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recent {
    pub message: Arc<Message>,
    /// Number of messages that the caller has not read.
    pub unread: u64,
    /// Number of unread messages that mention the caller.
    pub mentions: u64,
}

/// Searches messages in the rooms of which the caller is a member now. A message must meet every given
/// condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchMessages {
    /// Search terms: `some words "a phrase" prefix* -excluded`.
    pub text: Box<str>,
    pub room: Option<RoomId>,
    pub sender: Option<Box<str>>,
    pub sender_kind: Option<SenderKind>,
    pub kind: Option<MessageKind>,
    /// Inclusive.
    pub from: Option<Time>,
    /// Inclusive.
    pub to: Option<Time>,
    pub from_place: SearchCursor,
    pub limit: usize,
}

/// Start of a page of search results: among messages before `before`, skip the best `skip` hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SearchCursor {
    pub before: Option<Seq>,
    pub skip: usize,
}

/// A page of search results, best score first. Of equal scores, the newest message is first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SearchResults {
    pub hits: Vec<Hit>,
    /// Start of the next page; `None` after the last page.
    pub next: Option<SearchCursor>,
    /// Whether the search stopped at its timeout, so that results may be missing.
    pub partial: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hit {
    pub message: Arc<Message>,
    /// Excerpt of the message text around the matches.
    pub snippet: Box<str>,
    /// Byte ranges of the matches within `snippet`, ordered and non-overlapping.
    pub highlights: Vec<Range<usize>>,
    pub score: u32,
}

/// Earlier versions of a message, latest edit first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListRevisions {
    pub message: MessageId,
}

/// Replies to a message with a higher `Seq` than `after`, oldest first: the whole thread if the message
/// started one, or the direct replies if it is itself a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListReplies {
    pub message: MessageId,
    pub after: Seq,
    pub limit: usize,
}

/// Number of the replies that [`ListReplies`] lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountReplies {
    pub message: MessageId,
}

/// Checks whether the caller may send a message with this text to an agent. A new room for the message is not
/// checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MayPromptAgent {
    pub agent: AgentId,
    pub rooms: RoomSelection,
    pub text: Arc<str>,
}
