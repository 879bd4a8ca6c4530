//! Everything that can be read, and the answers.

use crate::{Agent, ApiKey, Member, Message, MessageId, Revision, Room, RoomId, Seq, SignIn, Time, User};
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Query {
    Me,
    Users {
        limit: usize,
        offset: usize,
    },
    SearchUsers {
        text: Box<str>,
    },
    SignIns,
    Keys,
    Rooms,
    Room {
        room: RoomId,
    },
    Members {
        room: RoomId,
        limit: usize,
        offset: usize,
    },
    History {
        room: RoomId,
        page: Page,
        limit: usize,
    },
    Recent,
    Revisions {
        message: MessageId,
    },
    Agents,
    /// Whether the caller may follow a room live.
    MayFollow {
        room: RoomId,
    },
    /// Whether the caller may listen to an agent's mailbox.
    MayListen {
        agent: crate::AgentId,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Page {
    /// Newest first, older than this.
    Before(Option<Seq>),
    /// Oldest first, strictly after.
    After(Seq),
    /// Oldest first, after the last message that is not later than this.
    AfterTime(Time),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    Yes,
    User(Arc<User>),
    Users { users: Vec<User>, total: usize },
    SignIns(Vec<SignIn>),
    Keys(Vec<ApiKey>),
    Rooms(Vec<(Room, Member)>),
    Room { room: Room, members: Vec<Member>, total: usize },
    Members { members: Vec<Member>, total: usize },
    History { messages: Vec<Arc<Message>>, more: bool },
    Recent(Vec<Recent>),
    Revisions(Vec<Revision>),
    Agents(Vec<Agent>),
}

/// The newest message of a room, and how many the reader has not seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recent {
    pub message: Arc<Message>,
    pub unread: u64,
}
