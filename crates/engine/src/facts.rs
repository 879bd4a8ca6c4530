//! What is true when a command is decided: looked up inside the transaction that will make it happen.

use crate::Fault;
use crate::digest::{digest, digest_of_post, digest_of_route, hex};
use crate::hub::fitting;
use crate::plan::MOST_ATTEMPTS;
use crate::ports::{FirstUse, Lookup, OnceKey, OnceKind};
use crate::routes::{Recipient, Routes};
use parlor_model::{
    Agent, AgentId, ApiKey, Caller, Command, Delivery, Epoch, Mailbox, Member, MemberId, Message, Path, Post,
    Principal, Query, RefreshToken, Room, RoomId, Route, Scope, SecretHash, Seq, Session, SignIn, SiteRole,
    Subscription, Time, User, UserId,
};
use std::collections::{BTreeSet, HashMap};
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
    pub message: Option<Arc<Message>>,
    pub reply: Option<Arc<Message>>,
    pub newest: Option<Seq>,
    pub agent: Option<Agent>,
    /// The agents that go along with what the command is about: a person's own, or those above and below an id.
    pub agents: Vec<Agent>,
    /// The agents above and below an id that is to be given.
    pub relatives: Vec<Agent>,
    pub subscriptions: Vec<Subscription>,
    pub sessions: Vec<Session>,
    pub deliveries: Vec<Delivery>,
    pub mail: Vec<(Arc<Message>, Delivery)>,
    pub recipients: Vec<Recipient>,
    pub once: Option<Once>,
}

/// Who the caller is, as the store has it now.
#[derive(Debug, Clone)]
pub struct Standing {
    pub user: User,
    /// `None` for a person, who may do all that the account may.
    pub scopes: Option<Vec<Scope>>,
}

impl Standing {
    pub fn has(&self, scope: Scope) -> bool {
        self.scopes.as_ref().is_none_or(|scopes| scopes.contains(&scope))
    }

    pub fn is_site_admin(&self) -> bool {
        self.user.role == SiteRole::Admin && self.has(Scope::Admin)
    }
}

/// What was already looked up within one open transaction. Nobody else can write meanwhile, so it stays true
/// until the transaction itself changes something other than messages; then it is emptied.
#[derive(Default)]
pub struct Memo {
    standings: HashMap<Caller, Option<Arc<Standing>>>,
    rooms: HashMap<RoomId, Option<Arc<Room>>>,
    memberships: HashMap<(RoomId, UserId), Option<Arc<Member>>>,
    members: HashMap<RoomId, Arc<[Member]>>,
    agents_in: HashMap<RoomId, Arc<[AgentId]>>,
    agents: HashMap<AgentId, Option<Arc<Agent>>>,
    acquaintances: HashMap<(UserId, AgentId), bool>,
}

impl Memo {
    fn agent(
        &mut self,
        id: &AgentId,
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<Option<Arc<Agent>>, Fault> {
        if let Some(known) = self.agents.get(id) {
            return Ok(known.clone());
        }
        let found = store.agent(id)?.map(Arc::new);
        self.agents.insert(id.clone(), found.clone());
        Ok(found)
    }

    /// An agent reaches those its owner may know of: the owner's own, and those in a common room. A source
    /// reaches whoever listens.
    fn may_reach(
        &mut self,
        sender: Option<&Agent>,
        target: &Agent,
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<bool, Fault> {
        let Some(sender) = sender else { return Ok(true) };
        if sender.owner == target.owner {
            return Ok(true);
        }
        let key = (sender.owner.clone(), target.id.clone());
        if let Some(known) = self.acquaintances.get(&key) {
            return Ok(*known);
        }
        let (owner, agent) = (MemberId::User(sender.owner.clone()), MemberId::Agent(target.id.clone()));
        let acquainted = store.share_a_room(&owner, &agent)?;
        self.acquaintances.insert(key, acquainted);
        Ok(acquainted)
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
            message: None,
            reply: None,
            newest: None,
            agent: None,
            agents: Vec::new(),
            relatives: Vec::new(),
            subscriptions: Vec::new(),
            sessions: Vec::new(),
            deliveries: Vec::new(),
            mail: Vec::new(),
            recipients: Vec::new(),
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
            Command::ChangeProfile { .. } | Command::ChangePassword { .. } => {}
            Command::SignIn(new) => self.user = store.user(&new.user)?,
            Command::SignInFailed { user, .. } => self.user = store.user(user)?,
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
            Command::CreateRoom { members, .. } => {
                for member in members {
                    let name = self.name_of(member, store)?;
                    self.users.push((member.clone(), name));
                }
            }
            Command::ChangeRoom { room, .. } => self.in_room(caller, room, store, memo)?,
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
            Command::Edit { message, .. } | Command::Delete { message } => {
                self.message = store.message(message)?;
                let room = self.message.as_ref().and_then(|message| message.place.room().cloned());
                if let Some(room) = room {
                    self.in_room(caller, &room, store, memo)?;
                    if matches!(command, Command::Edit { text, .. } if text.contains('@')) {
                        self.everyone(&room, store, memo)?;
                    }
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
            Command::CreateAgent { id, .. } => {
                self.agent = store.agent(id)?;
                if let Some(user) = caller.user() {
                    self.agents = store.agents_of(user)?;
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
                let path = Path::stored(pattern.as_str());
                if let Some(room) = path.below("room").and_then(|room| RoomId::parse(room).ok()) {
                    let member = MemberId::Agent(mailbox.agent.clone());
                    self.target = store.member(&room, &member)?;
                }
            }
            Command::Receive { mailbox, limit, lease } => {
                self.agent = store.agent(&mailbox.agent)?;
                self.mail = store.pending(mailbox, self.now, *limit)?;
                if lease.is_some() {
                    self.past_what_is_given_up(mailbox, *limit, store)?;
                }
                // What does not fit into one answer waits for the next.
                let fits = fitting(self.mail.iter().map(|(message, _)| message.length()));
                self.mail.truncate(fits);
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
            | Query::MayFollow { room } => self.in_room(caller, room, store, memo)?,
            Query::Revisions { message } => {
                self.message = store.message(message)?;
                let room = self.message.as_ref().and_then(|message| message.place.room().cloned());
                if let Some(room) = room {
                    self.in_room(caller, &room, store, memo)?;
                }
            }
            Query::MayListen { agent } | Query::Agent { id: agent } => self.agent = store.agent(agent)?,
            Query::Subscriptions { mailbox } | Query::Mail { mailbox, .. } => {
                self.agent = store.agent(&mailbox.agent)?;
            }
            Query::Me
            | Query::Users { .. }
            | Query::SearchUsers { .. }
            | Query::SignIns
            | Query::Keys
            | Query::Rooms
            | Query::Recent
            | Query::DeadLetters { .. }
            | Query::Agents => {}
        }
        Ok(())
    }

    /// The account, and the sign-in or key, must still be there: a token alone proves only the past.
    fn who(
        &mut self,
        caller: &Caller,
        store: &mut (impl Lookup + ?Sized),
        memo: &mut Memo,
    ) -> Result<(), Fault> {
        if let Some(known) = memo.standings.get(caller) {
            self.standing = known.clone();
            return Ok(());
        }
        let standing = match &caller.principal {
            Principal::Outsider | Principal::Operator => None,
            Principal::Person { user, sign_in } => match store.sign_in(sign_in)? {
                Some(found) if found.user == *user && found.expires_at > self.now => {
                    store.user(user)?.map(|user| Standing { user, scopes: None })
                }
                _ => None,
            },
            Principal::Program { user, key } => match store.key(key)? {
                Some(found) if found.owner == *user => {
                    store.user(user)?.map(|user| Standing { user, scopes: Some(found.scopes) })
                }
                _ => None,
            },
        };
        self.standing = standing.map(Arc::new);
        memo.standings.insert(caller.clone(), self.standing.clone());
        Ok(())
    }

    fn in_room(
        &mut self,
        caller: &Caller,
        room: &RoomId,
        store: &mut (impl Lookup + ?Sized),
        memo: &mut Memo,
    ) -> Result<(), Fault> {
        if let Some(known) = memo.rooms.get(room) {
            self.room = known.clone();
        } else {
            self.room = store.room(room)?.map(Arc::new);
            memo.rooms.insert(room.clone(), self.room.clone());
        }
        let (Some(_), Some(user)) = (&self.room, caller.user()) else { return Ok(()) };
        let key = (room.clone(), user.clone());
        if let Some(known) = memo.memberships.get(&key) {
            self.membership = known.clone();
        } else {
            self.membership = store.member(room, &MemberId::User(user.clone()))?.map(Arc::new);
            memo.memberships.insert(key, self.membership.clone());
        }
        Ok(())
    }

    fn about_post(
        &mut self,
        caller: &Caller,
        post: &Post,
        store: &mut (impl Lookup + ?Sized),
        routes: &Routes,
        memo: &mut Memo,
    ) -> Result<(), Fault> {
        self.in_room(caller, &post.room, store, memo)?;
        if let Some(reply) = &post.reply_to {
            self.reply = store.message(reply)?;
        }
        if !post.mentions.is_empty() || post.text.contains('@') {
            self.everyone(&post.room, store, memo)?;
        }
        self.room_recipients(&post.room, None, store, routes, memo)?;
        if let (Some(key), Some(user)) = (&post.client_message_id, caller.user()) {
            let key =
                OnceKey { kind: OnceKind::ClientMessage, owner: user.as_str().into(), key: key.clone() };
            self.only_once(key, digest_of_post(post), store)?;
        }
        Ok(())
    }

    fn about_route(
        &mut self,
        caller: &Caller,
        route: &Route,
        store: &mut (impl Lookup + ?Sized),
        routes: &Routes,
        memo: &mut Memo,
    ) -> Result<(), Fault> {
        if let Ok(from) = AgentId::parse(&route.from) {
            self.agent = memo.agent(&from, store)?.as_deref().cloned();
        }
        if self.agent.is_none() {
            self.user = match UserId::parse(&route.from) {
                Ok(id) => store.user(&id)?,
                Err(_) => None,
            };
            if self.user.is_none() {
                self.user = store.user_named(&route.from)?;
            }
        }
        if let (Some(id), Some(user)) = (&route.external_id, caller.user()) {
            // A source is what the caller says it is: one caller's claims must not shut out another's.
            let body = digest_of_route(route);
            // Several messages of one thread may share an id: only the same message under it is a retry.
            let key = hex(&digest(&[&route.source, id, &hex(&body)])).into();
            let key = OnceKey { kind: OnceKind::External, owner: user.as_str().into(), key };
            self.only_once(key, body, store)?;
        }
        if let Some(room) = route.path.below("room").and_then(|room| RoomId::parse(room).ok()) {
            self.in_room(caller, &room, store, memo)?;
            if let Some(agent) = &self.agent {
                self.target = store.member(&room, &MemberId::Agent(agent.id.clone()))?;
            }
            if self.room.is_some() && self.target.is_some() {
                if route.text.as_deref().is_some_and(|text| text.contains('@')) {
                    self.all_members(&room, store, memo)?;
                }
                let sender = self.agent.as_ref().map(|agent| agent.id.clone());
                self.room_recipients(&room, sender.as_ref(), store, routes, memo)?;
            }
            return Ok(());
        }
        let sender = self.agent.clone();
        let broadcast = sender.is_some() && route.path.has_wildcard();
        let addressed = match route.path.below("agent").filter(|_| !broadcast) {
            Some(id) => Some(self.addressed(id, sender.as_ref(), store, memo)?),
            None => None,
        };
        let found = if broadcast { routes.covered(&route.path) } else { routes.matching(&route.path) };
        for recipient in found {
            let Some(agent) = memo.agent(&recipient.mailbox.agent, store)? else { continue };
            let hears = match &addressed {
                // What is sent to an agent is heard by it, and by others of its owner who listen.
                Some(addressed) => addressed.as_ref().is_some_and(|addressed| addressed.owner == agent.owner),
                None => memo.may_reach(sender.as_ref(), &agent, store)?,
            };
            if hears {
                self.recipients.push(recipient);
            }
        }
        Ok(())
    }

    /// A page of nothing but mail that will be given up must not hide what waits behind it: whoever gets an
    /// empty answer takes the mailbox for empty.
    fn past_what_is_given_up(
        &mut self,
        mailbox: &Mailbox,
        limit: usize,
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<(), Fault> {
        let mut asked = limit;
        while asked > 0
            && self.mail.len() == asked
            && self.mail.iter().all(|(_, delivery)| delivery.attempts >= MOST_ATTEMPTS)
        {
            asked = asked.saturating_mul(2);
            self.mail = store.pending(mailbox, self.now, asked)?;
        }
        Ok(())
    }

    /// The agent that `agent/{id}` addresses, if the sender may know of it.
    fn addressed(
        &self,
        id: &str,
        sender: Option<&Agent>,
        store: &mut (impl Lookup + ?Sized),
        memo: &mut Memo,
    ) -> Result<Option<Arc<Agent>>, Fault> {
        let Ok(id) = AgentId::parse(id) else { return Ok(None) };
        let Some(agent) = memo.agent(&id, store)? else { return Ok(None) };
        Ok(memo.may_reach(sender, &agent, store)?.then_some(agent))
    }

    /// Everyone in a room that the caller is in: nobody else has it read for them.
    fn everyone(
        &mut self,
        room: &RoomId,
        store: &mut (impl Lookup + ?Sized),
        memo: &mut Memo,
    ) -> Result<(), Fault> {
        if self.membership.is_some() { self.all_members(room, store, memo) } else { Ok(()) }
    }

    fn all_members(
        &mut self,
        room: &RoomId,
        store: &mut (impl Lookup + ?Sized),
        memo: &mut Memo,
    ) -> Result<(), Fault> {
        if let Some(known) = memo.members.get(room) {
            self.members = known.clone();
            return Ok(());
        }
        self.members = store.members(room, usize::MAX, 0)?.into();
        memo.members.insert(room.clone(), self.members.clone());
        Ok(())
    }

    /// Agents that are members of the room and listen to its path. Asked in this order: anybody's agents may
    /// listen to every room there is, and must not make a message dearer in rooms they are not in.
    fn room_recipients(
        &mut self,
        room: &RoomId,
        sender: Option<&AgentId>,
        store: &mut (impl Lookup + ?Sized),
        routes: &Routes,
        memo: &mut Memo,
    ) -> Result<(), Fault> {
        if routes.is_empty() {
            return Ok(());
        }
        let agents = match memo.agents_in.get(room) {
            Some(known) => known.clone(),
            None => {
                let found: Arc<[AgentId]> = store.agents_in(room)?.into();
                memo.agents_in.insert(room.clone(), found.clone());
                found
            }
        };
        let path = Path::of_room(room);
        for agent in agents.iter().filter(|agent| sender != Some(*agent)) {
            self.recipients.extend(routes.of_agent(agent, &path));
        }
        Ok(())
    }

    fn only_once(
        &mut self,
        key: OnceKey,
        digest: [u8; 16],
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<(), Fault> {
        let first = store.first_use(&key)?;
        let (mut first_message, mut first_deliveries) = (None, Vec::new());
        if let Some(first) = &first {
            first_message = store.message(&first.message)?;
            first_deliveries = store.deliveries(&first.message)?;
        }
        self.once = Some(Once { key, digest, first, first_message, first_deliveries });
        Ok(())
    }

    fn name_of(&self, member: &MemberId, store: &mut (impl Lookup + ?Sized)) -> Result<Option<Names>, Fault> {
        Ok(match member {
            MemberId::User(user) => {
                store.user(user)?.map(|user| Names { name: user.display_name, handle: user.username })
            }
            MemberId::Agent(agent) => {
                store.agent(agent)?.map(|agent| Names { name: agent.name, handle: agent.id.as_str().into() })
            }
        })
    }

    fn memberships(&mut self, member: &MemberId, store: &mut (impl Lookup + ?Sized)) -> Result<(), Fault> {
        for member in store.memberships(member)? {
            if let Some(room) = store.room(&member.room)? {
                let newest = store.newest_message(&member.room)?;
                self.memberships.push(Membership { room, member, everyone: Arc::new([]), newest });
            }
        }
        Ok(())
    }

    fn whole_memberships(
        &mut self,
        member: &MemberId,
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<(), Fault> {
        let known = self.memberships.len();
        self.memberships(member, store)?;
        let (before, new) = self.memberships.split_at_mut(known);
        for membership in new {
            // Somebody's agents are often in the same rooms: each is read once.
            let same = before.iter().find(|other| other.room.id == membership.room.id);
            membership.everyone = match same {
                Some(other) => other.everyone.clone(),
                None => store.members(&membership.room.id, usize::MAX, 0)?.into(),
            };
        }
        Ok(())
    }

    pub fn owner_of_agent(&self) -> Option<&UserId> {
        self.agent.as_ref().map(|agent| &agent.owner)
    }
}
