//! Reads of a store, one trait per aggregate. Commands read through the writer's transaction, queries through a
//! snapshot; a backend implements each read once for both.

use super::Head;
use super::{BudgetUsage, FirstRequest, IdempotencyKey, MessageRange, OpenApprovalsOf};
use crate::Fault;
use crate::search::SearchScope;
use parlor_model::audit::{AuditFilter, AuditRecord};
use parlor_model::query::{EntryPage, MailCounts, MailPage, Page, Recent};
use parlor_model::{
    Agent, AgentId, ApiKey, Approval, ApprovalId, ApprovalRule, BlobDigest, Bookmark, ConversationEntry,
    ConversationId, CurrentPlan, DeadLetter, Delivery, Gateway, GatewayId, HubSettings, IdlePrompt,
    Invitation, InvitationId, KeyId, LoggedEvent, Mailbox, Member, MemberId, Message, MessageId, Mission,
    MissionId, MissionScope, Pairing, Path, Pin, RefreshToken, Revision, Room, RoomId, RoomInvitation,
    Router, RouterId, Run, RunContext, RunId, SecondFactor, SecretHash, Seq, Service, Session, SessionId,
    SignIn, SignInId, SigningKey, Subscription, Task, TaskId, Time, TurnDecision, TurnDecisionKind, TurnPage,
    Upload, UploadId, User, UserId,
};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Accounts: users, first-run setup, invitations and pairing codes.
pub trait ReadAccounts {
    fn user(&mut self, id: &UserId) -> Result<Option<User>, Fault>;
    /// Compares usernames without regard to ASCII case.
    fn user_named(&mut self, username: &str) -> Result<Option<User>, Fault>;
    fn admins(&mut self) -> Result<u64, Fault>;
    /// Secret of the setup link on offer, and its expiry time.
    fn setup(&mut self) -> Result<Option<(SecretHash, Time)>, Fault>;
    fn invitation(&mut self, id: &InvitationId) -> Result<Option<Invitation>, Fault>;
    fn invitation_with(&mut self, secret: &SecretHash) -> Result<Option<Invitation>, Fault>;
    fn pairing(&mut self, code: &SecretHash) -> Result<Option<Pairing>, Fault>;
    /// A page of users, oldest first, and the total number of users.
    fn users(&mut self, limit: usize, offset: usize) -> Result<(Vec<User>, usize), Fault>;
    /// Users whose username or display name contains `text`, without regard to ASCII case, by username,
    /// excluding `except`.
    fn search_users(&mut self, text: &str, except: &UserId, limit: usize) -> Result<Vec<User>, Fault>;
    /// Unexpired invitations, oldest first.
    fn invitations(&mut self, now: Time) -> Result<Vec<Invitation>, Fault>;
    fn room_invitation(&mut self, id: &InvitationId) -> Result<Option<RoomInvitation>, Fault>;
    fn room_invitation_with(&mut self, secret: &SecretHash) -> Result<Option<RoomInvitation>, Fault>;
    /// Unexpired invitations to a room, oldest first.
    fn room_invitations(&mut self, room: &RoomId, now: Time) -> Result<Vec<RoomInvitation>, Fault>;
}

/// Credentials: sign-ins, API keys and second factors.
pub trait ReadCredentials {
    fn sign_in(&mut self, id: &SignInId) -> Result<Option<SignIn>, Fault>;
    fn refresh_token(&mut self, token: &SecretHash) -> Result<Option<RefreshToken>, Fault>;
    /// Unexpired sign-ins of a user, oldest first.
    fn sign_ins(&mut self, user: &UserId, now: Time) -> Result<Vec<SignIn>, Fault>;
    fn key(&mut self, id: &KeyId) -> Result<Option<ApiKey>, Fault>;
    fn key_with(&mut self, secret: &SecretHash) -> Result<Option<ApiKey>, Fault>;
    /// API keys of one owner, or all keys, oldest first.
    fn keys(&mut self, owner: Option<&UserId>) -> Result<Vec<ApiKey>, Fault>;
    /// An API key whose secret signs tokens, with the revocations of its tokens by target.
    fn signing_key(&mut self, id: &KeyId) -> Result<Option<SigningKey>, Fault>;
    /// Number of keys of one owner whose secrets sign tokens.
    fn signing_key_count(&mut self, owner: &UserId) -> Result<usize, Fault>;
    fn second_factor(&mut self, user: &UserId) -> Result<Option<SecondFactor>, Fault>;
    /// Whether this backup code belongs to the user and is unused.
    fn has_backup_code(&mut self, user: &UserId, code: &SecretHash) -> Result<bool, Fault>;
}

/// The hub's settings.
pub trait ReadSettings {
    fn settings(&mut self) -> Result<HubSettings, Fault>;
}

/// The audit log.
pub trait ReadAudit {
    /// The newest audit record of a failed sign-in to this account; with `None`, to a username that does not
    /// exist.
    fn last_failed_sign_in(&mut self, user: Option<&UserId>) -> Result<Option<AuditRecord>, Fault>;
    fn audit(&mut self, page: &AuditFilter) -> Result<Vec<AuditRecord>, Fault>;
}

/// Models: routers and services.
pub trait ReadModels {
    fn router(&mut self, id: &RouterId) -> Result<Option<Router>, Fault>;
    /// The user's own routers and all shared ones, oldest first, then by id.
    fn routers(&mut self, user: &UserId) -> Result<Vec<Router>, Fault>;
    fn service(&mut self, agent: &AgentId) -> Result<Option<Service>, Fault>;
    /// Every agent that the hub itself hosts as a service, oldest first, then by id.
    fn services(&mut self) -> Result<Vec<(Agent, Service)>, Fault>;
}

/// Rooms and their members.
pub trait ReadRooms {
    fn room(&mut self, id: &RoomId) -> Result<Option<Room>, Fault>;
    /// The rooms with this project root, by id.
    fn rooms_about(&mut self, root: &str) -> Result<Vec<Room>, Fault>;
    /// All rooms with a project root, by id.
    fn rooms_with_root(&mut self) -> Result<Vec<Room>, Fault>;
    fn member(&mut self, room: &RoomId, member: &MemberId) -> Result<Option<Member>, Fault>;
    /// Members in the order in which they joined.
    fn members(&mut self, room: &RoomId, limit: usize, offset: usize) -> Result<Vec<Member>, Fault>;
    fn member_count(&mut self, room: &RoomId) -> Result<usize, Fault>;
    /// All memberships of a user or agent, by time of joining, then by room.
    fn memberships(&mut self, member: &MemberId) -> Result<Vec<Member>, Fault>;
    /// Whether a member other than `except` has a name with this key (`mention::name_key`) in the room.
    fn has_member_named(&mut self, room: &RoomId, key: &str, except: &MemberId) -> Result<bool, Fault>;
    /// All members whose name in the room is not that of their account or agent, by room, users first, then by id.
    fn names_in_rooms(&mut self) -> Result<Vec<(RoomId, MemberId, Box<str>)>, Fault>;
    fn share_a_room(&mut self, one: &MemberId, other: &MemberId) -> Result<bool, Fault>;
    /// Ids of all users who share a room with this user, without the user, sorted.
    fn peers(&mut self, user: &UserId) -> Result<Vec<UserId>, Fault>;
}

/// Messages, their revisions and idempotency keys.
pub trait ReadMessages {
    fn message(&mut self, id: &MessageId) -> Result<Option<Arc<Message>>, Fault>;
    /// Whether a message with this id exists or existed; deleted messages count.
    fn was_said(&mut self, id: &MessageId) -> Result<bool, Fault>;
    /// Messages of a room from `from` on (inclusive), oldest first, without deleted ones.
    fn said_since(&mut self, room: &RoomId, from: Seq, limit: usize) -> Result<Vec<Arc<Message>>, Fault>;
    /// `Seq` of the newest message in the room that is not deleted.
    fn newest_message(&mut self, room: &RoomId) -> Result<Option<Seq>, Fault>;
    /// A page of the messages of a room after `beyond`.
    fn history(
        &mut self,
        room: &RoomId,
        beyond: Seq,
        page: Page,
        limit: usize,
    ) -> Result<Vec<Arc<Message>>, Fault>;
    /// The first messages of a range, in its direction.
    fn messages_in_range(
        &mut self,
        range: &MessageRange<'_>,
        limit: usize,
    ) -> Result<Vec<Arc<Message>>, Fault>;
    /// The newest message of a room and the number of messages by others that the member has not read; both
    /// without the messages the member has cleared.
    fn recent(&mut self, room: &RoomId, member: &Member) -> Result<Option<Recent>, Fault>;
    /// Replies to a message after `after`, oldest first: the whole thread if the message started one,
    /// otherwise only the direct replies.
    fn answers(&mut self, to: &Message, after: Seq, limit: usize) -> Result<Vec<Arc<Message>>, Fault>;
    fn answer_count(&mut self, to: &Message, after: Seq) -> Result<u64, Fault>;
    /// Earlier versions of a message, latest edit first.
    fn revisions(&mut self, message: &MessageId, limit: usize) -> Result<Vec<Revision>, Fault>;
    /// Calls `visit` with search candidates, newest first and each once, until it breaks. The candidates
    /// contain every message in the scope's rooms and before its position that has the required words and
    /// kind; they may contain others. `None` reports a row that was skipped, so that the visitor can check
    /// its time limit.
    fn candidates(
        &mut self,
        search_scope: &SearchScope<'_>,
        visit: CandidateVisitor<'_>,
    ) -> Result<(), Fault>;
    /// The request that first used this idempotency key.
    fn first_use(&mut self, key: &IdempotencyKey) -> Result<Option<FirstRequest>, Fault>;
}

/// Annotations: reactions, pins and bookmarks.
pub trait ReadAnnotations {
    fn pin(&mut self, message: &MessageId) -> Result<Option<Pin>, Fault>;
    fn pin_count(&mut self, room: &RoomId) -> Result<usize, Fault>;
    /// Pins on messages after `beyond`, newest pin first.
    fn pins(&mut self, room: &RoomId, beyond: Seq) -> Result<Vec<(Pin, Arc<Message>)>, Fault>;
    fn bookmark(&mut self, user: &UserId, message: &MessageId) -> Result<Option<Bookmark>, Fault>;
    /// Number of all bookmarks of a user, including those in rooms that the user has left.
    fn bookmark_count(&mut self, user: &UserId) -> Result<usize, Fault>;
    /// A user's bookmarks, newest first, on messages in rooms the user is in and has not cleared.
    fn bookmarks(
        &mut self,
        user: &UserId,
        before: Option<Seq>,
        limit: usize,
    ) -> Result<Vec<(Bookmark, Arc<Message>)>, Fault>;
}

/// Uploads and the contents that no upload refers to.
pub trait ReadUploads {
    fn upload(&mut self, id: &UploadId) -> Result<Option<Upload>, Fault>;
    /// Number of the owner's uploads that are not attached to a message yet.
    fn uploads_waiting(&mut self, owner: &UserId) -> Result<usize, Fault>;
    /// The user's avatar uploads, oldest first.
    fn avatars(&mut self, owner: &UserId) -> Result<Vec<Upload>, Fault>;
    /// Contents whose last upload was removed and that `ForgetReleased` has not taken yet, by digest.
    fn released(&mut self, limit: usize) -> Result<Vec<BlobDigest>, Fault>;
    /// Whether an upload refers to this content.
    fn refers_to(&mut self, digest: &BlobDigest) -> Result<bool, Fault>;
}

/// Agents and gateways.
pub trait ReadAgents {
    fn agent(&mut self, id: &AgentId) -> Result<Option<Agent>, Fault>;
    /// Agents of an owner, by id.
    fn agents_of(&mut self, owner: &UserId) -> Result<Vec<Agent>, Fault>;
    /// The agents among the members of a room, by id.
    fn agents_in(&mut self, room: &RoomId) -> Result<Vec<AgentId>, Fault>;
    /// Agents whose ids are below this id in the hierarchy, by id.
    fn agents_below(&mut self, id: &AgentId) -> Result<Vec<Agent>, Fault>;
    /// Agents of other owners that share a room with this user or are shared with them, by id.
    fn agents_near(&mut self, user: &UserId) -> Result<Vec<Agent>, Fault>;
    /// Agents of other owners that are shared with this user, by id.
    fn agents_shared(&mut self, user: &UserId, limit: usize, offset: usize) -> Result<Vec<Agent>, Fault>;
    fn gateway(&mut self, id: &GatewayId) -> Result<Option<Gateway>, Fault>;
    /// Gateways of one owner, or all gateways, by id.
    fn gateways(&mut self, owner: Option<&UserId>) -> Result<Vec<Gateway>, Fault>;
}

/// Mail: agent sessions, subscriptions, deliveries and dead letters.
pub trait ReadMail {
    /// Sessions of an agent, in order of creation.
    fn sessions(&mut self, agent: &AgentId) -> Result<Vec<Session>, Fault>;
    /// Subscriptions of a mailbox, in the order in which they were added.
    fn subscriptions_of(&mut self, mailbox: &Mailbox) -> Result<Vec<Subscription>, Fault>;
    /// Deliveries of a message: sessions first, then agents, each by id. This is the order in which they were
    /// decided.
    fn deliveries(&mut self, message: &MessageId) -> Result<Vec<Delivery>, Fault>;
    /// Deliverable mail, oldest first: pending, or with an expired lease.
    fn pending(
        &mut self,
        mailbox: &Mailbox,
        now: Time,
        limit: usize,
    ) -> Result<Vec<(Arc<Message>, Delivery)>, Fault>;
    fn delivery(&mut self, mailbox: &Mailbox, message: &MessageId) -> Result<Option<Delivery>, Fault>;
    /// All mail of a mailbox, whatever its delivery state.
    fn mail(&mut self, mailbox: &Mailbox, page: MailPage) -> Result<Vec<(Arc<Message>, Delivery)>, Fault>;
    /// Numbers of messages in a mailbox that are not settled.
    fn mail_counts(&mut self, mailbox: &Mailbox, now: Time) -> Result<MailCounts, Fault>;
    /// Mail of a mailbox after a position, oldest first, whatever its delivery state.
    fn mail_after(
        &mut self,
        mailbox: &Mailbox,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<(Arc<Message>, Delivery)>, Fault>;
    fn dead_letters(&mut self, page: MailPage) -> Result<Vec<DeadLetter>, Fault>;
    /// As [`ReadMail::pending`], without mail that a session of the agent has received too.
    fn unhandled(
        &mut self,
        mailbox: &Mailbox,
        now: Time,
        limit: usize,
    ) -> Result<Vec<(Arc<Message>, Delivery)>, Fault>;
    /// Mail that runs hold, oldest first.
    fn held(&mut self, mailbox: &Mailbox) -> Result<Vec<Delivery>, Fault>;
    /// The earliest time at which the lease of mail that is leased now expires. Mail that runs hold does not count.
    fn next_lease_end(&mut self, mailbox: &Mailbox, now: Time) -> Result<Option<Time>, Fault>;
    /// The dead letter of a message in this mailbox, or without a mailbox.
    fn dead_letter(
        &mut self,
        message: &MessageId,
        mailbox: Option<&Mailbox>,
    ) -> Result<Option<DeadLetter>, Fault>;
}

/// Settings of automatic turns and heartbeats, and the decisions about turns.
pub trait ReadTurns {
    /// Agents with a setting for automatic turns or heartbeats, by id.
    fn automatic_agents(&mut self) -> Result<Vec<Agent>, Fault>;
    /// Sessions with a setting for automatic turns, by agent, then by id.
    fn automatic_sessions(&mut self) -> Result<Vec<Session>, Fault>;
    /// Decisions about the agents, newest first.
    fn turn_decisions(&mut self, agents: &[AgentId], page: &TurnPage) -> Result<Vec<TurnDecision>, Fault>;
    /// Number of stored decisions about the agents, or about one session of them, by kind. Kinds without a decision are
    /// omitted.
    fn turn_counts(
        &mut self,
        agents: &[AgentId],
        session: Option<&SessionId>,
    ) -> Result<Vec<(TurnDecisionKind, u64)>, Fault>;
}

/// Runs and agents' plans.
pub trait ReadRuns {
    fn run(&mut self, id: &RunId) -> Result<Option<Run>, Fault>;
    /// The runs triggered by a message, in the order in which they were decided.
    fn runs_of(&mut self, message: &MessageId) -> Result<Vec<Run>, Fault>;
    /// The newest run of an agent in a conversation, among its last `RECENT_RUNS_SEARCHED` ended runs.
    fn ended_turn(&mut self, agent: &AgentId, conversation: &ConversationId) -> Result<Option<Run>, Fault>;
    /// The queued and running runs of a room, oldest first.
    fn open_runs_in(&mut self, room: &RoomId) -> Result<Vec<Run>, Fault>;
    /// The queued and running runs in a session of an agent, oldest first.
    fn open_runs_of_session(&mut self, agent: &AgentId, session: &SessionId) -> Result<Vec<Run>, Fault>;
    /// The queued and running runs without a room, of the agents of this user, oldest first.
    fn open_runs_of_owner(&mut self, owner: &UserId) -> Result<Vec<Run>, Fault>;
    /// Whether an agent has a queued or running run.
    fn has_open_run(&mut self, agent: &AgentId) -> Result<bool, Fault>;
    /// Runs and tokens of an agent in a room or session, over the runs queued since then; refused runs do not count. The
    /// runs of a room include those in sessions with this room.
    fn spent(&mut self, context: &RunContext, agent: &AgentId, since: Time) -> Result<BudgetUsage, Fault>;
    /// Number of runs that `agent` got in a room since then because the agent `by` addressed it; refused runs
    /// do not count.
    fn asked(&mut self, room: &RoomId, by: &AgentId, agent: &AgentId, since: Time) -> Result<u64, Fault>;
    /// Number of an agent's runs that ended since then with a reply.
    fn spoken(&mut self, agent: &AgentId, since: Time) -> Result<u64, Fault>;
    /// All queued and running runs, oldest first.
    fn open_runs(&mut self) -> Result<Vec<Run>, Fault>;
    /// The newest runs of a room, newest first.
    fn runs_in(&mut self, room: &RoomId, limit: usize) -> Result<Vec<Run>, Fault>;
    /// The newest runs without a room, of the agents of this user, newest first.
    fn runs_of_owner(&mut self, owner: &UserId, limit: usize) -> Result<Vec<Run>, Fault>;
    /// Runs that were started from within a run, oldest first.
    fn runs_below(&mut self, run: &RunId) -> Result<Vec<Run>, Fault>;
    /// Runs of an agent: first the queued and running ones, newest first, then the ended ones, last ended
    /// first.
    fn latest_runs(&mut self, agent: &AgentId, limit: usize) -> Result<Vec<Run>, Fault>;
    fn plan(&mut self, room: &RoomId, agent: &AgentId) -> Result<Option<CurrentPlan>, Fault>;
    /// The current plans of the agents in a room, by agent.
    fn plans(&mut self, room: &RoomId) -> Result<Vec<CurrentPlan>, Fault>;
}

/// Conversation logs of sessions.
pub trait ReadConversations {
    /// Entries of a session, oldest first.
    fn conversation(
        &mut self,
        agent: &AgentId,
        session: &SessionId,
        page: EntryPage,
        limit: usize,
    ) -> Result<Vec<ConversationEntry>, Fault>;
}

/// Approvals and approval rules.
pub trait ReadApprovals {
    fn approval(&mut self, id: &ApprovalId) -> Result<Option<Approval>, Fault>;
    /// All approvals, open or decided, that a gateway has requested under this request id, in the order of
    /// the requests.
    fn approvals_called(&mut self, gateway: &GatewayId, request: &str) -> Result<Vec<Approval>, Fault>;
    /// Approvals without a decision, in the order of the requests.
    fn open_approvals(&mut self, of: OpenApprovalsOf<'_>) -> Result<Vec<Approval>, Fault>;
    fn open_approval_count(&mut self) -> Result<usize, Fault>;
    fn approval_rule(
        &mut self,
        room: &RoomId,
        agent: &AgentId,
        tool: &str,
    ) -> Result<Option<ApprovalRule>, Fault>;
    /// Tools that are always approved in a room, by agent, then by tool.
    fn approval_rules(&mut self, room: &RoomId) -> Result<Vec<ApprovalRule>, Fault>;
}

/// Missions and idle prompts.
pub trait ReadMissions {
    fn mission(&mut self, id: &MissionId) -> Result<Option<Mission>, Fault>;
    /// Missions of a scope, newest first, then by id.
    fn missions(&mut self, mission_scope: &MissionScope, limit: usize) -> Result<Vec<Mission>, Fault>;
    /// All active missions, oldest first, then by id.
    fn missions_on(&mut self) -> Result<Vec<Mission>, Fault>;
    /// The idle prompt that is set for an agent in a mission scope.
    fn idle(&mut self, mission_scope: &MissionScope, agent: &AgentId) -> Result<Option<IdlePrompt>, Fault>;
}

/// Tasks.
pub trait ReadTasks {
    fn task(&mut self, id: &TaskId) -> Result<Option<Task>, Fault>;
    fn task_count(&mut self, room: &RoomId) -> Result<usize, Fault>;
    /// Tasks of a room, oldest first, then by id.
    fn tasks(&mut self, room: &RoomId) -> Result<Vec<Task>, Fault>;
    /// Tasks that a user created or is assigned to, in rooms the user is in, newest first, then by id.
    fn tasks_of(&mut self, user: &UserId, limit: usize, offset: usize) -> Result<Vec<Task>, Fault>;
}

/// All reads of a store.
pub trait Lookup:
    ReadAccounts
    + ReadCredentials
    + ReadSettings
    + ReadAudit
    + ReadModels
    + ReadRooms
    + ReadMessages
    + ReadAnnotations
    + ReadUploads
    + ReadAgents
    + ReadMail
    + ReadRuns
    + ReadConversations
    + ReadApprovals
    + ReadMissions
    + ReadTasks
    + ReadTurns
{
}

impl<T> Lookup for T where
    T: ReadAccounts
        + ReadCredentials
        + ReadSettings
        + ReadAudit
        + ReadModels
        + ReadRooms
        + ReadMessages
        + ReadAnnotations
        + ReadUploads
        + ReadAgents
        + ReadMail
        + ReadRuns
        + ReadConversations
        + ReadApprovals
        + ReadMissions
        + ReadTasks
        + ReadTurns
{
}

/// A consistent read-only view of the store, independent of the writer.
pub trait Snapshot: Lookup {
    fn head(&mut self) -> Result<Head, Fault>;
    /// Logged events after `after`, in order. Deleted messages are returned as tombstones.
    fn tail(&mut self, after: Seq, limit: usize) -> Result<Vec<LoggedEvent>, Fault>;
    /// The events of one room after `after`, in order. Deleted messages may be omitted.
    fn room_tail(&mut self, room: &RoomId, after: Seq, limit: usize) -> Result<Vec<LoggedEvent>, Fault>;
    /// The messages posted on a path after `after`, in order, without deleted ones.
    fn path_tail(&mut self, path: &Path, after: Seq, limit: usize) -> Result<Vec<LoggedEvent>, Fault>;
}

pub type CandidateVisitor<'a> = &'a mut dyn FnMut(Seq, Option<&Message>) -> ControlFlow<()>;
