//! Everything that can be asked to change, and what is told to whoever asked.
//!
//! A command carries no secret in the clear: passwords arrive hashed, tokens as digests.

use crate::run_event::PlanState;
use crate::{
    Agent, AgentId, AnswerPolicy, ApiKey, Approval, ApprovalId, ApprovalKind, BlobDigest, Bookmark, Chunk,
    Delivery, Device, File, Gateway, GatewayId, HubSettings, IdlePrompt, InputDigest, Invitation,
    InvitationId, KeyId, Mailbox, MemberId, Message, MessageId, Mission, MissionId, ModelAccess, ModelApi,
    Notifications, Path, Pattern, Payload, Pin, Position, Room, RoomId, RoomKind, RoomRole, Router, RouterId,
    Run, RunId, RunOutcome, Scope, SealedKey, SecondProof, SecretHash, Seq, Service, SettingChanges, SignIn,
    SignInId, SiteRole, Subscription, Task, TaskId, TaskStatus, Time, Upload, Usage, User, UserId,
    Visibility,
};
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    // The first admin.
    OfferSetup {
        token: SecretHash,
        expires_at: Time,
    },
    SetUp {
        token: SecretHash,
        account: NewUser,
    },

    // People.
    CreateUser(NewUser),
    ChangeUser {
        user: UserId,
        changes: UserChanges,
    },
    RemoveUser {
        user: UserId,
    },
    ChangeProfile(ProfileChanges),
    ChangePassword {
        verified_password_hash: Box<str>,
        password_hash: Box<str>,
    },

    // Invitations.
    CreateInvitation(NewInvitation),
    RevokeInvitation {
        invitation: InvitationId,
    },
    /// The role of the account is the invitation's.
    Register {
        token: SecretHash,
        account: NewUser,
    },

    /// In the place of the one before: a person has one code on offer.
    OfferPairing {
        code: SecretHash,
        expires_at: Time,
    },
    /// Gives a code for a key that can host agents and do nothing else.
    Pair {
        code: SecretHash,
        name: Box<str>,
        secret: SecretHash,
    },

    ChangeSettings(SettingChanges),

    // Sign-in. The proof was made before; the command says against what.
    SignIn(NewSignIn),
    SignInFailed {
        /// `None` when there is no such account.
        user: Option<UserId>,
        /// Whether the password was right, and the code was not.
        second_factor: bool,
        lock_after: u32,
        lock_until: Time,
    },
    Refresh {
        token: SecretHash,
        next: SecretHash,
        expires_at: Time,
        /// For so long after an exchange the token before it is taken once more.
        grace: Duration,
    },
    OfferSecondFactor {
        sealed: Box<[u8]>,
    },
    /// A code of this time step, made of the secret that was sealed so.
    ConfirmSecondFactor {
        sealed: Box<[u8]>,
        step: u64,
        backup_codes: Vec<SecretHash>,
    },
    DropSecondFactor {
        user: UserId,
        /// The hash against which the person proved their password; whoever runs the hub proves nothing.
        verified_password_hash: Option<Box<str>>,
    },
    EndSignIn {
        sign_in: SignInId,
    },
    CreateKey {
        owner: Option<UserId>,
        name: Box<str>,
        scopes: Vec<Scope>,
        secret: SecretHash,
    },
    RevokeKey {
        key: KeyId,
    },

    // Models that pick agents.
    CreateRouter(NewRouter),
    ChangeRouter {
        router: RouterId,
        changes: RouterChanges,
    },
    RemoveRouter {
        router: RouterId,
    },

    // Models that answer as agents from within the hub.
    CreateService(NewService),
    ChangeService {
        agent: AgentId,
        changes: ServiceChanges,
    },
    /// With the agent that it is.
    RemoveService {
        agent: AgentId,
    },

    // Rooms.
    CreateRoom {
        changes: RoomChanges,
        members: Vec<MemberId>,
    },
    ChangeRoom {
        room: RoomId,
        changes: RoomChanges,
    },
    /// Says which folder it is about, or that it is about none.
    SetProjectRoot {
        room: RoomId,
        root: Option<Box<str>>,
        /// Whether there is such a folder.
        there: bool,
    },
    DeleteRoom {
        room: RoomId,
    },
    /// Silences every agent in a room until it is thawed.
    Freeze {
        room: RoomId,
    },
    Thaw {
        room: RoomId,
    },
    AddMember {
        room: RoomId,
        member: MemberId,
        role: RoomRole,
        description: Option<Box<str>>,
    },
    /// What is absent stays as it is.
    ChangeMember {
        room: RoomId,
        member: MemberId,
        role: Option<RoomRole>,
        /// `Some(None)` takes the description away.
        description: Option<Option<Box<str>>>,
    },
    RemoveMember {
        room: RoomId,
        member: MemberId,
    },
    /// Changes how the caller keeps a room, and nothing for anybody else.
    ChangeRoomPreferences {
        room: RoomId,
        how: RoomPreferenceChange,
    },

    // What agents are to pursue by themselves.
    /// In the place of the one before.
    SetMission {
        room: RoomId,
        text: Box<str>,
        agents: Vec<(AgentId, IdlePrompt)>,
    },
    EndMission {
        room: RoomId,
    },
    /// How an agent is prompted when it is idle: in the realm of a room, or anywhere. `None` takes it back.
    SetIdlePrompt {
        agent: AgentId,
        room: Option<RoomId>,
        idle: Option<IdlePrompt>,
    },
    /// The hub itself finds that an agent has been idle for long enough.
    PromptIdle {
        mission: MissionId,
        agent: AgentId,
    },

    // Tasks.
    CreateTask(NewTask),
    ChangeTask {
        task: TaskId,
        changes: TaskChanges,
    },
    RemoveTask {
        task: TaskId,
    },
    /// What an agent says of a task that it was given.
    ReportTask {
        task: TaskId,
        agent: AgentId,
        status: TaskStatus,
        result: Option<Box<str>>,
    },

    // Messages.
    /// Begins a conversation with an agent in a room of its own, with the first thing said; the room of the post is
    /// yet to be made.
    Chat {
        agent: AgentId,
        post: Post,
    },
    Post(Post),
    Edit {
        message: MessageId,
        text: Arc<str>,
    },
    Delete {
        message: MessageId,
    },
    /// All of them, or none.
    DeleteMany {
        messages: Vec<MessageId>,
    },
    /// Takes back everything that was said from one's own message on, as if it had not been said: also what agents are
    /// about to say.
    Rewind {
        room: RoomId,
        message: MessageId,
    },
    /// Says the same in another room, with whose words they are.
    Forward {
        message: MessageId,
        room: RoomId,
        client_message_id: Option<Box<str>>,
    },
    /// Puts an emoji under a message, or takes one's own away.
    React {
        message: MessageId,
        emoji: Box<str>,
    },
    Pin {
        message: MessageId,
    },
    Unpin {
        message: MessageId,
    },
    Bookmark {
        message: MessageId,
    },
    RemoveBookmark {
        message: MessageId,
    },
    MarkRead {
        room: RoomId,
    },
    MarkAllRead,

    // Files. The content is on disk before the command is given.
    Upload(NewUpload),
    /// Asks which contents nothing refers to any more; each is told once, and then nobody's concern but the asker's.
    TakeUnreferencedBlobs {
        limit: usize,
    },
    /// A backup was made, with everything up to this place.
    NoteBackup {
        through: Seq,
    },
    /// Takes a place in the log and says nothing, so that signals are numbered higher from here on.
    AppendNoop,

    // Agents.
    CreateAgent {
        id: AgentId,
        profile: AgentProfile,
        subscriptions: Vec<Pattern>,
    },
    ChangeAgent {
        id: AgentId,
        profile: AgentProfile,
    },
    /// With every agent below it.
    RemoveAgent {
        id: AgentId,
    },

    // What hosts agents.
    /// Makes the gateway known, or says that it is there again.
    ConnectGateway(NewGateway),
    DisconnectGateway {
        gateway: GatewayId,
    },
    /// With the agents it hosts.
    RemoveGateway {
        gateway: GatewayId,
    },
    /// Makes the agent, or says what hosts it now.
    RegisterAgent(AgentRegistration),
    /// An agent that lives in the hub itself is made, or becomes what it is now.
    HostAgent {
        owner: UserId,
        new: AgentRegistration,
    },

    // Mailboxes.
    Subscribe {
        mailbox: Mailbox,
        pattern: Pattern,
    },
    Unsubscribe {
        mailbox: Mailbox,
        pattern: Pattern,
    },
    Route(Route),
    /// Takes pending mail; with a lease, until it is acknowledged or the lease has run out.
    Receive {
        mailbox: Mailbox,
        limit: usize,
        lease: Option<Duration>,
    },
    Acknowledge {
        mailbox: Mailbox,
        messages: Vec<MessageId>,
    },
    ClearDeadLetters,

    // Turns. Those that address an agent make them; the hub itself starts them.
    StartRun {
        run: RunId,
    },
    /// A turn that waits became part of one that runs: the agent took what was said to it meanwhile.
    MergeRun {
        run: RunId,
        into: RunId,
    },
    /// An agent speaks up without having been asked.
    StartUnpromptedRun {
        agent: AgentId,
        room: RoomId,
    },
    /// Ends a turn, one that waits too, with what was said in it.
    FinishRun(RunFinish),
    /// What an agent had to say after its turn was given up.
    PostLateReply {
        agent: AgentId,
        room: RoomId,
        said: AgentReply,
        /// Which turn that was, where its host knows it by name.
        run: Option<RunId>,
    },
    ReportUsage {
        run: RunId,
        usage: Usage,
    },

    /// The plan of a turn as it stands.
    UpdatePlan {
        run: RunId,
        plan: Payload,
        state: PlanState,
    },
    /// Decides about a plan that nobody decided about yet.
    DecidePlan {
        room: RoomId,
        agent: AgentId,
        /// Of what was looked at.
        rev: u64,
        verdict: PlanDecision,
    },

    // Questions of agents. The hub itself asks them, and says when nobody answered in time.
    AskApproval(NewApproval),
    /// Through `Hub::decide`, which knows how long it was open.
    DecideApproval(ApprovalDecision),
    /// Through `Hub::answer`, for the same reason.
    AnswerQuestions {
        approval: ApprovalId,
        answers: Payload,
    },
    ExpireApproval {
        approval: ApprovalId,
    },
    RevokeApprovalRule {
        room: RoomId,
        agent: AgentId,
        tool: Box<str>,
    },
}

/// An agent wants to use a tool in its turn, or to know something from people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewApproval {
    pub run: RunId,
    pub gateway: GatewayId,
    pub request: Box<str>,
    pub tool: Box<str>,
    pub kind: ApprovalKind,
    pub input: Payload,
    pub digest: InputDigest,
    pub timeout: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanDecision {
    /// With what is said to the agent, so that it begins.
    Approve(Post),
    Reject,
    /// In other words; still to be decided.
    Edit(Box<str>),
}

/// What somebody answers to an agent's question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalDecision {
    pub approval: ApprovalId,
    pub allow: bool,
    /// Also for every later question about this tool of this agent in this room.
    pub always: bool,
    pub reason: Option<Box<str>>,
    /// Of what was looked at.
    pub digest: Option<InputDigest>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFinish {
    pub run: RunId,
    pub outcome: RunOutcome,
    pub said: Option<AgentReply>,
}

/// What an agent said in a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentReply {
    /// What its side calls the message, so that a retry is the same one.
    pub message: Option<MessageId>,
    pub text: Arc<str>,
    pub chunks: Vec<Chunk>,
    /// An agent it wants to hear it, besides those that the text mentions.
    pub target: Option<Box<str>>,
    /// How deep its side believes the chain of agents to be.
    pub claimed_depth: u32,
}

impl AgentReply {
    pub fn is_empty(&self) -> bool {
        self.text.trim().is_empty() && self.chunks.is_empty()
    }
}

/// What is said about an agent; absent leaves it as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentProfile {
    pub name: Option<Box<str>>,
    pub description: Option<Box<str>>,
    pub settings: Vec<(Box<str>, Payload)>,
    pub visibility: Option<Visibility>,
    /// What it is, until a gateway says so.
    pub kind: Option<Box<str>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewGateway {
    pub id: GatewayId,
    pub device: Device,
    pub ephemeral: bool,
}

/// An agent as its gateway presents it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRegistration {
    pub gateway: GatewayId,
    pub id: AgentId,
    pub name: Box<str>,
    pub kind: Box<str>,
    pub working_directory: Option<Box<str>>,
    pub capabilities: Vec<Box<str>>,
    pub model: Option<Box<str>>,
    pub slash_commands: Option<Payload>,
    pub mcp_servers: Option<Payload>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewUser {
    pub username: Box<str>,
    pub display_name: Option<Box<str>>,
    pub role: SiteRole,
    pub password_hash: Box<str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UserChanges {
    pub display_name: Option<Box<str>>,
    pub role: Option<SiteRole>,
    pub password_hash: Option<Box<str>>,
    /// `Some(None)` takes the override away.
    pub max_connections: Option<Option<u32>>,
    pub hears: Option<Vec<Pattern>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewInvitation {
    pub role: SiteRole,
    pub note: Option<Box<str>>,
    pub uses: u32,
    pub expires_at: Time,
    pub secret: SecretHash,
}

/// What people change about themselves.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProfileChanges {
    pub display_name: Option<Box<str>>,
    /// `Some(None)` takes the picture away.
    pub avatar_url: Option<Option<Box<str>>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSignIn {
    pub user: UserId,
    /// The hash the password was proven against; if it changed meanwhile, the proof is void.
    pub verified_password_hash: Box<str>,
    pub second: Option<SecondProof>,
    pub refresh: SecretHash,
    pub device: Box<str>,
    pub address: Box<str>,
    pub expires_at: Time,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RoomChanges {
    pub name: Option<Box<str>>,
    pub kind: Option<RoomKind>,
    pub policy: Option<AnswerPolicy>,
    /// `Some(None)` takes the prompt away.
    pub system_prompt: Option<Option<Box<str>>>,
    pub agent_command_role: Option<RoomRole>,
    pub approve_role: Option<RoomRole>,
    /// `Some(None)` takes the router away.
    pub router: Option<Option<RouterId>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRouter {
    pub name: Box<str>,
    pub shared: bool,
    pub model: ModelAccess,
}

/// What is absent stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RouterChanges {
    pub name: Option<Box<str>>,
    pub shared: Option<bool>,
    pub model: ModelChanges,
}

/// What is absent stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelChanges {
    pub api: Option<ModelApi>,
    /// With its key, or without any: a key is good for one address.
    pub base_url: Option<Box<str>>,
    pub model: Option<Box<str>>,
    /// `Some(None)` takes the key away.
    pub key: Option<Option<SealedKey>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewService {
    pub name: Box<str>,
    pub description: Box<str>,
    pub active: bool,
    pub model: ModelAccess,
    pub fallback: Option<Box<str>>,
    pub instructions: Option<Box<str>>,
    pub most_tokens: Option<u32>,
}

/// What is absent stays as it is; `Some(None)` takes away.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServiceChanges {
    pub name: Option<Box<str>>,
    pub description: Option<Box<str>>,
    pub active: Option<bool>,
    pub model: ModelChanges,
    pub fallback: Option<Option<Box<str>>>,
    pub instructions: Option<Option<Box<str>>>,
    pub most_tokens: Option<Option<u32>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTask {
    pub room: RoomId,
    /// The caller's agent that wants it, if it is not the caller.
    pub by: Option<AgentId>,
    pub title: Box<str>,
    pub description: Option<Box<str>>,
    pub due_at: Option<Time>,
    pub assignee: Option<MemberId>,
}

/// What is absent stays as it is; `Some(None)` takes it away.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskChanges {
    pub title: Option<Box<str>>,
    pub description: Option<Option<Box<str>>>,
    pub status: Option<TaskStatus>,
    pub result: Option<Option<Box<str>>>,
    pub due_at: Option<Option<Time>>,
    pub assignee: Option<Option<MemberId>>,
}

impl TaskChanges {
    /// Whether it only says how far the task is.
    pub fn is_status_alone(&self) -> bool {
        *self == Self { status: self.status, ..Self::default() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoomPreferenceChange {
    /// Puts it above the others, or back among them.
    Pin,
    /// Puts it away, or takes it out again.
    Archive,
    /// Shows nothing any more of what was said so far.
    Clear,
    Notify(Notifications),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Post {
    pub room: RoomId,
    pub text: Arc<str>,
    /// Names or ids; what the text mentions is added.
    pub mentions: Vec<Box<str>>,
    pub reply_to: Option<MessageId>,
    pub attachments: Vec<Box<str>>,
    pub client_message_id: Option<Box<str>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewUpload {
    pub file: File,
    pub digest: BlobDigest,
    /// A picture of the caller, not something to put on a message.
    pub avatar: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// An agent of the caller, or the name of a source.
    pub from: Box<str>,
    pub path: Path,
    pub command: Box<str>,
    pub payload: Payload,
    /// The readable text of the payload, where it has one: what a room shows.
    pub text: Option<Arc<str>>,
    pub source: Box<str>,
    pub external_id: Option<Box<str>>,
}

/// What the caller is told once the change is on disk.
#[derive(Debug, Clone, PartialEq)]
pub enum Receipt {
    Done,
    User(Arc<User>),
    SignedIn {
        user: Arc<User>,
        sign_in: Arc<SignIn>,
    },
    /// A spent refresh token was shown: its whole family has been ended.
    FamilyRevoked,
    Key(Arc<ApiKey>),
    Invitation(Arc<Invitation>),
    Router(Arc<Router>),
    Service {
        agent: Arc<Agent>,
        service: Arc<Service>,
    },
    Settings(Arc<HubSettings>),
    Room(Arc<Room>),
    Member(Arc<crate::Member>),
    Message(Arc<Message>),
    Posted(Posted),
    Pinned {
        pin: Pin,
        message: Arc<Message>,
    },
    Bookmarked {
        bookmark: Bookmark,
        message: Arc<Message>,
        /// It was there before.
        repeated: bool,
    },
    Agent {
        agent: Arc<Agent>,
        subscriptions: Vec<Subscription>,
    },
    Gateway(Arc<Gateway>),
    /// The agent was removed while its gateway was away.
    Dismissed(AgentId),
    Task(Arc<Task>),
    Mission(Arc<Mission>),
    Subscriptions(Vec<Subscription>),
    Upload(Arc<Upload>),
    Released(Vec<BlobDigest>),
    /// How many were waiting for it.
    Acknowledged(usize),
    Received {
        mail: Vec<(Arc<Message>, Delivery)>,
    },
    Started(Box<StartedRun>),
    Run(Arc<Run>),
    Approval(Arc<Approval>),
    Rewound(Box<RewindResult>),
}

/// What was taken back.
#[derive(Debug, Clone, PartialEq)]
pub struct RewindResult {
    /// From which on.
    pub message: Arc<Message>,
    /// With that one, the oldest first.
    pub removed: Vec<MessageId>,
    /// Turns that ended so.
    pub ended: Vec<Arc<Run>>,
    /// Who is to forget it.
    pub agents: Vec<AgentId>,
    /// Up to where it is told.
    pub through: crate::Seq,
}

/// A turn that began, with what its agent needs to know.
#[derive(Debug, Clone, PartialEq)]
pub struct StartedRun {
    pub run: Arc<Run>,
    pub prompt: RunTrigger,
    pub room: Arc<Room>,
    pub members: Arc<[crate::Member]>,
}

/// What sets a turn off.
#[derive(Debug, Clone, PartialEq)]
pub enum RunTrigger {
    Message(Arc<Message>),
    Task(Arc<Task>),
    /// Somebody came.
    Arrival {
        name: Box<str>,
    },
}

/// A message went in, now or at the first of several tries.
#[derive(Debug, Clone, PartialEq)]
pub struct Posted {
    pub id: MessageId,
    pub position: Position,
    /// Absent when a repeated message was deleted meanwhile.
    pub message: Option<Arc<Message>>,
    pub deliveries: Arc<[Delivery]>,
    pub repeated: bool,
}
