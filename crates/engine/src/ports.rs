//! What the engine needs from outside, each with its contract. One suite, `backends/tests/suite`, holds
//! every store to it.

use crate::metrics::StoreSize;
use crate::search::SearchScope;
use crate::{Fault, decide::Effects};
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

/// How far back a turn is looked for by its conversation.
pub const RECENT_RUNS_SEARCHED: usize = 64;

/// Point reads, the same inside the writer's open transaction and in a reader's snapshot.
pub trait Lookup {
    fn user(&mut self, id: &UserId) -> Result<Option<User>, Fault>;
    /// Names are compared without regard to ASCII case.
    fn user_named(&mut self, username: &str) -> Result<Option<User>, Fault>;
    fn admins(&mut self) -> Result<u64, Fault>;
    fn sign_in(&mut self, id: &SignInId) -> Result<Option<SignIn>, Fault>;
    fn refresh_token(&mut self, token: &SecretHash) -> Result<Option<RefreshToken>, Fault>;
    fn key(&mut self, id: &KeyId) -> Result<Option<ApiKey>, Fault>;
    fn key_with(&mut self, secret: &SecretHash) -> Result<Option<ApiKey>, Fault>;
    /// The setup link on offer and when it expires.
    fn setup(&mut self) -> Result<Option<(SecretHash, Time)>, Fault>;
    fn invitation(&mut self, id: &InvitationId) -> Result<Option<Invitation>, Fault>;
    fn invitation_with(&mut self, secret: &SecretHash) -> Result<Option<Invitation>, Fault>;
    fn pairing(&mut self, code: &SecretHash) -> Result<Option<Pairing>, Fault>;
    fn router(&mut self, id: &RouterId) -> Result<Option<Router>, Fault>;
    /// Somebody's own and those for everybody, oldest first, then by id.
    fn routers(&mut self, user: &UserId) -> Result<Vec<Router>, Fault>;
    fn service(&mut self, agent: &AgentId) -> Result<Option<Service>, Fault>;
    /// The newest note of a failed sign-in as this person, or under a name that nobody has.
    fn last_failed_sign_in(&mut self, user: Option<&UserId>) -> Result<Option<AuditRecord>, Fault>;
    fn settings(&mut self) -> Result<HubSettings, Fault>;
    fn second_factor(&mut self, user: &UserId) -> Result<Option<SecondFactor>, Fault>;
    /// Whether it was given to this person and not used since.
    fn has_backup_code(&mut self, user: &UserId, code: &SecretHash) -> Result<bool, Fault>;
    fn room(&mut self, id: &RoomId) -> Result<Option<Room>, Fault>;
    fn member(&mut self, room: &RoomId, member: &MemberId) -> Result<Option<Member>, Fault>;
    /// In the order in which they joined.
    fn members(&mut self, room: &RoomId, limit: usize, offset: usize) -> Result<Vec<Member>, Fault>;
    /// Every membership of somebody, by the time of joining, then by room.
    fn memberships(&mut self, member: &MemberId) -> Result<Vec<Member>, Fault>;
    fn message(&mut self, id: &MessageId) -> Result<Option<Arc<Message>>, Fault>;
    /// Whether something was said under an id, be it deleted since.
    fn was_said(&mut self, id: &MessageId) -> Result<bool, Fault>;
    /// What was said in a room from a place on, which is included; the oldest first.
    fn said_since(&mut self, room: &RoomId, from: Seq, limit: usize) -> Result<Vec<Arc<Message>>, Fault>;
    fn pin(&mut self, message: &MessageId) -> Result<Option<Pin>, Fault>;
    fn pin_count(&mut self, room: &RoomId) -> Result<usize, Fault>;
    fn bookmark(&mut self, user: &UserId, message: &MessageId) -> Result<Option<Bookmark>, Fault>;
    /// Of all there are, also in rooms that the person is no longer in.
    fn bookmark_count(&mut self, user: &UserId) -> Result<usize, Fault>;
    /// Of those that were not deleted.
    fn newest_message(&mut self, room: &RoomId) -> Result<Option<Seq>, Fault>;
    fn agent(&mut self, id: &AgentId) -> Result<Option<Agent>, Fault>;
    /// By id.
    fn agents_of(&mut self, owner: &UserId) -> Result<Vec<Agent>, Fault>;
    /// The agents among the members of a room, by id.
    fn agents_in(&mut self, room: &RoomId) -> Result<Vec<AgentId>, Fault>;
    /// The agents whose ids lie below this one, by id.
    fn agents_below(&mut self, id: &AgentId) -> Result<Vec<Agent>, Fault>;
    fn task(&mut self, id: &TaskId) -> Result<Option<Task>, Fault>;
    fn task_count(&mut self, room: &RoomId) -> Result<usize, Fault>;
    fn gateway(&mut self, id: &GatewayId) -> Result<Option<Gateway>, Fault>;
    /// Everybody's or one person's, by id.
    fn gateways(&mut self, owner: Option<&UserId>) -> Result<Vec<Gateway>, Fault>;
    /// In the order in which they were made.
    fn sessions(&mut self, agent: &AgentId) -> Result<Vec<Session>, Fault>;
    /// What a mailbox listens to, in the order in which it was added.
    fn subscriptions_of(&mut self, mailbox: &Mailbox) -> Result<Vec<Subscription>, Fault>;
    fn share_a_room(&mut self, one: &MemberId, other: &MemberId) -> Result<bool, Fault>;
    /// Sessions first, then agents, each by id: the order in which they were planned.
    fn deliveries(&mut self, message: &MessageId) -> Result<Vec<Delivery>, Fault>;
    /// What can be handed out, oldest first: pending, or leased until a time that has passed.
    fn pending(
        &mut self,
        mailbox: &Mailbox,
        now: Time,
        limit: usize,
    ) -> Result<Vec<(Arc<Message>, Delivery)>, Fault>;
    fn delivery(&mut self, mailbox: &Mailbox, message: &MessageId) -> Result<Option<Delivery>, Fault>;
    fn upload(&mut self, id: &UploadId) -> Result<Option<Upload>, Fault>;
    /// How many uploads of somebody wait for a message.
    fn uploads_waiting(&mut self, owner: &UserId) -> Result<usize, Fault>;
    /// Somebody's pictures of themselves, oldest first.
    fn avatars(&mut self, owner: &UserId) -> Result<Vec<Upload>, Fault>;
    /// Contents whose last upload was removed and that were not forgotten since, by digest.
    fn released(&mut self, limit: usize) -> Result<Vec<BlobDigest>, Fault>;
    fn approval(&mut self, id: &ApprovalId) -> Result<Option<Approval>, Fault>;
    /// What a gateway ever asked under a name, in the order in which it was asked.
    fn approvals_called(&mut self, gateway: &GatewayId, request: &str) -> Result<Vec<Approval>, Fault>;
    /// What waits for an answer, in the order in which it was asked.
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
    /// Of a realm, the newest first, then by id.
    fn missions(&mut self, mission_scope: &MissionScope, limit: usize) -> Result<Vec<Mission>, Fault>;
    /// The rooms that are about this folder, by id.
    fn rooms_about(&mut self, root: &str) -> Result<Vec<Room>, Fault>;
    /// How an agent is prompted in a realm when it is idle.
    fn idle(&mut self, mission_scope: &MissionScope, agent: &AgentId) -> Result<Option<IdlePrompt>, Fault>;
    fn run(&mut self, id: &RunId) -> Result<Option<Run>, Fault>;
    /// The turns that a message set off, in the order in which they were planned.
    fn runs_of(&mut self, message: &MessageId) -> Result<Vec<Run>, Fault>;
    /// The turn of an agent in a conversation, among those of it that ended lately; the newest if there are several.
    fn ended_turn(&mut self, agent: &AgentId, conversation: &ConversationId) -> Result<Option<Run>, Fault>;
    /// The turns that wait or run in a room, the oldest first.
    fn open_runs_in(&mut self, room: &RoomId) -> Result<Vec<Run>, Fault>;
    /// Whether a turn of this agent waits or runs, in whatever room.
    fn has_open_run(&mut self, agent: &AgentId) -> Result<bool, Fault>;
    /// What the turns of an agent in a room came to that were asked for since then and not refused.
    fn spent(&mut self, room: &RoomId, agent: &AgentId, since: Time) -> Result<BudgetUsage, Fault>;
    /// How often one agent got a turn in a room because another addressed it.
    fn asked(&mut self, room: &RoomId, by: &AgentId, agent: &AgentId, since: Time) -> Result<u64, Fault>;
    /// How many turns of an agent ended since then with something said.
    fn spoken(&mut self, agent: &AgentId, since: Time) -> Result<u64, Fault>;
    /// What a repeated key stood for the first time.
    fn first_use(&mut self, key: &IdempotencyKey) -> Result<Option<FirstRequest>, Fault>;
}

/// The writer's open transaction. Nothing is visible to readers, and nothing is durable, before
/// `commit` returns `Ok`; dropping it undoes everything.
pub trait Transaction: Lookup {
    fn apply(&mut self, plan: &Effects) -> Result<(), Fault>;
    fn commit(self: Box<Self>) -> Result<(), Fault>;
}

/// The one writer. After a fault of `Severity::Lasting` it refuses everything until it is opened anew.
pub trait Store: Send {
    fn begin(&mut self) -> Result<Box<dyn Transaction + '_>, Fault>;
    fn head(&mut self) -> Result<Head, Fault>;
    /// Everything the routing index is built from.
    fn subscriptions(&mut self) -> Result<(Vec<Agent>, Vec<Subscription>), Fault>;
    /// House-keeping between groups (checkpoints, trimming); `now` decides what is old. The log loses its
    /// beginning only, and never its newest event; so do the messages, where they are not kept for ever, a slice at
    /// a time, and not on the day after the clock leapt: it may have been set wrong. Says whether there is more to do.
    fn run_maintenance(&mut self, now: Time) -> Result<bool, Fault>;
    /// Takes at most so many of the oldest messages that are not there yet into the index for searches, and says
    /// up to where it reaches. What lies beyond is found as well, at the cost of reading it.
    fn index(&mut self, most: usize) -> Result<Seq, Fault> {
        let _ = most;
        Ok(self.head()?.seq)
    }
    /// The last thing asked of a store that never failed for good: leaves nothing behind that was only on its way.
    fn close(&mut self) -> Result<(), Fault> {
        Ok(())
    }
}

/// Where the log stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub epoch: Epoch,
    pub seq: Seq,
    /// The time of the newest event, so that times go on increasing after a restart.
    pub at: Time,
    /// Everything up to here has been trimmed from the log.
    pub trimmed_through: Seq,
}

/// A consistent view of the store beside the writer.
pub trait Snapshot: Lookup {
    fn head(&mut self) -> Result<Head, Fault>;
    /// Logged events after `after`, in order. What was deleted since comes as `Event::Faded`.
    fn tail(&mut self, after: Seq, limit: usize) -> Result<Vec<LoggedEvent>, Fault>;
    /// The events of one room after `after`, in order. What was deleted since may be left out.
    fn room_tail(&mut self, room: &RoomId, after: Seq, limit: usize) -> Result<Vec<LoggedEvent>, Fault>;
    /// A page of everyone, oldest first, and how many there are.
    fn users(&mut self, limit: usize, offset: usize) -> Result<(Vec<User>, usize), Fault>;
    /// People whose name or display name contains `text`, without regard to ASCII case, by name and
    /// without `except`.
    fn search_users(&mut self, text: &str, except: &UserId, limit: usize) -> Result<Vec<User>, Fault>;
    /// Those that have not run out, oldest first.
    fn sign_ins(&mut self, user: &UserId, now: Time) -> Result<Vec<SignIn>, Fault>;
    /// Oldest first.
    fn keys(&mut self, owner: Option<&UserId>) -> Result<Vec<ApiKey>, Fault>;
    /// Those that have not run out, oldest first.
    fn invitations(&mut self, now: Time) -> Result<Vec<Invitation>, Fault>;
    /// Every agent that answers from within the hub, oldest first, then by id.
    fn services(&mut self) -> Result<Vec<(Agent, Service)>, Fault>;
    fn audit(&mut self, page: &AuditFilter) -> Result<Vec<AuditRecord>, Fault>;
    /// The rooms that are about a folder, by id.
    fn rooms_with_root(&mut self) -> Result<Vec<Room>, Fault>;
    fn member_count(&mut self, room: &RoomId) -> Result<usize, Fault>;
    /// Only what lies beyond a place.
    fn history(
        &mut self,
        room: &RoomId,
        beyond: Seq,
        page: Page,
        limit: usize,
    ) -> Result<Vec<Arc<Message>>, Fault>;
    /// The newest message, and how many by others follow what the member has read; both beyond what they cleared.
    fn recent(&mut self, room: &RoomId, member: &Member) -> Result<Option<Recent>, Fault>;
    /// What answers a message after a place, oldest first: everything in the thread that it began, or what
    /// answers it directly if it is a reply itself.
    fn answers(&mut self, to: &Message, after: Seq, limit: usize) -> Result<Vec<Arc<Message>>, Fault>;
    fn answer_count(&mut self, to: &Message, after: Seq) -> Result<u64, Fault>;
    /// Of messages beyond a place, the newest pin first.
    fn pins(&mut self, room: &RoomId, beyond: Seq) -> Result<Vec<(Pin, Arc<Message>)>, Fault>;
    /// The newest first, of messages in rooms that the person is in and beyond what they cleared there.
    fn bookmarks(
        &mut self,
        user: &UserId,
        before: Option<Seq>,
        limit: usize,
    ) -> Result<Vec<(Bookmark, Arc<Message>)>, Fault>;
    /// Shows `look` what the hunt could find, newest first and each once, until it has enough: every message in
    /// the hunt's rooms, before its place, that has the words wanted and is of the kind asked for; others may be
    /// among them. `None` stands for something passed by on the way, which costs time too.
    fn candidates(&mut self, search_scope: &SearchScope<'_>, look: CandidateVisitor<'_>)
    -> Result<(), Fault>;
    /// Oldest first, then by id.
    fn tasks(&mut self, room: &RoomId) -> Result<Vec<Task>, Fault>;
    /// Those that a person made or was given, in rooms that they are in, newest first, then by id.
    fn tasks_of(&mut self, user: &UserId, limit: usize, offset: usize) -> Result<Vec<Task>, Fault>;
    /// The latest edit first.
    fn revisions(&mut self, message: &MessageId, limit: usize) -> Result<Vec<Revision>, Fault>;
    /// The agents of others that share a room with this person, or are shared with them, by id.
    fn agents_near(&mut self, user: &UserId) -> Result<Vec<Agent>, Fault>;
    /// The agents of others that are shared with this person, by id.
    fn agents_shared(&mut self, user: &UserId, limit: usize, offset: usize) -> Result<Vec<Agent>, Fault>;
    /// Everything a mailbox ever got.
    fn mail(&mut self, mailbox: &Mailbox, page: MailPage) -> Result<Vec<(Arc<Message>, Delivery)>, Fault>;
    fn dead_letters(&mut self, page: MailPage) -> Result<Vec<DeadLetter>, Fault>;
    /// The turns that wait or run, the oldest first.
    fn open_runs(&mut self) -> Result<Vec<Run>, Fault>;
    /// The newest turns of a room, the newest first.
    fn runs_in(&mut self, room: &RoomId, limit: usize) -> Result<Vec<Run>, Fault>;
    /// The turns that were set off in a turn, the oldest first.
    fn runs_below(&mut self, run: &RunId) -> Result<Vec<Run>, Fault>;
    /// The turns of an agent: those that wait or run, the newest first, then the one that ended last and those before.
    fn latest_runs(&mut self, agent: &AgentId, limit: usize) -> Result<Vec<Run>, Fault>;
    /// The plans of agents in a room, by agent.
    fn plans(&mut self, room: &RoomId) -> Result<Vec<CurrentPlan>, Fault>;
    /// Those that are on, the oldest first, then by id.
    fn missions_on(&mut self) -> Result<Vec<Mission>, Fault>;
    /// What is always allowed in a room, by agent, then by tool.
    fn approval_rules(&mut self, room: &RoomId) -> Result<Vec<ApprovalRule>, Fault>;
    /// Whether an upload has this content.
    fn refers_to(&mut self, digest: &BlobDigest) -> Result<bool, Fault>;
    /// Everyone who shares a room with this person, without them, by id.
    fn peers(&mut self, user: &UserId) -> Result<Vec<UserId>, Fault>;
}

pub type CandidateVisitor<'a> = &'a mut dyn FnMut(Seq, Option<&Message>) -> ControlFlow<()>;

pub trait Reader: Send + Sync {
    /// Runs `read` on one consistent snapshot. Blocks; call it off the async threads.
    fn with(&self, read: &mut dyn FnMut(&mut dyn Snapshot) -> Result<(), Fault>) -> Result<(), Fault>;
    /// What it takes up on disk, if anything.
    fn size(&self) -> StoreSize {
        StoreSize::default()
    }
}

/// Keeps the content of files under its digest, so that the same content is kept once. Everything blocks; call it
/// off the async threads.
pub trait BlobStore: Send + Sync {
    /// A place for a file that comes in. Dropped before it is kept, it leaves nothing behind.
    fn receive(&self) -> Result<Box<dyn BlobUpload>, Fault>;
    /// `None` when there is no such content.
    fn open(&self, digest: &BlobDigest) -> Result<Option<Box<dyn Content>>, Fault>;
    /// The contents whose digest begins with this byte.
    fn list(&self, first: u8) -> Result<Vec<BlobDigest>, Fault>;
    /// Removes a content unless it is needed, and says whether it is gone. Nobody can keep the same content between
    /// the question and the removal, and what somebody is about to refer to is needed without asking.
    fn remove_unless(
        &self,
        digest: &BlobDigest,
        needed: &mut dyn FnMut() -> Result<bool, Fault>,
    ) -> Result<bool, Fault>;
}

pub trait BlobUpload: Send {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Fault>;
    /// When it returns, the content will be there after a power cut too.
    fn keep(self: Box<Self>) -> Result<StoredBlob, Fault>;
}

pub trait Content: Read + Seek + Send {}

impl<T: Read + Seek + Send> Content for T {}

/// A content that is kept. It is not removed while this is there: drop it when the store refers to it.
pub struct StoredBlob {
    pub digest: BlobDigest,
    pub size: u64,
    pub hold: Box<dyn Send>,
}

/// Carries the news. It may lose, repeat or reorder; the follower reads the store to fill holes.
pub trait Bus: Send + Sync {
    fn publish(&self, news: Arc<[LoggedEvent]>);
    /// Waits for the next batch, or gives `None` when nothing came for a while.
    fn next(&self) -> BusPoll;
}

pub enum BusPoll {
    Batch(Arc<[LoggedEvent]>),
    TimedOut,
    Closed,
}

/// Decides whether an agent should answer what was said to nobody by name. May be slow, and may fail: then it answers.
pub trait Triage: Send + Sync {
    fn should_answer(&self, case: TriageCase) -> TriageFuture;
}

pub type TriageFuture = std::pin::Pin<Box<dyn Future<Output = Result<bool, Fault>> + Send>>;

/// Who could answer what, and where.
#[derive(Debug, Clone)]
pub struct TriageCase {
    pub agent: Agent,
    /// All who could answer it, this one among them, by id: whoever decides can decide for all at once.
    pub candidates: Vec<Agent>,
    pub message: Arc<Message>,
    pub room: Room,
    /// Who decides in this room, if it has its own.
    pub router: Option<Router>,
}

pub trait Clock: Send + Sync {
    fn now(&self) -> Time;
}

/// Makes ids that cannot be guessed.
pub trait IdGenerator: Send + Sync {
    fn next(&self) -> String;
}

/// Whose questions are meant.
#[derive(Debug, Clone, Copy)]
pub enum OpenApprovalsOf<'a> {
    Everybodys,
    Room(&'a RoomId),
    Run(&'a RunId),
    Agent(&'a AgentId),
}

/// What turns came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BudgetUsage {
    pub turns: u64,
    pub tokens: u64,
}

/// A key that stands for the same command however often it is given.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IdempotencyKey {
    pub kind: IdempotencyKind,
    /// The sender or the source.
    pub owner: Box<str>,
    pub key: Box<str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IdempotencyKind {
    ClientMessage = 1,
    External = 2,
    /// What an agent said after its turn was given up.
    Late = 3,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstRequest {
    /// Of the whole body, to tell a retry from another message under the same key.
    pub digest: [u8; 16],
    pub message: MessageId,
    pub seq: Seq,
}
