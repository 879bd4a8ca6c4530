//! `ReadView`: what `permit` reads from, the store of the open transaction or snapshot behind a cache.
//!
//! Rooms, memberships, mentionable names, agents, accounts, sign-ins and keys are read through the cache; all
//! other reads go to `store`. Commands get a `WriterView`, which adds the routing index.

use crate::cache::Cache;
use crate::commands::mail::reach::RouteLookups;
use crate::permission::AuthContext;
use crate::permission::CallerContext;
use crate::ports::Lookup;
use crate::routing_index::RoutingIndex;
use crate::{Fault, Limits};
use parlor_model::mention::Mentionable;
use parlor_model::{
    Agent, AgentCredential, AgentId, Caller, Grant, Member, MemberId, Position, Principal, Room, RoomId,
    RunState, Scope, SiteRole, Time, User, UserId,
};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

pub struct ReadView<'a> {
    pub now: Time,
    /// Position of the newest event that the store contains. A query's view does not know it: its `Seq` is 0.
    pub head: Position,
    pub limits: &'a Limits,
    pub store: &'a mut dyn Lookup,
    pub(crate) cache: &'a mut Cache,
}

/// View of the writer: its open transaction, its cache and the routing index.
pub struct WriterView<'a> {
    pub(crate) read: ReadView<'a>,
    pub(crate) routes: &'a RoutingIndex,
    /// Lookups for routed messages.
    pub(crate) route_lookups: &'a mut RouteLookups,
}

impl<'a> Deref for WriterView<'a> {
    type Target = ReadView<'a>;

    fn deref(&self) -> &ReadView<'a> {
        &self.read
    }
}

impl<'a> DerefMut for WriterView<'a> {
    fn deref_mut(&mut self) -> &mut ReadView<'a> {
        &mut self.read
    }
}

impl<'a> ReadView<'a> {
    pub fn new(
        now: Time,
        head: Position,
        limits: &'a Limits,
        store: &'a mut dyn Lookup,
        cache: &'a mut Cache,
    ) -> Self {
        Self { now, head, limits, store, cache }
    }

    /// Adds the auth context to a caller. The account and the sign-in or API key must still exist: a valid
    /// token only proves that they once did.
    pub fn caller_context(&mut self, caller: &Caller) -> Result<CallerContext, Fault> {
        let narrowed = || caller.grant.iter().cloned().collect();
        let auth = match &caller.principal {
            Principal::Anonymous | Principal::Authenticator | Principal::Operator => None,
            Principal::Person { user, sign_in } => {
                let found = self.cache.sign_in(sign_in, self.store)?;
                match found.filter(|found| found.user == *user && found.expires_at > self.now) {
                    Some(_) => {
                        let grants = narrowed();
                        self.user(user)?.map(|user| AuthContext { user, scopes: None, grants })
                    }
                    None => None,
                }
            }
            Principal::Program { user, key } => {
                let found = self.cache.key(key, self.store)?;
                match found.filter(|found| found.owner == *user) {
                    Some(key) => {
                        let scopes = Some(key.scopes.clone());
                        let mut grants: Vec<_> = narrowed();
                        grants.extend(key.grant.as_ref().map(|grant| grant.places.clone()));
                        // A grant may cover places outside rooms, which are for site admins, so a key with a grant
                        // needs a site admin.
                        let is_valid = |user: &Arc<User>| key.grant.is_none() || user.role == SiteRole::Admin;
                        let owner = self.user(user)?.filter(is_valid);
                        owner.map(|user| AuthContext { user, scopes, grants })
                    }
                    None => None,
                }
            }
            Principal::Agent(credential) => self.agent_program(credential)?,
            Principal::Connector { user } => {
                let scopes = Some(vec![Scope::Read, Scope::Write, Scope::Agents]);
                let grants = narrowed();
                self.user(user)?.map(|user| AuthContext { user, scopes, grants })
            }
        };
        Ok(CallerContext { caller: caller.clone(), auth: auth.map(Arc::new) })
    }

    /// The auth context of a program with a token for an agent. The token is valid while the agent belongs to the
    /// owner, the run of the token is active, and the owner has not revoked it.
    fn agent_program(&mut self, credential: &AgentCredential) -> Result<Option<AuthContext>, Fault> {
        let AgentCredential { owner, agent, session, run, issued_at, expires_at } = credential;
        if *expires_at <= self.now {
            return Ok(None);
        }
        let user = self.user(owner)?.filter(|user| *issued_at > user.agent_tokens_valid_from);
        // An agent that was created again with the same id does not revive the tokens of its predecessor.
        let is_own = |agent: Arc<Agent>| agent.owner == *owner && agent.created_at <= *issued_at;
        let owned = self.agent(agent)?.is_some_and(is_own);
        let is_active = match run {
            Some(run) => {
                let run = self.store.run(run)?;
                run.is_some_and(|run| run.agent == *agent && run.state == RunState::Running)
            }
            None => true,
        };
        let grants = vec![Arc::new(Grant::of_agent(agent.clone(), session.clone()))];
        let user = user.filter(|_| owned && is_active);
        Ok(user.map(|user| AuthContext { user, scopes: Some(vec![Scope::Agents]), grants }))
    }

    pub fn user(&mut self, id: &UserId) -> Result<Option<Arc<User>>, Fault> {
        self.cache.user(id, self.store)
    }

    pub fn room(&mut self, id: &RoomId) -> Result<Option<Arc<Room>>, Fault> {
        self.cache.room(id, self.store)
    }

    /// The membership of a user in a room.
    pub fn member(&mut self, room: &RoomId, user: &UserId) -> Result<Option<Arc<Member>>, Fault> {
        self.membership(room, &MemberId::User(user.clone()))
    }

    /// The membership of a user or agent in a room.
    pub fn membership(&mut self, room: &RoomId, member: &MemberId) -> Result<Option<Arc<Member>>, Fault> {
        self.cache.member(room, member, self.store)
    }

    /// An agent of the room, with its name in the room; `None` if it is not a member. Not to be stored.
    pub fn agent_named_in(&mut self, room: &RoomId, id: &AgentId) -> Result<Option<Arc<Agent>>, Fault> {
        let Some(member) = self.membership(room, &MemberId::Agent(id.clone()))? else { return Ok(None) };
        let Some(agent) = self.agent(id)? else { return Ok(None) };
        if agent.name == member.name {
            return Ok(Some(agent));
        }
        Ok(Some(Arc::new(Agent { name: member.name.clone(), ..Agent::clone(&agent) })))
    }

    pub fn agent(&mut self, id: &AgentId) -> Result<Option<Arc<Agent>>, Fault> {
        self.cache.agent(id, self.store)
    }

    /// The agents among the members of an existing room, by id.
    pub fn agents_in(&mut self, room: &Room) -> Result<Arc<[AgentId]>, Fault> {
        self.cache.agents_in(&room.id, self.store)
    }

    /// All members of an existing room with the names that a text can mention them by, in the order in which
    /// they joined.
    pub fn mentionable(&mut self, room: &Room) -> Result<Arc<[Mentionable]>, Fault> {
        self.cache.mentionable(&room.id, self.store)
    }
}
