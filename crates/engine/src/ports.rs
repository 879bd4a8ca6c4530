//! Traits for everything the engine needs from outside: store, snapshots, blobs, bus, clock, ids and triage.
//!
//! The doc comments are the contract. The test suite in `backends/tests/suite` checks every store against it.

use crate::metrics::StoreSize;
use crate::search::SearchScope;
use crate::{Fault, effects::Effects};
use parlor_model::audit::{AuditFilter, AuditRecord};
use parlor_model::query::{MailPage, Page, Recent};
use parlor_model::{
    Agent, AgentId, ApiKey, Approval, ApprovalId, ApprovalRule, BlobDigest, Bookmark, ConversationId,
    CurrentPlan, DeadLetter, Delivery, Epoch, Gateway, GatewayId, HubSettings, IdlePrompt, Invitation,
    InvitationId, KeyId, LoggedEvent, Mailbox, Member, MemberId, Message, MessageId, Mission, MissionId,
    MissionScope, Pairing, Pin, RefreshToken, Revision, Room, RoomId, Router, RouterId, Run, RunId,
    SecondFactor, SecretHash, Seq, Service, Session, SignIn, SignInId, Subscription, Task, TaskId, Time,
    Upload, UploadId, User, UserId,
};
use std::io::{Read, Seek};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Maximum number of an agent's most recently ended runs that are searched for a conversation.
pub const RECENT_RUNS_SEARCHED: usize = 64;

/// Point reads, with the same semantics inside the writer's open transaction and in a reader's snapshot.
pub trait Lookup {
    fn user(&mut self, id: &UserId) -> Result<Option<User>, Fault>;
    /// Compares usernames without regard to ASCII case.
    fn user_named(&mut self, username: &str) -> Result<Option<User>, Fault>;
    fn admins(&mut self) -> Result<u64, Fault>;
    fn sign_in(&mut self, id: &SignInId) -> Result<Option<SignIn>, Fault>;
    fn refresh_token(&mut self, token: &SecretHash) -> Result<Option<RefreshToken>, Fault>;
    fn key(&mut self, id: &KeyId) -> Result<Option<ApiKey>, Fault>;
    fn key_with(&mut self, secret: &SecretHash) -> Result<Option<ApiKey>, Fault>;
    /// Secret of the setup link on offer, and its expiry time.
    fn setup(&mut self) -> Result<Option<(SecretHash, Time)>, Fault>;
    fn invitation(&mut self, id: &InvitationId) -> Result<Option<Invitation>, Fault>;
    fn invitation_with(&mut self, secret: &SecretHash) -> Result<Option<Invitation>, Fault>;
    fn pairing(&mut self, code: &SecretHash) -> Result<Option<Pairing>, Fault>;
    fn router(&mut self, id: &RouterId) -> Result<Option<Router>, Fault>;
    /// The user's own routers and all shared ones, oldest first, then by id.
    fn routers(&mut self, user: &UserId) -> Result<Vec<Router>, Fault>;
    fn service(&mut self, agent: &AgentId) -> Result<Option<Service>, Fault>;
    /// The newest audit record of a failed sign-in to this account; with `None`, to a username that does not
    /// exist.
    fn last_failed_sign_in(&mut self, user: Option<&UserId>) -> Result<Option<AuditRecord>, Fault>;
    fn settings(&mut self) -> Result<HubSettings, Fault>;
    fn second_factor(&mut self, user: &UserId) -> Result<Option<SecondFactor>, Fault>;
    /// Whether this backup code belongs to the user and is unused.
    fn has_backup_code(&mut self, user: &UserId, code: &SecretHash) -> Result<bool, Fault>;
    fn room(&mut self, id: &RoomId) -> Result<Option<Room>, Fault>;
    fn member(&mut self, room: &RoomId, member: &MemberId) -> Result<Option<Member>, Fault>;
    /// Members in the order in which they joined.
    fn members(&mut self, room: &RoomId, limit: usize, offset: usize) -> Result<Vec<Member>, Fault>;
    /// All memberships of a user or agent, by time of joining, then by room.
    fn memberships(&mut self, member: &MemberId) -> Result<Vec<Member>, Fault>;
    fn message(&mut self, id: &MessageId) -> Result<Option<Arc<Message>>, Fault>;
    /// Whether a message with this id exists or existed; deleted messages count.
    fn was_said(&mut self, id: &MessageId) -> Result<bool, Fault>;
    /// Messages of a room from `from` on (inclusive), oldest first, without deleted ones.
    fn said_since(&mut self, room: &RoomId, from: Seq, limit: usize) -> Result<Vec<Arc<Message>>, Fault>;
    fn pin(&mut self, message: &MessageId) -> Result<Option<Pin>, Fault>;
    fn pin_count(&mut self, room: &RoomId) -> Result<usize, Fault>;
    fn bookmark(&mut self, user: &UserId, message: &MessageId) -> Result<Option<Bookmark>, Fault>;
    /// Number of all bookmarks of a user, including those in rooms that the user has left.
    fn bookmark_count(&mut self, user: &UserId) -> Result<usize, Fault>;
    /// `Seq` of the newest message in the room that is not deleted.
    fn newest_message(&mut self, room: &RoomId) -> Result<Option<Seq>, Fault>;
    fn agent(&mut self, id: &AgentId) -> Result<Option<Agent>, Fault>;
    /// Agents of an owner, by id.
    fn agents_of(&mut self, owner: &UserId) -> Result<Vec<Agent>, Fault>;
    /// The agents among the members of a room, by id.
    fn agents_in(&mut self, room: &RoomId) -> Result<Vec<AgentId>, Fault>;
    /// Agents whose ids are below this id in the hierarchy, by id.
    fn agents_below(&mut self, id: &AgentId) -> Result<Vec<Agent>, Fault>;
    fn task(&mut self, id: &TaskId) -> Result<Option<Task>, Fault>;
    fn task_count(&mut self, room: &RoomId) -> Result<usize, Fault>;
    fn gateway(&mut self, id: &GatewayId) -> Result<Option<Gateway>, Fault>;
    /// Gateways of one owner, or all gateways, by id.
    fn gateways(&mut self, owner: Option<&UserId>) -> Result<Vec<Gateway>, Fault>;
    /// Sessions of an agent, in order of creation.
    fn sessions(&mut self, agent: &AgentId) -> Result<Vec<Session>, Fault>;
    /// Subscriptions of a mailbox, in the order in which they were added.
    fn subscriptions_of(&mut self, mailbox: &Mailbox) -> Result<Vec<Subscription>, Fault>;
    fn share_a_room(&mut self, one: &MemberId, other: &MemberId) -> Result<bool, Fault>;
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
    fn upload(&mut self, id: &UploadId) -> Result<Option<Upload>, Fault>;
    /// Number of the owner's uploads that are not attached to a message yet.
    fn uploads_waiting(&mut self, owner: &UserId) -> Result<usize, Fault>;
    /// The user's avatar uploads, oldest first.
    fn avatars(&mut self, owner: &UserId) -> Result<Vec<Upload>, Fault>;
    /// Contents whose last upload was removed and that `ForgetReleased` has not taken yet, by digest.
    fn released(&mut self, limit: usize) -> Result<Vec<BlobDigest>, Fault>;
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
    fn plan(&mut self, room: &RoomId, agent: &AgentId) -> Result<Option<CurrentPlan>, Fault>;
    fn mission(&mut self, id: &MissionId) -> Result<Option<Mission>, Fault>;
    /// Missions of a scope, newest first, then by id.
    fn missions(&mut self, mission_scope: &MissionScope, limit: usize) -> Result<Vec<Mission>, Fault>;
    /// The rooms with this project root, by id.
    fn rooms_about(&mut self, root: &str) -> Result<Vec<Room>, Fault>;
    /// The idle prompt that is set for an agent in a mission scope.
    fn idle(&mut self, mission_scope: &MissionScope, agent: &AgentId) -> Result<Option<IdlePrompt>, Fault>;
    fn run(&mut self, id: &RunId) -> Result<Option<Run>, Fault>;
    /// The runs triggered by a message, in the order in which they were decided.
    fn runs_of(&mut self, message: &MessageId) -> Result<Vec<Run>, Fault>;
    /// The newest run of an agent in a conversation, among its last `RECENT_RUNS_SEARCHED` ended runs.
    fn ended_turn(&mut self, agent: &AgentId, conversation: &ConversationId) -> Result<Option<Run>, Fault>;
    /// The queued and running runs of a room, oldest first.
    fn open_runs_in(&mut self, room: &RoomId) -> Result<Vec<Run>, Fault>;
    /// Whether an agent has a queued or running run in any room.
    fn has_open_run(&mut self, agent: &AgentId) -> Result<bool, Fault>;
    /// Runs and tokens of an agent in a room, over the runs queued since then; refused runs do not count.
    fn spent(&mut self, room: &RoomId, agent: &AgentId, since: Time) -> Result<BudgetUsage, Fault>;
    /// Number of runs that `agent` got in a room since then because the agent `by` addressed it; refused runs
    /// do not count.
    fn asked(&mut self, room: &RoomId, by: &AgentId, agent: &AgentId, since: Time) -> Result<u64, Fault>;
    /// Number of an agent's runs that ended since then with a reply.
    fn spoken(&mut self, agent: &AgentId, since: Time) -> Result<u64, Fault>;
    /// The request that first used this idempotency key.
    fn first_use(&mut self, key: &IdempotencyKey) -> Result<Option<FirstRequest>, Fault>;
}

/// The writer's open transaction. Changes become visible to readers and durable when `commit` returns `Ok`;
/// dropping the transaction undoes everything.
pub trait Transaction: Lookup {
    fn apply(&mut self, effects: &Effects) -> Result<(), Fault>;
    fn commit(self: Box<Self>) -> Result<(), Fault>;
}

/// The write side of a store, used by the single writer. After a fault of `Severity::Permanent` it refuses
/// everything until it is reopened.
pub trait Store: Send {
    fn begin(&mut self) -> Result<Box<dyn Transaction + '_>, Fault>;
    fn head(&mut self) -> Result<Head, Fault>;
    /// All agents and subscriptions, from which the routing index is built.
    fn subscriptions(&mut self) -> Result<(Vec<Agent>, Vec<Subscription>), Fault>;
    /// Periodic work between batches (checkpoints, retention). `now` decides which rows are old. The log is
    /// trimmed only at its beginning and always keeps its newest event. Messages, unless they are kept for
    /// ever, are deleted in slices, and not within 24 hours after a clock jump, because the clock may be
    /// wrong. Returns whether there is more to do.
    fn run_maintenance(&mut self, now: Time) -> Result<bool, Fault>;
    /// Adds at most `limit` of the oldest unindexed messages to the search index and returns the `Seq` up to
    /// which it is complete. A search finds newer messages too, by reading them.
    fn index(&mut self, limit: usize) -> Result<Seq, Fault> {
        let _ = limit;
        Ok(self.head()?.seq)
    }
    /// Called last, on a store without a permanent fault: flushes buffered state such as a write-ahead log.
    fn close(&mut self) -> Result<(), Fault> {
        Ok(())
    }
}

/// Newest position of the log, and how far the log has been trimmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub epoch: Epoch,
    pub seq: Seq,
    /// Time of the newest event, so that event times keep increasing after a restart.
    pub at: Time,
    /// Events up to and including this `Seq` have been trimmed from the log.
    pub trimmed_through: Seq,
}

/// A consistent read-only view of the store, independent of the writer.
pub trait Snapshot: Lookup {
    fn head(&mut self) -> Result<Head, Fault>;
    /// Logged events after `after`, in order. Deleted messages are returned as tombstones.
    fn tail(&mut self, after: Seq, limit: usize) -> Result<Vec<LoggedEvent>, Fault>;
    /// The events of one room after `after`, in order. Deleted messages may be omitted.
    fn room_tail(&mut self, room: &RoomId, after: Seq, limit: usize) -> Result<Vec<LoggedEvent>, Fault>;
    /// A page of users, oldest first, and the total number of users.
    fn users(&mut self, limit: usize, offset: usize) -> Result<(Vec<User>, usize), Fault>;
    /// Users whose username or display name contains `text`, without regard to ASCII case, by username,
    /// excluding `except`.
    fn search_users(&mut self, text: &str, except: &UserId, limit: usize) -> Result<Vec<User>, Fault>;
    /// Unexpired sign-ins of a user, oldest first.
    fn sign_ins(&mut self, user: &UserId, now: Time) -> Result<Vec<SignIn>, Fault>;
    /// API keys of one owner, or all keys, oldest first.
    fn keys(&mut self, owner: Option<&UserId>) -> Result<Vec<ApiKey>, Fault>;
    /// Unexpired invitations, oldest first.
    fn invitations(&mut self, now: Time) -> Result<Vec<Invitation>, Fault>;
    /// Every agent that the hub itself hosts as a service, oldest first, then by id.
    fn services(&mut self) -> Result<Vec<(Agent, Service)>, Fault>;
    fn audit(&mut self, page: &AuditFilter) -> Result<Vec<AuditRecord>, Fault>;
    /// All rooms with a project root, by id.
    fn rooms_with_root(&mut self) -> Result<Vec<Room>, Fault>;
    fn member_count(&mut self, room: &RoomId) -> Result<usize, Fault>;
    /// A page of the messages of a room after `beyond`.
    fn history(
        &mut self,
        room: &RoomId,
        beyond: Seq,
        page: Page,
        limit: usize,
    ) -> Result<Vec<Arc<Message>>, Fault>;
    /// The newest message of a room and the number of messages by others that the member has not read; both
    /// without the messages the member has cleared.
    fn recent(&mut self, room: &RoomId, member: &Member) -> Result<Option<Recent>, Fault>;
    /// Replies to a message after `after`, oldest first: the whole thread if the message started one,
    /// otherwise only the direct replies.
    fn answers(&mut self, to: &Message, after: Seq, limit: usize) -> Result<Vec<Arc<Message>>, Fault>;
    fn answer_count(&mut self, to: &Message, after: Seq) -> Result<u64, Fault>;
    /// Pins on messages after `beyond`, newest pin first.
    fn pins(&mut self, room: &RoomId, beyond: Seq) -> Result<Vec<(Pin, Arc<Message>)>, Fault>;
    /// A user's bookmarks, newest first, on messages in rooms the user is in and has not cleared.
    fn bookmarks(
        &mut self,
        user: &UserId,
        before: Option<Seq>,
        limit: usize,
    ) -> Result<Vec<(Bookmark, Arc<Message>)>, Fault>;
    /// Calls `visit` with search candidates, newest first and each once, until it breaks. The candidates
    /// contain every message in the scope's rooms and before its position that has the required words and
    /// kind; they may contain others. `None` reports a row that was skipped, so that the visitor can check
    /// its time limit.
    fn candidates(
        &mut self,
        search_scope: &SearchScope<'_>,
        visit: CandidateVisitor<'_>,
    ) -> Result<(), Fault>;
    /// Tasks of a room, oldest first, then by id.
    fn tasks(&mut self, room: &RoomId) -> Result<Vec<Task>, Fault>;
    /// Tasks that a user created or is assigned to, in rooms the user is in, newest first, then by id.
    fn tasks_of(&mut self, user: &UserId, limit: usize, offset: usize) -> Result<Vec<Task>, Fault>;
    /// Earlier versions of a message, latest edit first.
    fn revisions(&mut self, message: &MessageId, limit: usize) -> Result<Vec<Revision>, Fault>;
    /// Agents of other owners that share a room with this user or are shared with them, by id.
    fn agents_near(&mut self, user: &UserId) -> Result<Vec<Agent>, Fault>;
    /// Agents of other owners that are shared with this user, by id.
    fn agents_shared(&mut self, user: &UserId, limit: usize, offset: usize) -> Result<Vec<Agent>, Fault>;
    /// All mail of a mailbox, whatever its delivery state.
    fn mail(&mut self, mailbox: &Mailbox, page: MailPage) -> Result<Vec<(Arc<Message>, Delivery)>, Fault>;
    fn dead_letters(&mut self, page: MailPage) -> Result<Vec<DeadLetter>, Fault>;
    /// All queued and running runs, oldest first.
    fn open_runs(&mut self) -> Result<Vec<Run>, Fault>;
    /// The newest runs of a room, newest first.
    fn runs_in(&mut self, room: &RoomId, limit: usize) -> Result<Vec<Run>, Fault>;
    /// Runs that were started from within a run, oldest first.
    fn runs_below(&mut self, run: &RunId) -> Result<Vec<Run>, Fault>;
    /// Runs of an agent: first the queued and running ones, newest first, then the ended ones, last ended
    /// first.
    fn latest_runs(&mut self, agent: &AgentId, limit: usize) -> Result<Vec<Run>, Fault>;
    /// The current plans of the agents in a room, by agent.
    fn plans(&mut self, room: &RoomId) -> Result<Vec<CurrentPlan>, Fault>;
    /// All active missions, oldest first, then by id.
    fn missions_on(&mut self) -> Result<Vec<Mission>, Fault>;
    /// Tools that are always approved in a room, by agent, then by tool.
    fn approval_rules(&mut self, room: &RoomId) -> Result<Vec<ApprovalRule>, Fault>;
    /// Whether an upload refers to this content.
    fn refers_to(&mut self, digest: &BlobDigest) -> Result<bool, Fault>;
    /// Ids of all users who share a room with this user, without the user, sorted.
    fn peers(&mut self, user: &UserId) -> Result<Vec<UserId>, Fault>;
}

pub type CandidateVisitor<'a> = &'a mut dyn FnMut(Seq, Option<&Message>) -> ControlFlow<()>;

pub trait Reader: Send + Sync {
    /// Runs `read` on one consistent snapshot. Blocks; must not be called on async threads.
    fn with(&self, read: &mut dyn FnMut(&mut dyn Snapshot) -> Result<(), Fault>) -> Result<(), Fault>;
    /// Size on disk; zero for a store in memory.
    fn size(&self) -> StoreSize {
        StoreSize::default()
    }
}

/// Stores file contents under their digest, so that equal contents are stored once. All methods block; they
/// must not be called on async threads.
pub trait BlobStore: Send + Sync {
    /// Starts an upload. Dropping it before `keep` leaves no data behind.
    fn receive(&self) -> Result<Box<dyn BlobUpload>, Fault>;
    /// Returns `None` if there is no such content.
    fn open(&self, digest: &BlobDigest) -> Result<Option<Box<dyn Content>>, Fault>;
    /// The digests of all contents whose first byte is `first`.
    fn list(&self, first: u8) -> Result<Vec<BlobDigest>, Fault>;
    /// Removes a content unless it is needed; returns whether it was removed. An upload of the same content
    /// cannot complete between the check and the removal. A content with a live [`StoredBlob`] counts as
    /// needed, without a call of `needed`.
    fn remove_unless(
        &self,
        digest: &BlobDigest,
        needed: &mut dyn FnMut() -> Result<bool, Fault>,
    ) -> Result<bool, Fault>;
}

pub trait BlobUpload: Send {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Fault>;
    /// Completes the upload. When it returns, the content survives a power failure.
    fn keep(self: Box<Self>) -> Result<StoredBlob, Fault>;
}

pub trait Content: Read + Seek + Send {}

impl<T: Read + Seek + Send> Content for T {}

/// Stored content of a file. The content is not removed while this value exists; drop the value once the store
/// refers to the digest.
pub struct StoredBlob {
    pub digest: BlobDigest,
    pub size: u64,
    pub hold: Box<dyn Send>,
}

/// Carries committed events from the writer to the log tailer. It may lose, repeat or reorder batches: the
/// log tailer fills gaps from the store.
pub trait Bus: Send + Sync {
    fn publish(&self, events: Arc<[LoggedEvent]>);
    /// Waits for the next batch; returns `TimedOut` when none arrives for a while.
    fn next(&self) -> BusPoll;
}

pub enum BusPoll {
    Batch(Arc<[LoggedEvent]>),
    TimedOut,
    Closed,
}

/// Decides whether an agent should answer an unaddressed message. May be slow and may fail: the run is then
/// started anyway, at the rate of `Limits::triage_fallback_burst`.
pub trait Triage: Send + Sync {
    fn should_answer(&self, case: TriageCase) -> TriageFuture;
}

pub type TriageFuture = std::pin::Pin<Box<dyn Future<Output = Result<bool, Fault>> + Send>>;

/// The message to triage, with the agent in question and its room.
#[derive(Debug, Clone)]
pub struct TriageCase {
    pub agent: Agent,
    /// All agents that could answer the message, including `agent`, by id, so that one model call can decide
    /// for all of them.
    pub candidates: Vec<Agent>,
    pub message: Arc<Message>,
    pub room: Room,
    /// The room's own router for this decision, if it has one.
    pub router: Option<Router>,
}

pub trait Clock: Send + Sync {
    fn now(&self) -> Time;
}

/// Generates unguessable ids.
pub trait IdGenerator: Send + Sync {
    fn next(&self) -> String;
}

/// Filter for open approvals.
#[derive(Debug, Clone, Copy)]
pub enum OpenApprovalsOf<'a> {
    Everybodys,
    Room(&'a RoomId),
    Run(&'a RunId),
    Agent(&'a AgentId),
}

/// Budget consumed by runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BudgetUsage {
    pub turns: u64,
    pub tokens: u64,
}

/// Client key that makes a retry return the receipt of the first request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IdempotencyKey {
    pub kind: IdempotencyKind,
    /// The sender or the source that chose the key.
    pub owner: Box<str>,
    pub key: Box<str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IdempotencyKind {
    ClientMessage = 1,
    External = 2,
    /// Key for the late reply of a run that the hub had already ended.
    Late = 3,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstRequest {
    /// Digest of the whole body, to distinguish a retry from a different message with the same key.
    pub digest: [u8; 16],
    pub message: MessageId,
    pub seq: Seq,
}
