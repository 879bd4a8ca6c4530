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
    Agent, AgentId, ApiKey, DeadLetter, Delivery, Gateway, GatewayId, HubSettings, Invitation, Mailbox,
    Member, Message, Room, RoomId, SecretHash, Session, SignIn, Subscription, Time, Upload, UploadId, User,
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
    SignIns,
    Keys,
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
    /// Agents of the caller, agents shared with the caller, and agents in rooms of the caller.
    Agents,
    /// An agent that the caller may see, as in [`Query::Agents`].
    Agent {
        id: AgentId,
    },
    /// Agents with owner name and gateway, for display to users.
    AgentCards(AgentCards),
    /// Gateways of the caller, sorted by id; all gateways for the operator.
    Gateways,
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
    /// Checks whether the caller may start agents on a gateway.
    MaySpawn {
        gateway: GatewayId,
    },
    /// Checks whether the caller may manage the credentials stored by a gateway.
    MayManageCredentials {
        gateway: GatewayId,
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum AgentCards {
    Own,
    /// Agents of other users that are shared with the caller, sorted by id.
    Shared {
        limit: usize,
        offset: usize,
    },
    /// One agent that the caller owns, that is shared with the caller, or that is in a room of the caller.
    One(AgentId),
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
    Users {
        users: Vec<User>,
        total: usize,
    },
    SignIns(Vec<SignIn>),
    Keys(Vec<ApiKey>),
    Invitations(Vec<Invitation>),
    Settings(HubSettings),
    Audit {
        notes: Vec<AuditRecord>,
        more: bool,
    },
    Rooms(Vec<(Room, Member)>),
    ProjectRoots(Vec<Box<str>>),
    Room {
        room: Room,
        members: Vec<Member>,
        total: usize,
    },
    Members {
        members: Vec<Member>,
        total: usize,
    },
    History {
        messages: Vec<Arc<Message>>,
        more: bool,
    },
    Upload(Arc<Upload>),
    Agents(Vec<Agent>),
    /// An agent of another user, with the properties that are visible to others.
    VisibleAgent(Agent),
    Agent {
        agent: Arc<Agent>,
        subscriptions: Vec<Subscription>,
        sessions: Vec<Session>,
    },
    AgentCards(Vec<AgentCard>),
    Gateways(Vec<Gateway>),
    Subscriptions(Vec<Subscription>),
    Mail(Vec<(Arc<Message>, Delivery)>),
    DeadLetters(Vec<DeadLetter>),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentCard {
    /// For an agent of another user, only the properties that are visible to others.
    pub agent: Agent,
    pub owner_name: Box<str>,
    /// Gateway of the latest registration; set only for agents of the caller.
    pub gateway: Option<Gateway>,
}
