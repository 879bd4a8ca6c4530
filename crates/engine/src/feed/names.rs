//! Names of users and agents, for protocols that add them to events that contain only ids. A projection of the log.

use super::Projection;
use crate::Fault;
use crate::ports::Lookup;
use parking_lot::RwLock;
use parlor_model::{Event, LoggedEvent, MemberChange, MemberId, RoomId};
use std::collections::HashMap;
use std::sync::Arc;

/// Number of users per read at the start of the hub.
const USERS_PAGE: usize = 500;

#[derive(Default)]
pub struct Names(RwLock<State>);

#[derive(Default)]
struct State {
    own: HashMap<MemberId, Arc<str>>,
    /// Names of members in rooms where they are not `own`. A member that joins a room with more members than an event
    /// lists is missing until the next start of the hub.
    in_rooms: HashMap<MemberId, HashMap<RoomId, Arc<str>>>,
}

impl Names {
    /// The display name of a user or the name of an agent; `None` if it was removed.
    pub fn of(&self, member: &MemberId) -> Option<Arc<str>> {
        self.0.read().own.get(member).cloned()
    }

    /// The name of a member in a room. The own name if it is not a member; `None` if it was removed.
    pub fn in_room(&self, room: &RoomId, member: &MemberId) -> Option<Arc<str>> {
        let state = self.0.read();
        let distinguished = state.in_rooms.get(member).and_then(|rooms| rooms.get(room));
        distinguished.or_else(|| state.own.get(member)).cloned()
    }

    pub(crate) fn load(&self, store: &mut (impl Lookup + ?Sized)) -> Result<(), Fault> {
        let mut offset = 0;
        loop {
            let (users, _) = store.users(USERS_PAGE, offset)?;
            let count = users.len();
            for user in users {
                for agent in store.agents_of(&user.id)? {
                    self.put(MemberId::Agent(agent.id), &agent.name);
                }
                self.put(MemberId::User(user.id), &user.display_name);
            }
            offset += count;
            if count < USERS_PAGE {
                break;
            }
        }
        for (room, member, name) in store.names_in_rooms()? {
            self.put_in_room(&room, &member, &name);
        }
        Ok(())
    }

    fn put(&self, member: MemberId, name: &str) {
        if self.of(&member).as_deref() != Some(name) {
            self.0.write().own.insert(member, name.into());
        }
    }

    fn put_in_room(&self, room: &RoomId, member: &MemberId, name: &str) {
        if self.in_room(room, member).as_deref() == Some(name) {
            return;
        }
        let mut state = self.0.write();
        if state.own.get(member).is_some_and(|own| **own == *name) {
            state.leave(room, member);
        } else {
            state.in_rooms.entry(member.clone()).or_default().insert(room.clone(), name.into());
        }
    }

    fn remove(&self, member: &MemberId) {
        let mut state = self.0.write();
        state.own.remove(member);
        state.in_rooms.remove(member);
    }
}

impl State {
    fn leave(&mut self, room: &RoomId, member: &MemberId) {
        let Some(rooms) = self.in_rooms.get_mut(member) else { return };
        rooms.remove(room);
        if rooms.is_empty() {
            self.in_rooms.remove(member);
        }
    }
}

impl Projection for Names {
    fn apply(&self, batch: &[LoggedEvent]) {
        for logged_event in batch {
            match &logged_event.event {
                Event::MembersChanged { room, change, members } => {
                    if let MemberChange::Removed(member) = change {
                        self.0.write().leave(&room.id, member);
                    }
                    members
                        .iter()
                        .for_each(|member| self.put_in_room(&room.id, &member.member, &member.name));
                }
                Event::RoomRemoved { room, .. } => {
                    let mut state = self.0.write();
                    let members: Vec<MemberId> = state.in_rooms.keys().cloned().collect();
                    members.iter().for_each(|member| state.leave(room, member));
                }
                Event::UserChanged { user, .. } => {
                    self.put(MemberId::User(user.id.clone()), &user.display_name)
                }
                Event::AgentChanged { agent, .. } => self.put(MemberId::Agent(agent.id.clone()), &agent.name),
                Event::UserRemoved(user) => self.remove(&MemberId::User(user.clone())),
                Event::AgentRemoved { agent, .. } => self.remove(&MemberId::Agent(agent.clone())),
                _ => {}
            }
        }
    }
}
