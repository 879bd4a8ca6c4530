//! Names of users and agents, for protocols that add them to events that contain only ids. A projection of the log.

use super::Projection;
use crate::Fault;
use crate::ports::Lookup;
use parking_lot::RwLock;
use parlor_model::{Event, LoggedEvent, MemberId};
use std::collections::HashMap;
use std::sync::Arc;

/// Number of users per read at the start of the hub.
const USERS_PAGE: usize = 500;

#[derive(Default)]
pub struct Names(RwLock<HashMap<MemberId, Arc<str>>>);

impl Names {
    /// The display name of a user or the name of an agent; `None` if it was removed.
    pub fn of(&self, member: &MemberId) -> Option<Arc<str>> {
        self.0.read().get(member).cloned()
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
                return Ok(());
            }
        }
    }

    fn put(&self, member: MemberId, name: &str) {
        if self.of(&member).as_deref() != Some(name) {
            self.0.write().insert(member, name.into());
        }
    }
}

impl Projection for Names {
    fn apply(&self, batch: &[LoggedEvent]) {
        for logged_event in batch {
            match &logged_event.event {
                Event::MembersChanged { members, .. } => {
                    members.iter().for_each(|member| self.put(member.member.clone(), &member.name));
                }
                Event::UserChanged { user, .. } => {
                    self.put(MemberId::User(user.id.clone()), &user.display_name)
                }
                Event::AgentChanged { agent, .. } => self.put(MemberId::Agent(agent.id.clone()), &agent.name),
                Event::UserRemoved(user) => drop(self.0.write().remove(&MemberId::User(user.clone()))),
                Event::AgentRemoved { agent, .. } => {
                    self.0.write().remove(&MemberId::Agent(agent.clone()));
                }
                _ => {}
            }
        }
    }
}
