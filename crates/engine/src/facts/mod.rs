//! What is true when a command is decided: looked up inside the transaction that will make it happen.

mod mail;
mod memo;
mod people;
mod posts;
mod uploads;

pub use memo::Memo;

use crate::Fault;
use crate::digest::digest_of_forward;
use crate::ports::{FirstUse, Lookup, OnceKey};
use crate::routes::{Recipient, Routes};
use parlor_model::audit::Noted;
use parlor_model::{
    Agent, ApiKey, BlobDigest, Bookmark, Caller, Command, Delivery, Epoch, HubSettings, Invitation, Mailbox,
    Member, MemberId, Message, Path, Pin, Query, RefreshToken, Room, RoomId, Scope, SecondFactor,
    SecondProof, SecretHash, Seq, Session, SignIn, SiteRole, Subscription, Time, Upload, User, UserId,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// How many members a change of members is told with.
pub const MEMBERS_TOLD: usize = 100;

#[derive(Debug, Clone)]
pub struct Facts {
    pub now: Time,
    pub epoch: Epoch,
    pub head: Seq,
    pub standing: Option<Arc<Standing>>,
    pub room: Option<Arc<Room>>,
    /// The caller's own membership in that room.
    pub membership: Option<Arc<Member>>,
    /// The membership of whom the command is about.
    pub target: Option<Member>,
    pub members: Arc<[Member]>,
    /// The rooms the command touches with the person it removes, or the memberships it reads through.
    pub memberships: Vec<Membership>,
    /// The account the command is about.
    pub user: Option<User>,
    pub users: Vec<(MemberId, Option<Names>)>,
    pub name_taken: bool,
    pub admins: u64,
    pub sign_in: Option<SignIn>,
    pub refresh: Option<RefreshToken>,
    pub key: Option<ApiKey>,
    pub setup: Option<(SecretHash, Time)>,
    pub invitation: Option<Invitation>,
    pub settings: HubSettings,
    /// The last time that a sign-in failed so.
    pub failed_before: Option<Noted>,
    pub second_factor: Option<SecondFactor>,
    /// Whether the backup code shown is one.
    pub backup_code: bool,
    pub message: Option<Arc<Message>>,
    pub reply: Option<Arc<Message>>,
    /// The caller's own membership where that message is, when `room` is another.
    pub source: Option<Arc<Member>>,
    pub batch: Vec<Found>,
    pub pin: Option<Pin>,
    /// How many the room has.
    pub pins: usize,
    pub bookmark: Option<Bookmark>,
    /// How many the caller has.
    pub bookmarks: usize,
    pub newest: Option<Seq>,
    pub agent: Option<Agent>,
    /// Whether the caller shares a room with that agent.
    pub acquainted: bool,
    /// The agents that go along with what the command is about: a person's own, or those above and below an id.
    pub agents: Vec<Agent>,
    /// The agents above and below an id that is to be given.
    pub relatives: Vec<Agent>,
    pub subscriptions: Vec<Subscription>,
    pub sessions: Vec<Session>,
    pub deliveries: Vec<Delivery>,
    pub mail: Vec<(Arc<Message>, Delivery)>,
    pub recipients: Vec<Recipient>,
    /// How many patterns with a gap the caller's agents have together.
    pub gaps: usize,
    /// The uploads that the command names, in that order, or the one that is asked for.
    pub uploads: Vec<Upload>,
    pub uploads_waiting: usize,
    pub avatars: Vec<Upload>,
    pub released: Vec<BlobDigest>,
    pub once: Option<Once>,
}

/// One of several messages, and the caller's own membership where it is.
pub type Found = (Option<Arc<Message>>, Option<Arc<Member>>);

/// Who the caller is, as the store has it now.
#[derive(Debug, Clone)]
pub struct Standing {
    pub user: User,
    /// `None` for a person, who may do all that the account may.
    pub scopes: Option<Vec<Scope>>,
}

impl Standing {
    /// A key gives no more than its owner has by now.
    pub fn has(&self, scope: Scope) -> bool {
        let given = self.scopes.as_ref().is_none_or(|scopes| scopes.contains(&scope));
        given && (self.user.role == SiteRole::Admin || !scope.is_for_admins())
    }

    pub fn is_site_admin(&self) -> bool {
        self.has(Scope::Admin)
    }
}

/// How somebody is shown, and what else they can be mentioned by.
#[derive(Debug, Clone)]
pub struct Names {
    pub name: Box<str>,
    pub handle: Box<str>,
}

#[derive(Debug, Clone)]
pub struct Membership {
    pub room: Room,
    pub member: Member,
    /// Everyone in the room, where the command may take somebody out of it.
    pub everyone: Arc<[Member]>,
    pub newest: Option<Seq>,
}

/// A key given to make a retry harmless, the body's digest, and its first use if there was one.
#[derive(Debug, Clone)]
pub struct Once {
    pub key: OnceKey,
    pub digest: [u8; 16],
    pub first: Option<FirstUse>,
    pub first_message: Option<Arc<Message>>,
    pub first_deliveries: Vec<Delivery>,
}

impl Facts {
    pub fn blank(now: Time, epoch: Epoch, head: Seq) -> Self {
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
            sign_in: None,
            refresh: None,
            key: None,
            setup: None,
            invitation: None,
            settings: HubSettings::default(),
            failed_before: None,
            second_factor: None,
            backup_code: false,
            message: None,
            reply: None,
            source: None,
            batch: Vec::new(),
            pin: None,
            pins: 0,
            bookmark: None,
            bookmarks: 0,
            newest: None,
            agent: None,
            acquainted: false,
            agents: Vec::new(),
            relatives: Vec::new(),
            subscriptions: Vec::new(),
            sessions: Vec::new(),
            deliveries: Vec::new(),
            mail: Vec::new(),
            recipients: Vec::new(),
            gaps: 0,
            uploads: Vec::new(),
            uploads_waiting: 0,
            avatars: Vec::new(),
            released: Vec::new(),
            once: None,
        }
    }

    /// Looks up what the decision about `command` rests on.
    pub fn about(
        &mut self,
        caller: &Caller,
        command: &Command,
        store: &mut (impl Lookup + ?Sized),
        routes: &Routes,
        memo: &mut Memo,
    ) -> Result<(), Fault> {
        self.who(caller, store, memo)?;
        match command {
            Command::NoteBackup { .. } => {}
            Command::OfferSetup { .. } => self.admins = store.admins()?,
            Command::SetUp { account, .. } => {
                self.admins = store.admins()?;
                self.setup = store.setup()?;
                self.name_taken = store.user_named(&account.username)?.is_some();
            }
            Command::CreateUser(account) => self.name_taken = store.user_named(&account.username)?.is_some(),
            Command::ChangeUser { user, .. } => {
                self.user = store.user(user)?;
                self.admins = store.admins()?;
            }
            Command::RemoveUser { user } => {
                self.user = store.user(user)?;
                self.admins = store.admins()?;
                self.whole_memberships(&MemberId::User(user.clone()), store)?;
                self.agents = store.agents_of(user)?;
                for agent in self.agents.clone() {
                    self.whole_memberships(&MemberId::Agent(agent.id), store)?;
                }
            }
            Command::ChangeProfile(changes) => {
                if let (Some(_), Some(user)) = (&changes.avatar_url, caller.user()) {
                    self.avatars = store.avatars(user)?;
                }
            }
            Command::ChangePassword { .. } => {}
            Command::SignIn(new) => {
                self.user = store.user(&new.user)?;
                self.second_factor = store.second_factor(&new.user)?;
                if let Some(SecondProof::Backup(code)) = &new.second {
                    self.backup_code = store.has_backup_code(&new.user, code)?;
                }
            }
            Command::OfferSecondFactor { .. } | Command::ConfirmSecondFactor { .. } => {
                if let Some(user) = caller.user() {
                    self.second_factor = store.second_factor(user)?;
                }
            }
            Command::DropSecondFactor { user, .. } => {
                self.user = store.user(user)?;
                self.second_factor = store.second_factor(user)?;
            }
            Command::SignInFailed { user, .. } => {
                if let Some(user) = user {
                    self.user = store.user(user)?;
                }
                self.failed_before = store.last_failed_sign_in(user.as_ref())?;
            }
            Command::Refresh { token, .. } => {
                self.refresh = store.refresh_token(token)?;
                if let Some(refresh) = &self.refresh {
                    self.sign_in = store.sign_in(&refresh.sign_in)?;
                }
                if let Some(sign_in) = &self.sign_in {
                    self.user = store.user(&sign_in.user)?;
                }
            }
            Command::EndSignIn { sign_in } => self.sign_in = store.sign_in(sign_in)?,
            Command::CreateKey { owner, .. } => {
                if let Some(owner) = owner {
                    self.user = store.user(owner)?;
                }
            }
            Command::RevokeKey { key } => self.key = store.key(key)?,
            Command::CreateInvitation(_) | Command::ChangeSettings(_) => self.settings = store.settings()?,
            Command::RevokeInvitation { invitation } => self.invitation = store.invitation(invitation)?,
            Command::Register { token, account } => {
                self.invited(token, store)?;
                self.name_taken = store.user_named(&account.username)?.is_some();
            }
            Command::CreateRoom { members, .. } => {
                for member in members {
                    let name = self.name_of(member, store)?;
                    self.users.push((member.clone(), name));
                }
            }
            Command::ChangeRoom { room, .. } | Command::Arrange { room, .. } => {
                self.in_room(caller, room, store, memo)?
            }
            Command::DeleteRoom { room } => {
                self.in_room(caller, room, store, memo)?;
                self.everyone(room, store, memo)?;
            }
            Command::AddMember { room, member, .. } => {
                self.in_room(caller, room, store, memo)?;
                self.target = store.member(room, member)?;
                self.members = store.members(room, MEMBERS_TOLD + 1, 0)?.into();
                let name = self.name_of(member, store)?;
                self.users.push((member.clone(), name));
                if let MemberId::Agent(agent) = member {
                    self.agent = store.agent(agent)?;
                }
            }
            Command::ChangeMember { room, member, .. } | Command::RemoveMember { room, member } => {
                self.in_room(caller, room, store, memo)?;
                self.target = store.member(room, member)?;
                self.members = store.members(room, MEMBERS_TOLD + 1, 0)?.into();
                match member {
                    MemberId::Agent(agent) => self.agent = store.agent(agent)?,
                    MemberId::User(user) => self.agents = store.agents_of(user)?,
                }
                if !self.agents.is_empty() {
                    self.everyone(room, store, memo)?;
                }
            }
            Command::Post(post) => self.about_post(caller, post, store, routes, memo)?,
            Command::Edit { message, text } => {
                let room = self.about_message(caller, message, store, memo)?;
                if let Some(room) = room.filter(|_| text.contains('@')) {
                    self.everyone(&room, store, memo)?;
                }
            }
            Command::Delete { message } | Command::React { message, .. } => {
                self.about_message(caller, message, store, memo)?;
            }
            Command::DeleteMany { messages } => self.about_batch(caller, messages, store, memo)?,
            Command::Forward { message, room, client_message_id } => {
                self.about_forward(caller, message, room, store, routes, memo)?;
                let digest = || digest_of_forward(message, room);
                self.by_client(caller, client_message_id.as_deref(), digest, store)?;
            }
            Command::Pin { message } | Command::Unpin { message } => {
                let room = self.about_message(caller, message, store, memo)?;
                self.pin = store.pin(message)?;
                self.pins = room.map(|room| store.pin_count(&room)).transpose()?.unwrap_or_default();
            }
            Command::Bookmark { message } | Command::RemoveBookmark { message } => {
                self.about_message(caller, message, store, memo)?;
                if let Some(user) = caller.user() {
                    self.bookmark = store.bookmark(user, message)?;
                    self.bookmarks = store.bookmark_count(user)?;
                }
            }
            Command::MarkRead { room } => {
                self.in_room(caller, room, store, memo)?;
                self.newest = store.newest_message(room)?;
            }
            Command::MarkAllRead => {
                if let Some(user) = caller.user() {
                    self.memberships(&MemberId::User(user.clone()), store)?;
                }
            }
            Command::Upload(new) => self.about_upload(caller, new, store)?,
            Command::TakeReleased { limit } => self.released = store.released(*limit)?,
            Command::CreateAgent { id, .. } => {
                self.agent = store.agent(id)?;
                if let Some(user) = caller.user() {
                    self.agents = store.agents_of(user)?;
                    self.gaps = routes.gaps_of(user);
                }
                if let Ok(id) = UserId::parse(id.as_str()) {
                    self.user = store.user(&id)?;
                }
                self.relatives = store.agents_below(id)?;
                for ancestor in id.ancestors() {
                    self.relatives.extend(store.agent(&ancestor)?);
                }
            }
            Command::Route(route) => self.about_route(caller, route, store, routes, memo)?,
            Command::ChangeAgent { id, .. } => {
                self.agent = store.agent(id)?;
                self.subscriptions = store.subscriptions_of(&Mailbox::of(id.clone()))?;
            }
            Command::RemoveAgent { id } => {
                self.agent = store.agent(id)?;
                self.agents = store.agents_below(id)?;
                self.agents.extend(self.agent.clone());
                for agent in self.agents.clone() {
                    self.whole_memberships(&MemberId::Agent(agent.id), store)?;
                }
            }
            Command::Subscribe { mailbox, pattern } | Command::Unsubscribe { mailbox, pattern } => {
                self.agent = store.agent(&mailbox.agent)?;
                self.subscriptions = store.subscriptions_of(mailbox)?;
                self.sessions = store.sessions(&mailbox.agent)?;
                self.gaps = caller.user().map(|user| routes.gaps_of(user)).unwrap_or_default();
                let path = Path::stored(pattern.as_str());
                if let Some(room) = path.below("room").and_then(|room| RoomId::parse(room).ok()) {
                    let member = MemberId::Agent(mailbox.agent.clone());
                    self.target = store.member(&room, &member)?;
                }
            }
            Command::Receive { mailbox, limit, lease } => {
                self.about_receive(mailbox, *limit, lease.is_some(), store)?;
            }
            Command::Acknowledge { mailbox, messages } => {
                self.agent = store.agent(&mailbox.agent)?;
                // One that is named twice is one.
                for message in messages.iter().collect::<BTreeSet<_>>() {
                    self.deliveries.extend(store.delivery(mailbox, message)?);
                }
            }
            Command::ClearDeadLetters => {}
        }
        Ok(())
    }

    /// Looks up what the decision about `query` rests on.
    pub fn about_query(
        &mut self,
        caller: &Caller,
        query: &Query,
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<(), Fault> {
        let memo = &mut Memo::default();
        self.who(caller, store, memo)?;
        match query {
            Query::Room { room }
            | Query::Members { room, .. }
            | Query::History { room, .. }
            | Query::Pins { room }
            | Query::MayFollow { room } => self.in_room(caller, room, store, memo)?,
            Query::Search(search) => {
                if let Some(room) = &search.room {
                    self.in_room(caller, room, store, memo)?;
                }
            }
            Query::Revisions { message } | Query::Thread { message, .. } | Query::ReplyCount { message } => {
                self.about_message(caller, message, store, memo)?;
            }
            Query::MayListen { agent } => self.agent = store.agent(agent)?,
            Query::Agent { id } => {
                self.agent = store.agent(id)?;
                if let (Some(user), Some(_)) = (caller.user(), &self.agent) {
                    let (person, agent) = (MemberId::User(user.clone()), MemberId::Agent(id.clone()));
                    self.acquainted = store.share_a_room(&person, &agent)?;
                }
            }
            Query::Upload { id } => self.about_reading_upload(caller, id, store, memo)?,
            Query::MayRegister { token } => self.invited(token, store)?,
            Query::Subscriptions { mailbox } | Query::Mail { mailbox, .. } => {
                self.agent = store.agent(&mailbox.agent)?;
            }
            Query::Me
            | Query::Users { .. }
            | Query::SearchUsers { .. }
            | Query::SignIns
            | Query::Keys
            | Query::Invitations
            | Query::Settings
            | Query::Audit(_)
            | Query::Rooms
            | Query::Recent
            | Query::Bookmarks { .. }
            | Query::DeadLetters { .. }
            | Query::MayMeasure
            | Query::MayUpload
            | Query::Agents => {}
        }
        Ok(())
    }

    pub fn owner_of_agent(&self) -> Option<&UserId> {
        self.agent.as_ref().map(|agent| &agent.owner)
    }
}
