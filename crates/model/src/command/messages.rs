//! Commands on messages, and their receipts.

use crate::{AgentId, Delivery, Message, MessageId, Origin, Position, RoomId, RoomSelection, Run, Seq};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Posts a message to a room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Post {
    /// Id chosen by the client. The hub chooses one if it is absent. A post with the id, content, sender and
    /// room of a stored message is a repetition; every other post with a used id is refused.
    pub id: Option<MessageId>,
    pub room: RoomId,
    pub text: Arc<str>,
    /// Names or ids of members to mention, in addition to the mentions in the text.
    pub mentions: Vec<Box<str>>,
    pub reply_to: Option<MessageId>,
    pub attachments: Vec<Box<str>>,
    pub client_message_id: Option<Box<str>>,
    pub origin: Option<Box<Origin>>,
    /// Agent of the caller that posts the message; `None` if the caller posts it.
    pub author: Option<Box<PostAuthor>>,
}

/// Agent that posts a message outside a run, and the chain of agents that its client claims. A claim can only
/// make the loop rules stricter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PostAuthor {
    pub agent: AgentId,
    /// Claimed number of agents in the chain before this agent.
    pub claimed_depth: u32,
    /// Claimed names of agents in the chain.
    pub claimed_chain: Vec<Box<str>>,
}

/// A posted message, or the first receipt of a repeated post.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Posted {
    pub id: MessageId,
    pub position: Position,
    /// `None` if the post is a repetition and the message was deleted since.
    pub message: Option<Arc<Message>>,
    pub deliveries: Arc<[Delivery]>,
    /// Whether an earlier post with the same idempotency key had already stored the message.
    pub repeated: bool,
}

/// Sends a message to an agent in the selected room or, if no room is selected, in a new private room of the
/// caller and the agent. A text that starts with `@name` goes to the agent with this id or name instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptAgent {
    pub agent: AgentId,
    pub rooms: RoomSelection,
    pub text: Arc<str>,
    pub mode: PromptMode,
    pub attachments: Vec<Box<str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PromptMode {
    Normal,
    /// The agent makes a plan for a user to approve: its message starts with `/plan`.
    Plan,
}

/// A message to an agent that was posted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prompted {
    pub posted: Posted,
    pub room: RoomId,
    /// Run of the agent, queued or refused; `None` if no gateway hosts the agent.
    pub run: Option<Arc<Run>>,
}

/// Posts a copy of a message to another room, with its original sender and time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForwardMessage {
    pub message: MessageId,
    pub room: RoomId,
    pub client_message_id: Option<Box<str>>,
}

/// Replaces the text of one of the caller's messages. Returns the message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditMessage {
    pub message: MessageId,
    pub text: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteMessage {
    pub message: MessageId,
}

/// Deletes several messages atomically: if one cannot be deleted, none is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteMessages {
    pub messages: Vec<MessageId>,
}

/// Deletes one of the caller's messages and every later message of the room, and cancels open runs there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewindRoom {
    pub room: RoomId,
    pub message: MessageId,
}

/// Result of a rewind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RewindResult {
    /// Oldest deleted message: the target of the rewind.
    pub message: Arc<Message>,
    /// Ids of all deleted messages, including the target, oldest first.
    pub removed: Vec<MessageId>,
    /// Runs that the rewind cancelled.
    pub ended: Vec<Arc<Run>>,
    /// Agents that must discard the deleted part of the conversation.
    pub agents: Vec<AgentId>,
    /// Sequence number of the last event of the rewind.
    pub through: Seq,
}

/// Marks all messages of a room as read by the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkRoomRead {
    pub room: RoomId,
}

/// Marks all messages in all rooms of the caller as read by the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkAllRead;
