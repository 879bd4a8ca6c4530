//! The writer's cache of rooms, memberships, mentionable names, agents, accounts, sign-ins and keys.
//!
//! Owns: an entry always equals the row in the writer's open transaction. Only the writer changes the store,
//! so an entry stays valid until `apply` gets a change that concerns it. `apply` names every aggregate, and
//! every change of the cached ones: a new change does not compile until it is listed there. The writer clears
//! the cache when a batch is rolled back and when the store deletes old rows. Debug builds compare it with the
//! store before each commit.
//!
//! Absence is never cached: guessed ids would fill the cache. Each kind is bounded, and a full kind is cleared.

use crate::Fault;
use crate::changes::{AccountChange, AgentChange, Change, CredentialChange, ModelChange, RoomChange};
use crate::ports::Lookup;
use foldhash::{HashMap, HashMapExt};
use parlor_model::mention::Mentionable;
use parlor_model::{
    Agent, AgentId, ApiKey, KeyId, Member, MemberId, Room, RoomId, SignIn, SignInId, User, UserId,
};
use std::hash::Hash;
use std::sync::Arc;

/// Maximum number of entries of each kind that one verification compares, so that debug builds stay usable
/// with many entries.
const VERIFIED_ENTRIES: usize = 64;

pub struct Cache {
    users: Entries<UserId, User>,
    sign_ins: Entries<SignInId, SignIn>,
    keys: Entries<KeyId, ApiKey>,
    agents: Entries<AgentId, Agent>,
    rooms: HashMap<RoomId, CachedRoom>,
    /// Number of entries added to `rooms` since it was last cleared: rooms, members, agents and names.
    room_entries: usize,
    capacity: usize,
    verifications: usize,
}

/// Everything that is cached about one room.
#[derive(Default)]
struct CachedRoom {
    room: Option<Arc<Room>>,
    members: HashMap<MemberId, Arc<Member>>,
    agents: Option<Arc<[AgentId]>>,
    names: Option<Arc<[Mentionable]>>,
}

impl Cache {
    /// `capacity` is the maximum number of entries of each kind; with 0, nothing is cached.
    pub fn new(capacity: usize) -> Self {
        Self {
            users: Entries::new(capacity),
            sign_ins: Entries::new(capacity),
            keys: Entries::new(capacity),
            agents: Entries::new(capacity),
            rooms: HashMap::new(),
            room_entries: 0,
            capacity,
            verifications: 0,
        }
    }

    pub fn clear(&mut self) {
        *self = Self::new(self.capacity);
    }

    /// Removes the entries that a change makes invalid. Must be called for every change that was applied to
    /// the transaction.
    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::Account(change) => self.apply_to_accounts(change),
            Change::Credential(change) => self.apply_to_credentials(change),
            Change::Model(ModelChange::RemoveRouter(router)) => {
                for cached in self.rooms.values_mut() {
                    cached.room.take_if(|room| room.router.as_ref() == Some(router));
                }
            }
            Change::Room(change) => self.apply_to_rooms(change),
            Change::Agent(change) => self.apply_to_agents(change),
            Change::Model(ModelChange::PutRouter(_) | ModelChange::PutService(_))
            | Change::Settings(_)
            | Change::Audit(_)
            | Change::Message(_)
            | Change::Annotation(_)
            | Change::Upload(_)
            | Change::Mail(_)
            | Change::Run(_)
            | Change::Conversation(_)
            | Change::Approval(_)
            | Change::Mission(_)
            | Change::Task(_)
            | Change::Turn(_) => {}
        }
    }

    fn apply_to_accounts(&mut self, change: &AccountChange) {
        match change {
            AccountChange::PutUser(user) => {
                self.users.remove(&user.id);
                self.change_handle(&MemberId::User(user.id.clone()), &user.username);
            }
            // Also removes sign-ins, keys, agents and memberships. Rare, and only site admins do it.
            AccountChange::RemoveUser(_) => self.clear(),
            AccountChange::OfferSetup(_)
            | AccountChange::PutInvitation(..)
            | AccountChange::UseInvitation(_)
            | AccountChange::RemoveInvitation(_)
            | AccountChange::PutRoomInvitation(..)
            | AccountChange::RemoveRoomInvitation(_)
            | AccountChange::PutPairing(..)
            | AccountChange::RemovePairing(_) => {}
        }
    }

    fn apply_to_credentials(&mut self, change: &CredentialChange) {
        match change {
            CredentialChange::PutSignIn(sign_in, _) => self.sign_ins.remove(&sign_in.id),
            CredentialChange::EndSignIn(sign_in) => self.sign_ins.remove(sign_in),
            CredentialChange::EndSignInsOf(user) => self.sign_ins.retain(|sign_in| sign_in.user != *user),
            CredentialChange::PutKey(key, _) | CredentialChange::PutSigningKey(key, ..) => {
                self.keys.remove(&key.id);
            }
            CredentialChange::RemoveKey(key) => self.keys.remove(key),
            CredentialChange::RevokeTokens { .. }
            | CredentialChange::PutSecondFactor(_)
            | CredentialChange::PutBackupCodes(..)
            | CredentialChange::SpendBackupCode(..)
            | CredentialChange::RemoveSecondFactor(_) => {}
        }
    }

    fn apply_to_rooms(&mut self, change: &RoomChange) {
        match change {
            RoomChange::PutRoom(room) => {
                if let Some(cached) = self.rooms.get_mut(&room.id) {
                    cached.room = None;
                }
            }
            RoomChange::RemoveRoom(room) => drop(self.rooms.remove(room)),
            RoomChange::PutMember(member) => self.forget_member(&member.room, &member.member),
            RoomChange::RemoveMember(room, member) | RoomChange::RenameMember { room, member, .. } => {
                self.forget_member(room, member);
            }
            RoomChange::MarkRead { room, user, .. } => {
                if let Some(cached) = self.rooms.get_mut(room) {
                    cached.members.remove(&MemberId::User(user.clone()));
                }
            }
        }
    }

    fn apply_to_agents(&mut self, change: &AgentChange) {
        match change {
            AgentChange::PutAgent(agent) => {
                self.agents.remove(&agent.id);
                self.change_handle(&MemberId::Agent(agent.id.clone()), agent.id.as_str());
            }
            AgentChange::RemoveAgent(agent) | AgentChange::ReplaceAgent { old: agent, .. } => {
                self.agents.remove(agent);
                for cached in self.rooms.values_mut() {
                    cached.agents.take_if(|agents| agents.contains(agent));
                    cached.members.remove(&MemberId::Agent(agent.clone()));
                    cached.names.take_if(|names| names.iter().any(|name| name.member.agent() == Some(agent)));
                }
            }
            AgentChange::PutGateway(_) | AgentChange::RemoveGateway(_) => {}
        }
    }

    /// Removes the entries that contain another handle of this user or agent. Entries with the same handle stay:
    /// a failed sign-in changes a user too, and must not let anonymous callers empty the cache.
    fn change_handle(&mut self, member: &MemberId, handle: &str) {
        for cached in self.rooms.values_mut() {
            if cached.members.get(member).is_some_and(|own| *own.handle != *handle) {
                cached.members.remove(member);
            }
            let has_other = |named: &Mentionable| named.member == *member && *named.handle != *handle;
            cached.names.take_if(|names| names.iter().any(has_other));
        }
    }

    fn forget_member(&mut self, room: &RoomId, member: &MemberId) {
        let Some(cached) = self.rooms.get_mut(room) else { return };
        cached.names = None;
        cached.members.remove(member);
        if member.agent().is_some() {
            cached.agents = None;
        }
    }

    /// Compares entries with the store, all of them if there are few, and describes the first that differs.
    pub fn verify(&mut self, store: &mut dyn Lookup) -> Result<Option<String>, Fault> {
        self.verifications += 1;
        let turn = self.verifications;
        let stale = self.users.verify(turn, |id| store.user(id))?;
        let stale = stale.or(self.sign_ins.verify(turn, |id| store.sign_in(id))?);
        let stale = stale.or(self.keys.verify(turn, |id| store.key(id))?);
        let mut stale = stale.or(self.agents.verify(turn, |id| store.agent(id))?);
        for (id, cached) in window(&self.rooms, turn) {
            stale = stale.or(cached.verify(id, store)?);
        }
        Ok(stale)
    }

    pub(crate) fn user(&mut self, id: &UserId, store: &mut dyn Lookup) -> Result<Option<Arc<User>>, Fault> {
        self.users.get(id, || store.user(id))
    }

    pub(crate) fn sign_in(
        &mut self,
        id: &SignInId,
        store: &mut dyn Lookup,
    ) -> Result<Option<Arc<SignIn>>, Fault> {
        self.sign_ins.get(id, || store.sign_in(id))
    }

    pub(crate) fn key(&mut self, id: &KeyId, store: &mut dyn Lookup) -> Result<Option<Arc<ApiKey>>, Fault> {
        self.keys.get(id, || store.key(id))
    }

    pub(crate) fn agent(
        &mut self,
        id: &AgentId,
        store: &mut dyn Lookup,
    ) -> Result<Option<Arc<Agent>>, Fault> {
        self.agents.get(id, || store.agent(id))
    }

    pub(crate) fn room(&mut self, id: &RoomId, store: &mut dyn Lookup) -> Result<Option<Arc<Room>>, Fault> {
        if let Some(room) = self.rooms.get(id).and_then(|cached| cached.room.as_ref()) {
            return Ok(Some(room.clone()));
        }
        let Some(room) = store.room(id)?.map(Arc::new) else { return Ok(None) };
        self.remember(id, 1, |cached| cached.room = Some(room.clone()));
        Ok(Some(room))
    }

    pub(crate) fn member(
        &mut self,
        room: &RoomId,
        member: &MemberId,
        store: &mut dyn Lookup,
    ) -> Result<Option<Arc<Member>>, Fault> {
        if let Some(member) = self.rooms.get(room).and_then(|cached| cached.members.get(member)) {
            return Ok(Some(member.clone()));
        }
        let Some(found) = store.member(room, member)?.map(Arc::new) else { return Ok(None) };
        self.remember(room, 1, |cached| drop(cached.members.insert(member.clone(), found.clone())));
        Ok(Some(found))
    }

    pub(crate) fn agents_in(
        &mut self,
        room: &RoomId,
        store: &mut dyn Lookup,
    ) -> Result<Arc<[AgentId]>, Fault> {
        if let Some(agents) = self.rooms.get(room).and_then(|cached| cached.agents.as_ref()) {
            return Ok(agents.clone());
        }
        let agents: Arc<[AgentId]> = store.agents_in(room)?.into();
        self.remember(room, 1 + agents.len(), |cached| cached.agents = Some(agents.clone()));
        Ok(agents)
    }

    pub(crate) fn mentionable(
        &mut self,
        room: &RoomId,
        store: &mut dyn Lookup,
    ) -> Result<Arc<[Mentionable]>, Fault> {
        if let Some(names) = self.rooms.get(room).and_then(|cached| cached.names.as_ref()) {
            return Ok(names.clone());
        }
        let names = names_in(room, store)?;
        self.remember(room, 1 + names.len(), |cached| cached.names = Some(names.clone()));
        Ok(names)
    }

    /// Adds `entries` entries to a room, unless they alone exceed the capacity.
    fn remember(&mut self, room: &RoomId, entries: usize, add: impl FnOnce(&mut CachedRoom)) {
        if entries > self.capacity {
            return;
        }
        self.room_entries += entries;
        if self.room_entries > self.capacity {
            self.rooms.clear();
            self.room_entries = entries;
        }
        match self.rooms.get_mut(room) {
            Some(cached) => add(cached),
            None => add(self.rooms.entry(room.clone()).or_default()),
        }
    }
}

impl CachedRoom {
    fn verify(&self, id: &RoomId, store: &mut dyn Lookup) -> Result<Option<String>, Fault> {
        if let Some(room) = &self.room
            && store.room(id)?.as_ref() != Some(&**room)
        {
            return Ok(Some(format!("{room:?}")));
        }
        for (of, member) in self.members.iter().take(VERIFIED_ENTRIES) {
            if store.member(id, of)?.as_ref() != Some(&**member) {
                return Ok(Some(format!("{member:?}")));
            }
        }
        if let Some(agents) = &self.agents
            && store.agents_in(id)? != **agents
        {
            return Ok(Some(format!("the agents of room {id}: {agents:?}")));
        }
        if let Some(names) = &self.names
            && names_in(id, store)? != *names
        {
            return Ok(Some(format!("the names in room {id}: {names:?}")));
        }
        Ok(None)
    }
}

fn names_in(room: &RoomId, store: &mut dyn Lookup) -> Result<Arc<[Mentionable]>, Fault> {
    Ok(store.members(room, usize::MAX, 0)?.into_iter().map(Mentionable::from).collect())
}

/// Up to `VERIFIED_ENTRIES` entries of a map, others at each turn.
fn window<K, V>(map: &HashMap<K, V>, turn: usize) -> impl Iterator<Item = (&K, &V)> {
    let start = if map.len() <= VERIFIED_ENTRIES { 0 } else { turn * VERIFIED_ENTRIES % map.len() };
    map.iter().skip(start).take(VERIFIED_ENTRIES)
}

/// Cached rows of one table by id.
struct Entries<K, V> {
    by_id: HashMap<K, Arc<V>>,
    capacity: usize,
}

impl<K: Eq + Hash + Clone, V: PartialEq + std::fmt::Debug> Entries<K, V> {
    fn new(capacity: usize) -> Self {
        Self { by_id: HashMap::new(), capacity }
    }

    fn get(
        &mut self,
        id: &K,
        load: impl FnOnce() -> Result<Option<V>, Fault>,
    ) -> Result<Option<Arc<V>>, Fault> {
        if let Some(cached) = self.by_id.get(id) {
            return Ok(Some(cached.clone()));
        }
        let Some(found) = load()?.map(Arc::new) else { return Ok(None) };
        if self.by_id.len() >= self.capacity {
            self.by_id.clear();
        }
        if self.capacity > 0 {
            self.by_id.insert(id.clone(), found.clone());
        }
        Ok(Some(found))
    }

    fn remove(&mut self, id: &K) {
        self.by_id.remove(id);
    }

    fn retain(&mut self, mut stays: impl FnMut(&V) -> bool) {
        self.by_id.retain(|_, value| stays(value));
    }

    fn verify(
        &self,
        turn: usize,
        mut load: impl FnMut(&K) -> Result<Option<V>, Fault>,
    ) -> Result<Option<String>, Fault> {
        for (id, cached) in window(&self.by_id, turn) {
            if load(id)?.as_ref() != Some(&**cached) {
                return Ok(Some(format!("{cached:?}")));
            }
        }
        Ok(None)
    }
}
