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
    Agent, AgentId, Approval, ApprovalId, ApprovalRule, CurrentPlan, DeadLetter, Delivery, HubSettings,
    IdlePrompt, Inquiry, Invitation, Mailbox, Member, Message, MessageId, Mission, Room, RoomId, Router,
    RouterId, Run, RunId, SecretHash, Service, Subscription, Task, Time, Upload, UploadId, User,
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
    /// Routers of the caller, and shared routers.
    Routers,
    /// Checks whether the caller may create a router, shared or private.
    MayMakeRouter {
        shared: bool,
    },
    /// A router that the caller may change.
    OwnRouter {
        router: RouterId,
    },
    /// Services: models that answer as agents inside the hub.
    Services,
    Service {
        agent: AgentId,
    },
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
    /// Tasks of a room, oldest first.
    Tasks {
        room: RoomId,
    },
    /// Tasks created by or assigned to the caller, in rooms of the caller, newest first.
    OwnTasks {
        limit: usize,
        offset: usize,
    },
    /// Missions of the room's mission scope, newest first.
    Missions {
        room: RoomId,
        limit: usize,
    },
    /// Idle prompt of an agent in the mission scope of `room`, or globally if `room` is `None`.
    Idle {
        agent: AgentId,
        room: Option<RoomId>,
    },
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
    /// Checks whether the caller may cancel runs in a room.
    MayStop {
        room: RoomId,
    },
    /// Checks whether the caller may send this inquiry to an agent, in a room or outside any room.
    MayInquire {
        agent: AgentId,
        room: Option<RoomId>,
        inquiry: Inquiry,
    },
    /// A run, active or ended.
    Run {
        run: RunId,
        what: RunDetail,
    },
    /// Newest runs of a room, or of all rooms of the caller.
    Runs {
        room: Option<RoomId>,
        limit: usize,
    },
    /// Runs triggered by a message, including refused runs.
    RunsOf {
        message: MessageId,
    },
    /// Runs of an agent in the caller's rooms: queued and active runs first, then the latest ended runs.
    RunsBy {
        agent: AgentId,
        limit: usize,
    },
    /// Rooms of which both the caller and the agent are members.
    RoomsWith {
        agent: AgentId,
    },
    /// Open approvals of a room, oldest first.
    Approvals {
        room: RoomId,
    },
    /// An approval that the caller may decide.
    Question {
        approval: ApprovalId,
    },
    /// Current plans of agents in a room, or in all rooms of the caller.
    Plans {
        room: Option<RoomId>,
    },
    /// Open question sets in all rooms of the caller.
    Questions,
    /// Approval rules of a room: tools that agents may use there without asking.
    ApprovalRules {
        room: RoomId,
    },
    /// Checks whether the caller may read the hub's metrics.
    MayReadMetrics,
    /// Checks whether the caller may read the hub's limits.
    MaySeeLimits,
}

/// Part of a run that a query returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunDetail {
    Itself,
    /// Runs that this run triggered, oldest first.
    Children,
    /// Message that triggered the run, and the reply of the run.
    Messages,
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
    Invitations(Vec<Invitation>),
    Routers(Vec<Router>),
    Router(Router),
    /// Services in the order of their creation.
    Services(Vec<(Agent, Service)>),
    Service(Agent, Service),
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
    Tasks(Vec<Task>),
    Missions(Vec<Mission>),
    Idle(Option<IdlePrompt>),
    Subscriptions(Vec<Subscription>),
    Mail(Vec<(Arc<Message>, Delivery)>),
    DeadLetters(Vec<DeadLetter>),
    Runs(Vec<(Run, Box<str>)>),
    Approvals(Vec<Approval>),
    ApprovalRules(Vec<ApprovalRule>),
    Plans(Vec<CurrentPlan>),
}
