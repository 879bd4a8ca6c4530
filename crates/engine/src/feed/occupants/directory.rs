//! Facts about the users from whom members are derived: users who are online, and owners of agents that are online.
//!
//! Read from the store while any place has subscribers to its presence set, and kept up to date by the committed
//! events. Read facts are discarded if a relevant event was published since the read began.

use parlor_model::{Agent, AgentId, Event, Member, MemberChange, MemberId, RoomId, UserId};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

#[derive(Default)]
pub struct Directory {
    state: State,
    users: HashMap<UserId, UserFacts>,
    /// Owners of the agents in `users`.
    owners: HashMap<AgentId, UserId>,
    /// Users to read from the store.
    unread: HashSet<UserId>,
    /// Users whose facts are being read.
    reading: HashSet<UserId>,
    /// Increases with each change that a read in progress may have missed.
    revision: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    /// No place has subscribers, so the directory is empty.
    #[default]
    Unused,
    /// Facts about all users who are online are being read.
    Loading,
    Complete,
}

/// A user and their agents that are online.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UserFacts {
    pub username: Box<str>,
    pub rooms: BTreeSet<RoomId>,
    pub agents: BTreeMap<AgentId, AgentFacts>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentFacts {
    pub name: Box<str>,
    pub description: Box<str>,
    pub rooms: BTreeSet<RoomId>,
    /// Names in the rooms where the agent has another name.
    pub names: BTreeMap<RoomId, Box<str>>,
}

impl AgentFacts {
    pub fn name_in(&self, room: &RoomId) -> &str {
        self.names.get(room).unwrap_or(&self.name)
    }
}

/// Facts to read from the store.
pub struct ToRead {
    pub users: HashSet<UserId>,
    /// Whether the owners of all agents that are online are read as well.
    pub owners: bool,
    revision: u64,
}

impl Directory {
    pub fn is_used(&self) -> bool {
        self.state != State::Unused
    }

    /// Whether the facts about all users who are online have been read.
    pub fn is_complete(&self) -> bool {
        self.state == State::Complete
    }

    pub fn user(&self, user: &UserId) -> Option<&UserFacts> {
        self.users.get(user)
    }

    pub fn users(&self) -> impl Iterator<Item = &UserId> {
        self.users.keys()
    }

    /// Requests a read of the facts about all users who are online, unless the directory has them already. Returns
    /// whether a read is necessary.
    pub fn begin_use(&mut self) -> bool {
        let was_unused = !self.is_used();
        if was_unused {
            self.state = State::Loading;
        }
        was_unused
    }

    pub fn clear(&mut self) {
        *self = Self { revision: self.revision, ..Self::default() };
    }

    /// Requests a read of a user's facts. Returns whether a read is necessary.
    pub fn request(&mut self, user: &UserId) -> bool {
        let is_used = self.is_used();
        if is_used {
            self.unread.insert(user.clone());
            self.revision += u64::from(self.reading.contains(user));
        }
        is_used
    }

    /// Whether facts were requested that no read has installed.
    pub fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    /// Begins a read; `None` if all facts are known. `online` are the users who are online.
    pub fn begin_read<'a>(&mut self, online: impl Iterator<Item = &'a UserId>) -> Option<ToRead> {
        let owners = self.state != State::Complete;
        if owners {
            self.state = State::Loading;
            self.unread.extend(online.cloned());
        } else if self.unread.is_empty() {
            return None;
        }
        self.reading = self.unread.clone();
        Some(ToRead { users: self.unread.clone(), owners, revision: self.revision })
    }

    /// Whether facts that were read are current.
    pub fn is_current(&self, read: &ToRead) -> bool {
        self.is_used() && self.revision == read.revision
    }

    /// Ends a read whose facts are installed.
    pub fn end_read(&mut self, read: &ToRead) {
        self.unread.retain(|user| !read.users.contains(user));
        self.reading.clear();
        self.state = State::Complete;
    }

    /// Replaces the facts about a user. Returns the rooms that the user had before.
    pub fn set(&mut self, user: &UserId, facts: Option<UserFacts>) -> BTreeSet<RoomId> {
        let before = match &facts {
            Some(facts) => self.users.insert(user.clone(), facts.clone()),
            None => self.users.remove(user),
        };
        let before = before.unwrap_or_default();
        for agent in before.agents.keys() {
            self.owners.remove(agent);
        }
        for agent in facts.iter().flat_map(|facts| facts.agents.keys()) {
            self.owners.insert(agent.clone(), user.clone());
        }
        before.rooms
    }

    /// Returns the facts about the owner of an agent without that agent, which has gone offline.
    pub fn without_agent(&mut self, agent: &AgentId) -> Option<(UserId, UserFacts)> {
        self.revision += 1;
        let (owner, mut facts) = self.of_agent(agent)?;
        facts.agents.remove(agent);
        Some((owner, facts))
    }

    /// The users whose facts an event changes, with their new facts; `None` if the user no longer exists.
    pub fn changed_by(&mut self, event: &Event) -> Vec<(UserId, Option<UserFacts>)> {
        if !self.is_used() {
            return Vec::new();
        }
        let changed = match event {
            Event::MembersChanged { room, change, members } => self.membership(&room.id, change, members),
            Event::RoomRemoved { room, .. } => self.without_room(room),
            Event::UserChanged { user, .. } => self.renamed(&user.id, &user.username),
            Event::UserRemoved(user) => vec![(user.clone(), None)],
            Event::AgentChanged { agent, .. } => self.agent_changed(agent),
            Event::AgentRemoved { agent, .. } => {
                self.without_agent(agent).map(|(owner, facts)| (owner, Some(facts))).into_iter().collect()
            }
            _ => return Vec::new(),
        };
        self.revision += 1;
        changed
    }

    /// `members` are the members of the room, or none in a large room.
    fn membership(
        &mut self,
        room: &RoomId,
        change: &MemberChange,
        members: &[Member],
    ) -> Vec<(UserId, Option<UserFacts>)> {
        let (member, is_member) = match change {
            MemberChange::Added(member) => (member, true),
            MemberChange::Removed(member) => (member, false),
            MemberChange::Changed(member) if member.agent().is_some() => (member, true),
            MemberChange::Changed(_) => return Vec::new(),
        };
        let name = members.iter().find(|known| known.member == *member).map(|known| known.name.clone());
        if is_member
            && name.is_none()
            && let Some(owner) = member.agent().and_then(|agent| self.owners.get(agent)).cloned()
        {
            // The event does not contain the name in the room.
            self.request(&owner);
        }
        let set = |rooms: &mut BTreeSet<RoomId>| match is_member {
            true => rooms.insert(room.clone()),
            false => rooms.remove(room),
        };
        let changed = match member {
            MemberId::User(user) => self.users.get(user).map(|facts| {
                let mut facts = facts.clone();
                set(&mut facts.rooms);
                (user.clone(), Some(facts))
            }),
            MemberId::Agent(agent) => self.of_agent(agent).map(|(owner, mut facts)| {
                facts.agents.entry(agent.clone()).and_modify(|agent| {
                    set(&mut agent.rooms);
                    agent.names.remove(room);
                    if let Some(name) = name.filter(|name| is_member && *name != agent.name) {
                        agent.names.insert(room.clone(), name);
                    }
                });
                (owner, Some(facts))
            }),
        };
        changed.into_iter().collect()
    }

    fn without_room(&self, room: &RoomId) -> Vec<(UserId, Option<UserFacts>)> {
        let is_in = |facts: &UserFacts| {
            facts.rooms.contains(room) || facts.agents.values().any(|agent| agent.rooms.contains(room))
        };
        let members = self.users.iter().filter(|(_, facts)| is_in(facts));
        let without = |(user, facts): (&UserId, &UserFacts)| {
            let mut facts = facts.clone();
            facts.rooms.remove(room);
            for agent in facts.agents.values_mut() {
                agent.rooms.remove(room);
                agent.names.remove(room);
            }
            (user.clone(), Some(facts))
        };
        members.map(without).collect()
    }

    fn renamed(&self, user: &UserId, username: &str) -> Vec<(UserId, Option<UserFacts>)> {
        let facts = self.users.get(user).filter(|facts| &*facts.username != username);
        let renamed = facts.map(|facts| {
            let username = username.into();
            (user.clone(), Some(UserFacts { username, ..facts.clone() }))
        });
        renamed.into_iter().collect()
    }

    fn agent_changed(&self, agent: &Agent) -> Vec<(UserId, Option<UserFacts>)> {
        let changed = self.of_agent(&agent.id).map(|(owner, mut facts)| {
            if let Some(known) = facts.agents.get_mut(&agent.id) {
                (known.name, known.description) = (agent.name.clone(), agent.description.clone());
            }
            (owner, Some(facts))
        });
        changed.into_iter().collect()
    }

    fn of_agent(&self, agent: &AgentId) -> Option<(UserId, UserFacts)> {
        let owner = self.owners.get(agent)?;
        Some((owner.clone(), self.users.get(owner)?.clone()))
    }
}
