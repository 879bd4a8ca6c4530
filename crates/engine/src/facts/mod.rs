//! Facts: everything a decision reads, loaded inside the transaction that decides and commits the command.
//!
//! `load_for_command` and `load_for_query` select the lookups; the files of this folder hold them by topic.
//! Facts are data only: `authorise` and `decide` draw the conclusions.

mod agents;
mod lookup_cache;
mod mail;
mod missions;
mod people;
mod posts;
mod relays;
mod roots;
mod turns;
mod uploads;

pub use lookup_cache::LookupCache;

use crate::commands::messages::idempotency::IdempotencyCheck;
use crate::commands::runs::Candidate;
use crate::ports::{Lookup, OpenApprovalsOf};
use crate::routing_index::{Recipient, RoutingIndex};
use crate::{Fault, Limits};
use parlor_model::command::RoomChanges;
use parlor_model::{
    Agent, Approval, BlobDigest, Caller, Command, Delivery, Edit, Epoch, HubSettings, Invitation, Member,
    MemberId, Message, Mission, Pairing, Path, Query, Room, RoomId, Router, Run, Scope, SecretHash, Seq,
    Session, SiteRole, Subscription, Task, Time, Upload, User, UserId,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Maximum number of members listed in the event of a membership change.
pub const MAX_MEMBERS_IN_EVENT: usize = 100;

/// Everything that authorising and deciding one command, or answering one query, may read. Fields that the
/// command or query does not need stay empty.
#[derive(Debug, Clone)]
pub struct Facts {
    pub now: Time,
    pub epoch: Epoch,
    pub head: Seq,
    pub standing: Option<Arc<AuthContext>>,
    pub room: Option<Arc<Room>>,
    /// The caller's membership in `room`.
    pub membership: Option<Arc<Member>>,
    /// Membership of the user or agent that the command concerns.
    pub target: Option<Member>,
    pub members: Arc<[Member]>,
    /// Memberships that the command removes or reads, with their rooms.
    pub memberships: Vec<Membership>,
    /// User account that the command concerns.
    pub user: Option<User>,
    pub users: Vec<(MemberId, Option<NameAndHandle>)>,
    pub name_taken: bool,
    pub admins: u64,
    pub setup: Option<(SecretHash, Time)>,
    pub invitation: Option<Invitation>,
    pub pairing: Option<Pairing>,
    /// Whether the folder of the command exists and `project_roots` allows it.
    pub root_allowed: bool,
    /// Router that the command assigns to a room.
    pub router: Option<Router>,
    pub settings: HubSettings,
    pub message: Option<Arc<Message>>,
    pub agent: Option<Agent>,
    /// Rooms of the user or agent that the command changes.
    pub rooms: Vec<RoomId>,
    /// Whether the caller shares a room with the agent or, for queries about the agent, its owner has shared
    /// it with the caller.
    pub agent_visible: bool,
    pub task: Option<Task>,
    /// Agents that the command affects or counts: those of a user, of a gateway or of a room, or an agent
    /// with its descendants.
    pub agents: Vec<Agent>,
    pub subscriptions: Vec<Subscription>,
    pub sessions: Vec<Session>,
    pub deliveries: Vec<Delivery>,
    pub mail: Vec<(Arc<Message>, Delivery)>,
    pub recipients: Vec<Recipient>,
    /// Members that receive a copy of a relayed message without being addressed by it.
    pub observers: Vec<MemberId>,
    /// Number of patterns with `**` before the last segment that the caller's agents have in total.
    pub globstar_patterns: usize,
    /// Uploads named by the command, in that order, or the upload to read.
    pub uploads: Vec<Upload>,
    pub uploads_waiting: usize,
    pub avatars: Vec<Upload>,
    pub released: Vec<BlobDigest>,
    pub once: Option<IdempotencyCheck>,
    pub run: Option<Run>,
    /// Open approvals in the room, or those that are withdrawn with an ending run or a removed agent.
    pub approvals: Vec<Approval>,
    /// Newest mission of the mission scope.
    pub mission: Option<Mission>,
    /// Rooms in the mission scope.
    pub realm: Vec<Arc<Room>>,
    /// Agents that the message addresses and that may get a run.
    pub addressed: Vec<Candidate>,
    /// Number of replies of the sending agent in the last minute.
    pub replies_last_minute: u64,
}

/// Auth context: account and scopes of the caller, as stored now.
#[derive(Debug, Clone)]
pub struct AuthContext {
    pub user: Arc<User>,
    /// `None` for a user session, which has all scopes of the account.
    pub scopes: Option<Vec<Scope>>,
}

impl AuthContext {
    /// Whether the caller has a scope. An API key never exceeds the current role of its owner.
    pub fn has(&self, scope: Scope) -> bool {
        let given = self.scopes.as_ref().is_none_or(|scopes| scopes.iter().any(|given| given.covers(scope)));
        given && (self.user.role == SiteRole::Admin || !scope.is_for_admins())
    }

    pub fn is_site_admin(&self) -> bool {
        self.has(Scope::Admin)
    }
}

/// Display name of a user or agent, and the handle that mentions may use instead.
#[derive(Debug, Clone)]
pub struct NameAndHandle {
    pub name: Box<str>,
    pub handle: Box<str>,
}

#[derive(Debug, Clone)]
pub struct Membership {
    pub room: Room,
    pub member: Member,
    /// All members of the room; loaded only for commands that may remove members.
    pub everyone: Arc<[Member]>,
}

impl Facts {
    pub fn empty(now: Time, epoch: Epoch, head: Seq) -> Self {
        Self {
            now,
            epoch,
            head,
            standing: None,
            room: None,
            membership: None,
            target: None,
            members: Arc::new([]),
            memberships: Vec::new(),
            user: None,
            users: Vec::new(),
            name_taken: false,
            admins: 0,
            setup: None,
            invitation: None,
            pairing: None,
            root_allowed: false,
            router: None,
            settings: HubSettings::default(),
            message: None,
            agent: None,
            rooms: Vec::new(),
            agent_visible: false,
            task: None,
            agents: Vec::new(),
            subscriptions: Vec::new(),
            sessions: Vec::new(),
            deliveries: Vec::new(),
            mail: Vec::new(),
            recipients: Vec::new(),
            observers: Vec::new(),
            globstar_patterns: 0,
            uploads: Vec::new(),
            uploads_waiting: 0,
            avatars: Vec::new(),
            released: Vec::new(),
            once: None,
            run: None,
            approvals: Vec::new(),
            mission: None,
            realm: Vec::new(),
            addressed: Vec::new(),
            replies_last_minute: 0,
        }
    }

    /// Loads the facts for authorising and deciding `command`, except the auth context.
    pub fn load_for_command(
        &mut self,
        caller: &Caller,
        command: &Command,
        store: &mut (impl Lookup + ?Sized),
        routing_index: &RoutingIndex,
        lookup_cache: &mut LookupCache,
        limits: &Limits,
    ) -> Result<(), Fault> {
        match command {
            Command::NoteBackup { .. } | Command::AppendNoop => {}
            Command::OfferSetup { .. } => self.admins = store.admins()?,
            Command::SetUp { account, .. } => {
                self.admins = store.admins()?;
                self.setup = store.setup()?;
                self.name_taken = store.user_named(&account.username)?.is_some();
                self.about_welcome(store)?;
            }
            Command::CreateUser(account) => {
                self.admins = store.admins()?;
                self.name_taken = store.user_named(&account.username)?.is_some();
                self.about_welcome(store)?;
            }
            Command::ChangeUser { user, .. } => {
                self.user = store.user(user)?;
                self.rooms_of(&MemberId::User(user.clone()), store)?;
                self.admins = store.admins()?;
            }
            Command::RemoveUser { user } => {
                self.user = store.user(user)?;
                self.admins = store.admins()?;
                self.memberships_with_members(&MemberId::User(user.clone()), store)?;
                self.agents = store.agents_of(user)?;
                self.memberships_of_agents(store)?;
            }
            Command::ChangeProfile(changes) => {
                if let Some(user) = caller.user() {
                    self.rooms_of(&MemberId::User(user.clone()), store)?;
                }
                if let (false, Some(user)) = (changes.avatar_url.is_keep(), caller.user()) {
                    self.avatars = store.avatars(user)?;
                }
            }
            Command::ChangePassword { .. } => {}
            Command::CreateInvitation(_) | Command::ChangeSettings(_) => self.settings = store.settings()?,
            Command::OfferPairing { .. } => {}
            Command::Pair { code, .. } => {
                self.pairing = store.pairing(code)?;
                if let Some(pairing) = &self.pairing {
                    self.user = store.user(&pairing.user)?;
                }
            }
            Command::RevokeInvitation { invitation } => self.invitation = store.invitation(invitation)?,
            Command::Register { token, account } => {
                self.about_invitation(token, store)?;
                self.admins = store.admins()?;
                self.name_taken = store.user_named(&account.username)?.is_some();
                self.about_welcome(store)?;
            }
            Command::CreateRoom { members, changes } => {
                self.about_room_router(changes, store)?;
                for member in members {
                    let name = self.name_of(member, store)?;
                    self.users.push((member.clone(), name));
                }
            }
            Command::ChangeRoom { room, changes } => {
                self.about_room_router(changes, store)?;
                self.in_room(caller, room, store, lookup_cache)?;
            }
            Command::ChangeRoomPreferences { room, .. }
            | Command::Freeze { room }
            | Command::Thaw { room } => self.in_room(caller, room, store, lookup_cache)?,
            Command::SetProjectRoot { room, root, there } => {
                self.about_mission(caller, room, store, lookup_cache)?;
                self.root_allowed = root.as_deref().is_none_or(|root| *there && limits.allows_root(root));
            }
            Command::DeleteRoom { room } => {
                self.about_mission(caller, room, store, lookup_cache)?;
                self.everyone(room, store, lookup_cache)?;
                self.approvals = store.open_approvals(OpenApprovalsOf::Room(room))?;
            }
            Command::AddMember { room, member, .. } => {
                self.in_room(caller, room, store, lookup_cache)?;
                self.target = store.member(room, member)?;
                self.members = store.members(room, MAX_MEMBERS_IN_EVENT + 1, 0)?.into();
                let name = self.name_of(member, store)?;
                self.users.push((member.clone(), name));
                if let MemberId::Agent(agent) = member {
                    self.agent = store.agent(agent)?;
                }
            }
            Command::ChangeMember { room, member, .. } | Command::RemoveMember { room, member } => {
                self.in_room(caller, room, store, lookup_cache)?;
                self.target = store.member(room, member)?;
                self.members = store.members(room, MAX_MEMBERS_IN_EVENT + 1, 0)?.into();
                match member {
                    MemberId::Agent(agent) => self.agent = store.agent(agent)?,
                    MemberId::User(user) => self.agents = store.agents_of(user)?,
                }
                if !self.agents.is_empty() {
                    self.everyone(room, store, lookup_cache)?;
                }
            }
            Command::Upload(new) => self.about_upload(caller, new, store)?,
            Command::TakeUnreferencedBlobs { limit } => self.released = store.released(*limit)?,
            Command::Route(route) => {
                self.about_route(caller, route, store, routing_index, lookup_cache, limits)?
            }
            Command::Relay(relay) => {
                self.about_relay(caller, relay, store, routing_index, lookup_cache, limits)?
            }
            Command::Subscribe { mailbox, pattern } | Command::Unsubscribe { mailbox, pattern } => {
                self.agent = store.agent(&mailbox.agent)?;
                self.subscriptions = store.subscriptions_of(mailbox)?;
                self.sessions = store.sessions(&mailbox.agent)?;
                self.globstar_patterns =
                    caller.user().map(|user| routing_index.globstar_patterns_of(user)).unwrap_or_default();
                let path = Path::stored(pattern.as_str());
                if let Some(room) = path.strip_domain("room").and_then(|room| RoomId::parse(room).ok()) {
                    let member = MemberId::Agent(mailbox.agent.clone());
                    self.target = store.member(&room, &member)?;
                }
            }
            Command::Receive { mailbox, limit, lease } => {
                self.about_receive(mailbox, *limit, lease.is_some(), store)?;
            }
            Command::Acknowledge { mailbox, messages } => {
                self.agent = store.agent(&mailbox.agent)?;
                // A message that is named twice counts once.
                for message in messages.iter().collect::<BTreeSet<_>>() {
                    self.deliveries.extend(store.delivery(mailbox, message)?);
                }
            }
            Command::ClearDeadLetters => {}
        }
        Ok(())
    }

    /// Loads the facts for authorising and answering `query`, except the auth context.
    pub fn load_for_query(
        &mut self,
        caller: &Caller,
        query: &Query,
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<(), Fault> {
        let lookup_cache = &mut LookupCache::default();
        match query {
            Query::Room { room }
            | Query::Members { room, .. }
            | Query::Workspace { room }
            | Query::MayFollow { room } => self.in_room(caller, room, store, lookup_cache)?,
            Query::RoomsAt { root, room } => {
                if let Some(room) = room {
                    self.in_room(caller, room, store, lookup_cache)?;
                }
                self.about_root(caller, root, room.as_ref(), store)?;
            }
            Query::MayListen { agent } => self.agent = store.agent(agent)?,
            Query::RoomsWith { agent: id } => self.about_known_agent(caller, id, store)?,
            Query::Upload { id } => self.about_reading_upload(caller, id, store, lookup_cache)?,
            Query::MayRegister { token } => self.about_invitation(token, store)?,
            Query::Subscriptions { mailbox } | Query::Mail { mailbox, .. } => {
                self.agent = store.agent(&mailbox.agent)?;
            }
            Query::Me
            | Query::Users { .. }
            | Query::SearchUsers { .. }
            | Query::Invitations
            | Query::Settings
            | Query::Audit(_)
            | Query::Rooms
            | Query::ProjectRoots
            | Query::DeadLetters { .. }
            | Query::MayReadMetrics
            | Query::MaySeeLimits
            | Query::MayUpload => {}
        }
        Ok(())
    }

    fn about_room_router(
        &mut self,
        changes: &RoomChanges,
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<(), Fault> {
        if let Edit::Set(router) = &changes.router {
            self.router = store.router(router)?;
        }
        Ok(())
    }

    pub fn owner_of_agent(&self) -> Option<&UserId> {
        self.agent.as_ref().map(|agent| &agent.owner)
    }
}
