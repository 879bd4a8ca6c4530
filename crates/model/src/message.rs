//! Messages in rooms and on paths, with their reactions, pins, bookmarks and revisions.

use crate::{
    AgentId, Attachment, Chunk, Lineage, MemberId, MessageId, Path, RoomId, RunOutput, Seq, Time, UserId,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Where a message is posted: a room, or a path outside rooms.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
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

    /// Returns the path of the destination; a room has the path `room/<id>`.
    pub fn path(&self) -> Path {
        match self {
            Self::Room(room) => Path::of_room(room),
            Self::Path(path) => path.clone(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sender {
    User(UserId),
    Agent(AgentId),
    /// An external system, named by an admin or by an API key with the scope `sources`.
    Source(Box<str>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

/// JSON text that the hub relays unchanged. The protocol adapter has checked that it is well-formed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payload(pub Arc<str>);

/// A member that a message addresses, with the name that the member had at that time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mention {
    pub member: MemberId,
    pub name: Box<str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// First message of the thread, if this message is a reply.
    pub thread: Option<MessageId>,
    pub reactions: Vec<Reaction>,
    /// Origin of the text, if this message forwards another message.
    pub forwarded: Option<Box<Forwarded>>,
    pub attachments: Vec<Attachment>,
    /// Idempotency key of the sender: a retry with the same key does not post a second message.
    pub client_message_id: Option<Box<str>>,
    pub command: Option<Box<str>>,
    pub payload: Option<Payload>,
    pub source: Box<str>,
    pub external_id: Option<Box<str>>,
    pub edited_at: Option<Time>,
    /// Outcome and chunks of the run, if an agent sent this message in a run.
    pub run_output: Option<Arc<RunOutput>>,
    /// Author and addressees, if an account relayed this message for an author outside the hub.
    pub relayed: Option<Box<Relayed>>,
    /// Connection that published the message, if it published it with an id of its own.
    pub origin: Option<Box<Origin>>,
    /// Owner and chain of agents, if an agent sent this message.
    pub answer: Option<Box<Answer>>,
}

/// Connection that published a message, and the fields that only clients of its protocol know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    pub connection: Box<str>,
    /// Client id under which the connection published the message.
    pub client: Option<Box<str>>,
    /// Id of the publication, chosen by the client or by the adapter.
    pub id: Box<str>,
    /// JSON object with the fields that the protocol adapter does not interpret.
    pub fields: Option<Payload>,
}

impl Origin {
    /// Returns the size in bytes.
    pub fn length(&self) -> usize {
        let fields = self.fields.as_ref().map_or(0, |fields| fields.0.len());
        self.connection.len() + self.client.as_ref().map_or(0, |client| client.len()) + self.id.len() + fields
    }
}

/// Chain of agents that a message of an agent belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Owner of the agent.
    pub owner: UserId,
    /// Number of answers up to this one; 0 if the agent posted outside a run.
    pub depth: u32,
    /// Names of the agents that gave these answers, first to last.
    pub chain: Vec<Box<str>>,
}

/// Author and addressees of a message from outside the hub, such as a line of chat.md.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relayed {
    /// Name of the author as the outside text gives it.
    pub author: Box<str>,
    /// Whether the author is an agent of the account that relayed the message. Otherwise the name is a claim.
    pub verified: bool,
    /// Name of the addressee; `None` if the message addresses the whole room.
    pub recipient: Option<Box<str>>,
    /// Names of those who receive a copy. A copy never starts a run.
    pub observers: Vec<Box<str>>,
    /// Chain of agents that this message continues; `None` if it starts a new one.
    pub lineage: Option<Lineage>,
}

/// An emoji on a message, with the users that added it, in the order in which they did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reaction {
    pub emoji: Box<str>,
    pub people: Vec<Reactor>,
}

impl Reaction {
    /// Returns the size of the ids and names of its users, in bytes.
    pub fn length(&self) -> usize {
        self.people.iter().map(|person| person.user.as_str().len() + person.username.len()).sum()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reactor {
    pub user: UserId,
    pub username: Box<str>,
}

/// Original sender and time of a forwarded message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forwarded {
    pub message: MessageId,
    pub sender: Sender,
    pub sender_name: Box<str>,
    pub at: Time,
}

/// A message that is pinned in its room for all members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    pub room: RoomId,
    pub message: MessageId,
    pub by: UserId,
    pub seq: Seq,
    pub at: Time,
}

/// A user's private bookmark of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bookmark {
    pub user: UserId,
    pub message: MessageId,
    pub seq: Seq,
    pub at: Time,
}

impl Message {
    /// Returns the approximate size in bytes: text, payload, chunks, attachments and reactions.
    pub fn length(&self) -> usize {
        let reactions: usize = self.reactions.iter().map(Reaction::length).sum();
        let files: usize = self.attachments.iter().map(|attachment| attachment.file.name.len() + 200).sum();
        let chunks = self.run_output.iter().flat_map(|output| &output.chunks);
        let chunks: usize = chunks.map(Chunk::length).sum();
        chunks
            + self.text.len()
            + self.payload.as_ref().map_or(0, |payload| payload.0.len())
            + self.origin.as_ref().map_or(0, |origin| origin.length())
            + reactions
            + files
    }
}

/// Text of a message before an edit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revision {
    pub message: MessageId,
    pub text: Box<str>,
    pub edited_at: Time,
}
