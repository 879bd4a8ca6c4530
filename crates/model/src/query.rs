//! Queries: every read that a caller can request, and the answers. Queries change nothing.

mod accounts;
mod agents;
mod annotations;
mod approvals;
mod gateways;
mod invitations;
mod keys;
mod mail;
mod maintenance;
mod messages;
mod missions;
mod plans;
mod rooms;
mod routers;
mod runs;
mod services;
mod settings;
mod sign_ins;
mod tasks;
mod uploads;

pub use accounts::*;
pub use agents::*;
pub use annotations::*;
pub use approvals::*;
pub use gateways::*;
pub use invitations::*;
pub use keys::*;
pub use mail::*;
pub use maintenance::*;
pub use messages::*;
pub use missions::*;
pub use plans::*;
pub use rooms::*;
pub use routers::*;
pub use runs::*;
pub use services::*;
pub use settings::*;
pub use sign_ins::*;
pub use tasks::*;
pub use uploads::*;

use crate::audit::{AuditFilter, AuditRecord};
use crate::{
    AgentId, DeadLetter, Delivery, HubSettings, Invitation, Mailbox, Member, Message, Room, RoomId,
    SecretHash, Subscription, Time, Upload, UploadId, User,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The queries that have no type of their own yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Query {
    Me,
    Users {
        limit: usize,
        offset: usize,
    },
    SearchUsers {
        text: Box<str>,
    },
    Invitations,
    Settings,
    Audit(AuditFilter),
    /// Checks whether an account can be created with this invitation now.
    MayRegister {
        token: SecretHash,
    },
    Rooms,
    /// Folders that the setting `project_roots` allows as project roots.
    ProjectRoots,
    /// The caller's rooms with this project root, or only `room` if it is given.
    RoomsAt {
        root: Box<str>,
        room: Option<RoomId>,
    },
    /// Project root of a room, for reading its files.
    Workspace {
        room: RoomId,
    },
    Room {
        room: RoomId,
    },
    Members {
        room: RoomId,
        limit: usize,
        offset: usize,
    },
    /// An uploaded file that the caller may read.
    Upload {
        id: UploadId,
    },
    /// Checks whether the caller may upload files.
    MayUpload,
    Subscriptions {
        mailbox: Mailbox,
    },
    Mail {
        mailbox: Mailbox,
        page: MailPage,
    },
    DeadLetters {
        page: MailPage,
    },
    /// Checks whether the caller may subscribe to the events of a room.
    MayFollow {
        room: RoomId,
    },
    /// Checks whether the caller may subscribe to an agent's mailbox.
    MayListen {
        agent: AgentId,
    },
    /// Rooms of which both the caller and the agent are members.
    RoomsWith {
        agent: AgentId,
    },
    /// Checks whether the caller may read the hub's metrics.
    MayReadMetrics,
    /// Checks whether the caller may read the hub's limits.
    MaySeeLimits,
}

/// Page of mail between two times (inclusive), newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MailPage {
    pub limit: usize,
    pub from: Option<Time>,
    pub to: Option<Time>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    Allowed,
    User(Arc<User>),
    Users { users: Vec<User>, total: usize },
    Invitations(Vec<Invitation>),
    Settings(HubSettings),
    Audit { notes: Vec<AuditRecord>, more: bool },
    Rooms(Vec<(Room, Member)>),
    ProjectRoots(Vec<Box<str>>),
    Room { room: Room, members: Vec<Member>, total: usize },
    Members { members: Vec<Member>, total: usize },
    History { messages: Vec<Arc<Message>>, more: bool },
    Upload(Arc<Upload>),
    Subscriptions(Vec<Subscription>),
    Mail(Vec<(Arc<Message>, Delivery)>),
    DeadLetters(Vec<DeadLetter>),
}
