//! Everything that can be read, and the answers.

use crate::audit::{AuditFilter, AuditRecord};
use crate::{
    Agent, AgentId, ApiKey, Approval, ApprovalId, ApprovalRule, Bookmark, CurrentPlan, DeadLetter, Delivery,
    Gateway, GatewayId, HubSettings, IdlePrompt, Inquiry, Invitation, Mailbox, Member, Message, MessageId,
    MessageKind, Mission, Pin, Revision, Room, RoomId, Router, RouterId, Run, RunId, SecretHash, SenderKind,
    Seq, Service, Session, SignIn, Subscription, Task, Time, Upload, UploadId, User,
};
use std::ops::Range;
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
    Invitations,
    /// The caller's own, and those for everybody.
    Routers,
    /// Whether the caller may make one, for everybody or for themselves.
    MayMakeRouter {
        shared: bool,
    },
    /// One of them, which the caller may change.
    OwnRouter {
        router: RouterId,
    },
    /// Models that answer from within the hub.
    Services,
    Service {
        agent: AgentId,
    },
    Settings,
    Audit(AuditFilter),
    /// Whether this invitation can be taken now.
    MayRegister {
        token: SecretHash,
    },
    Rooms,
    /// The folders that rooms may be about.
    ProjectRoots,
    /// The caller's rooms that are about a folder, or the one that is named.
    RoomsAt {
        root: Box<str>,
        room: Option<RoomId>,
    },
    /// The folder that a room is about, for who looks at its files.
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
    History {
        room: RoomId,
        page: Page,
        limit: usize,
    },
    Recent,
    /// In the rooms the caller is a member of now.
    Search(Box<Search>),
    Revisions {
        message: MessageId,
    },
    /// What answers a message, oldest first and after a place: the whole thread that it began, or the direct
    /// answers to a reply.
    Thread {
        message: MessageId,
        after: Seq,
        limit: usize,
    },
    ReplyCount {
        message: MessageId,
    },
    /// The newest first.
    Pins {
        room: RoomId,
    },
    /// The caller's own, newest first, of what they may see now.
    Bookmarks {
        before: Option<Seq>,
        limit: usize,
    },
    /// One file, to be read.
    Upload {
        id: UploadId,
    },
    /// Whether the caller may send files.
    MayUpload,
    /// The caller's own agents, those shared with them, and those in a common room.
    Agents,
    /// One of these.
    Agent {
        id: AgentId,
    },
    /// Of one room, oldest first.
    Tasks {
        room: RoomId,
    },
    /// Those that the caller made or was given, in rooms they are in, newest first.
    OwnTasks {
        limit: usize,
        offset: usize,
    },
    /// Of the realm of a room, the newest first.
    Missions {
        room: RoomId,
        limit: usize,
    },
    /// How an agent is prompted when it is idle: in the realm of a room, or anywhere.
    Idle {
        agent: AgentId,
        room: Option<RoomId>,
    },
    /// Agents as people look at them.
    AgentCards(AgentCards),
    /// The caller's own, by id; everybody's for whoever runs the hub.
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
    /// Whether the caller may follow a room live.
    MayFollow {
        room: RoomId,
    },
    /// Whether the caller may listen to an agent's mailbox.
    MayListen {
        agent: AgentId,
    },
    /// Whether the caller may stop what agents do in a room.
    MayStop {
        room: RoomId,
    },
    /// Whether the caller may ask this of an agent, in a room or about itself.
    MayInquire {
        agent: AgentId,
        room: Option<RoomId>,
        inquiry: Inquiry,
    },
    /// Whether the caller may have agents started on a gateway's machine.
    MaySpawn {
        gateway: GatewayId,
    },
    /// Whether the caller may look after the credentials that a gateway keeps.
    MayManageCredentials {
        gateway: GatewayId,
    },
    /// One turn, also when it is over.
    Run {
        run: RunId,
        what: RunDetail,
    },
    /// The newest turns of a room, or of all rooms that the caller is in.
    Runs {
        room: Option<RoomId>,
        limit: usize,
    },
    /// The turns that a message set off, also those that were refused.
    RunsOf {
        message: MessageId,
    },
    /// The turns of an agent in the caller's rooms: those that wait or run, then those that ended last.
    RunsBy {
        agent: AgentId,
        limit: usize,
    },
    /// The caller's rooms that an agent is in.
    RoomsWith {
        agent: AgentId,
    },
    /// What agents wait for an answer to in a room, the oldest first.
    Approvals {
        room: RoomId,
    },
    /// What is always allowed there.
    /// One question, for who may answer it.
    Question {
        approval: ApprovalId,
    },
    /// The plans of agents as they stand, in a room or in all of one's rooms.
    Plans {
        room: Option<RoomId>,
    },
    /// Questions that are open in all of one's rooms.
    Questions,
    ApprovalRules {
        room: RoomId,
    },
    /// Whether the caller may see how the hub is doing, in numbers.
    MayReadMetrics,
    /// Whether the caller may see how much of everything the hub lets others have.
    MaySeeLimits,
}

/// What is asked of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunDetail {
    Itself,
    /// The turns that it set off, the oldest first.
    Children,
    /// What it answers, and what was said in it.
    Messages,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentCards {
    Own,
    /// Those of others that are shared with the caller, by id.
    Shared {
        limit: usize,
        offset: usize,
    },
    /// One's own, one that is shared, or one in a common room.
    One(AgentId),
}

/// Newest first, within these times, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MailPage {
    pub limit: usize,
    pub from: Option<Time>,
    pub to: Option<Time>,
}

/// What to look for in what was said. Everything given must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    /// `some words "a phrase" begin* -without`
    pub text: Box<str>,
    pub room: Option<RoomId>,
    pub sender: Option<Box<str>>,
    pub sender_kind: Option<SenderKind>,
    pub kind: Option<MessageKind>,
    /// Both included.
    pub from: Option<Time>,
    pub to: Option<Time>,
    pub from_place: SearchCursor,
    pub limit: usize,
}

/// Where an answer begins: among what was said before this, after so many of the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SearchCursor {
    pub before: Option<Seq>,
    pub skip: usize,
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
    Allowed,
    User(Arc<User>),
    Users {
        users: Vec<User>,
        total: usize,
    },
    SignIns(Vec<SignIn>),
    Keys(Vec<ApiKey>),
    Invitations(Vec<Invitation>),
    Routers(Vec<Router>),
    Router(Router),
    /// In the order in which they were made.
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
    Recent(Vec<Recent>),
    Found(SearchResults),
    Revisions(Vec<Revision>),
    Count(u64),
    Pins(Vec<(Pin, Arc<Message>)>),
    Bookmarks {
        bookmarks: Vec<(Bookmark, Arc<Message>)>,
        more: bool,
    },
    Upload(Arc<Upload>),
    Agents(Vec<Agent>),
    /// Somebody else's, of which no more is told than among `Agents`.
    VisibleAgent(Agent),
    Agent {
        agent: Arc<Agent>,
        subscriptions: Vec<Subscription>,
        sessions: Vec<Session>,
    },
    Tasks(Vec<Task>),
    Missions(Vec<Mission>),
    Idle(Option<IdlePrompt>),
    AgentCards(Vec<AgentCard>),
    Gateways(Vec<Gateway>),
    Subscriptions(Vec<Subscription>),
    Mail(Vec<(Arc<Message>, Delivery)>),
    DeadLetters(Vec<DeadLetter>),
    Runs(Vec<(Run, Box<str>)>),
    Approvals(Vec<Approval>),
    ApprovalRules(Vec<ApprovalRule>),
    Plans(Vec<CurrentPlan>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentCard {
    /// Of another's agent no more than others may see.
    pub agent: Agent,
    pub owner_name: Box<str>,
    /// Where one's own agent was registered last.
    pub gateway: Option<Gateway>,
}

/// The newest message of a room, and how many the reader has not seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recent {
    pub message: Arc<Message>,
    pub unread: u64,
    /// How many of these mention the reader.
    pub mentions: u64,
}

/// The best first; among equals the newest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchResults {
    pub hits: Vec<Hit>,
    /// Where to go on; `None` when that was all.
    pub next: Option<SearchCursor>,
    /// There was more to look at than time.
    pub partial: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    pub message: Arc<Message>,
    /// The part of the text that shows why it was found.
    pub snippet: Box<str>,
    /// What of the snippet was looked for, in bytes, in order and apart from each other.
    pub highlights: Vec<Range<usize>>,
    pub score: u32,
}
