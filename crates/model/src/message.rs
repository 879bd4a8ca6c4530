//! What was said, and where.

use crate::{AgentId, Attachment, Chunk, MemberId, MessageId, Path, RoomId, RunOutput, Seq, Time, UserId};
use std::sync::Arc;

/// Where a message lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    Room(RoomId),
    Path(Path),
}

impl Destination {
    pub fn room(&self) -> Option<&RoomId> {
        match self {
            Self::Room(room) => Some(room),
            Self::Path(_) => None,
        }
    }

    pub fn path(&self) -> Path {
        match self {
            Self::Room(room) => Path::of_room(room),
            Self::Path(path) => path.clone(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sender {
    User(UserId),
    Agent(AgentId),
    /// An outside system, by the name an admin or a key with that scope gave it.
    Source(Box<str>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SenderKind {
    User,
    Agent,
    Source,
}

impl Sender {
    pub fn is(&self, kind: SenderKind) -> bool {
        match self {
            Self::User(_) => kind == SenderKind::User,
            Self::Agent(_) => kind == SenderKind::Agent,
            Self::Source(_) => kind == SenderKind::Source,
        }
    }

    pub fn kind(&self) -> &'static str {
        match self {
            Self::User(_) => "user",
            Self::Agent(_) => "agent",
            Self::Source(_) => "source",
        }
    }

    pub fn id(&self) -> &str {
        match self {
            Self::User(id) => id.as_str(),
            Self::Agent(id) => id.as_str(),
            Self::Source(name) => name,
        }
    }

    pub fn user(&self) -> Option<&UserId> {
        match self {
            Self::User(id) => Some(id),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    Text,
    AgentResponse,
}

impl MessageKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::AgentResponse => "agent_response",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Text, Self::AgentResponse].into_iter().find(|kind| kind.as_str() == text)
    }
}

/// A JSON text that passes through the hub as it came; checked for form at the door.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload(pub Arc<str>);

/// A member whom a message addresses, with the name it was addressed by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    pub member: MemberId,
    pub name: Box<str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub id: MessageId,
    pub seq: Seq,
    pub at: Time,
    pub destination: Destination,
    pub sender: Sender,
    pub sender_name: Box<str>,
    pub kind: MessageKind,
    pub text: Arc<str>,
    pub mentions: Vec<Mention>,
    pub reply_to: Option<MessageId>,
    /// What the thread of a reply began with.
    pub thread: Option<MessageId>,
    pub reactions: Vec<Reaction>,
    /// Present when it passes on what was said elsewhere.
    pub forwarded: Option<Box<Forwarded>>,
    pub attachments: Vec<Attachment>,
    /// What the sender called it, so that a retry is the same message.
    pub client_message_id: Option<Box<str>>,
    pub command: Option<Box<str>>,
    pub payload: Option<Payload>,
    pub source: Box<str>,
    pub external_id: Option<Box<str>>,
    pub edited_at: Option<Time>,
    /// Present when an agent said it in a turn.
    pub run_output: Option<Arc<RunOutput>>,
}

/// One emoji under a message, and who put it there, in the order in which they did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reaction {
    pub emoji: Box<str>,
    pub people: Vec<Reactor>,
}

impl Reaction {
    /// Bytes of the names in it.
    pub fn length(&self) -> usize {
        self.people.iter().map(|person| person.user.as_str().len() + person.username.len()).sum()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reactor {
    pub user: UserId,
    pub username: Box<str>,
}

/// Who said first what a message passes on, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forwarded {
    pub message: MessageId,
    pub sender: Sender,
    pub sender_name: Box<str>,
    pub at: Time,
}

/// A message that a room keeps in sight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    pub room: RoomId,
    pub message: MessageId,
    pub by: UserId,
    pub seq: Seq,
    pub at: Time,
}

/// A message that somebody wants to find again; nobody else knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bookmark {
    pub user: UserId,
    pub message: MessageId,
    pub seq: Seq,
    pub at: Time,
}

impl Message {
    /// Bytes of what it says, of what is on it, and of who reacted.
    pub fn length(&self) -> usize {
        let reactions: usize = self.reactions.iter().map(Reaction::length).sum();
        let files: usize = self.attachments.iter().map(|attachment| attachment.file.name.len() + 200).sum();
        let chunks = self.run_output.iter().flat_map(|turn| &turn.chunks);
        let chunks: usize = chunks.map(Chunk::length).sum();
        chunks
            + self.text.len()
            + self.payload.as_ref().map_or(0, |payload| payload.0.len())
            + reactions
            + files
    }
}

/// What a message said before an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision {
    pub message: MessageId,
    pub text: Box<str>,
    pub edited_at: Time,
}
