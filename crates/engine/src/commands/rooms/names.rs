//! Names of members in their rooms, decided when a membership begins or its user or agent is renamed.
//!
//! Owns: two members of a room never have the same name (`mention::name_key`), and no member has the handle of another as
//! its name. The earlier member keeps its name. A later one is distinguished by the username of its account, and by a
//! number if that is not enough.

use super::members::{load_for_event, members_for_event};
use crate::Fault;
use crate::changes::RoomChange;
use crate::effects::EffectsBuilder;
use crate::read_view::ReadView;
use parlor_model::{Agent, Event, Member, MemberChange, MemberId, Room, User, mention};
use std::sync::Arc;

/// Last number that distinguishes a name. After it the id is used, which bounds the work for many members with one name.
const LAST_NUMBER: usize = 20;

/// Name of a user or agent, and its other names.
#[derive(Debug, Clone)]
pub struct OwnNames {
    /// Display name of the user, or name of the agent.
    pub name: Box<str>,
    /// Second name for mentions: the username of the user, or the id of the agent.
    pub handle: Box<str>,
    /// Username of the user, or of the owner of the agent.
    pub username: Box<str>,
}

impl From<&User> for OwnNames {
    fn from(user: &User) -> Self {
        let User { display_name, username, .. } = user;
        Self { name: display_name.clone(), handle: username.clone(), username: username.clone() }
    }
}

impl OwnNames {
    pub fn of_agent(agent: &Agent, owner: &User) -> Self {
        let (name, handle) = (agent.name.clone(), agent.id.as_str().into());
        Self { name, handle, username: owner.username.clone() }
    }

    pub fn load_agent(agent: &Agent, view: &mut ReadView<'_>) -> Result<Self, Fault> {
        let owner = view.user(&agent.owner)?;
        let username = owner.map(|owner| owner.username.clone()).unwrap_or_default();
        Ok(Self { name: agent.name.clone(), handle: agent.id.as_str().into(), username })
    }

    /// The first of the possible names that is not taken. `is_taken` gets the key of a name.
    fn first_free<E>(&self, mut is_taken: impl FnMut(&str) -> Result<bool, E>) -> Result<Box<str>, E> {
        let Self { name, handle, username } = self;
        // The username would only repeat the name.
        let long = match mention::same_name(name, username) || username.is_empty() {
            true => name.clone(),
            false => format!("{name}-{username}").into(),
        };
        let numbered = (2..=LAST_NUMBER).map(|number| format!("{long}-{number}").into());
        for candidate in [name.clone(), long.clone()].into_iter().chain(numbered) {
            if !is_taken(&mention::name_key(&candidate))? {
                return Ok(candidate);
            }
        }
        Ok(format!("{long}-{handle}").into())
    }

    /// Name of a member in a room with these other members, which are all of them.
    pub fn among(&self, others: &[Member]) -> Box<str> {
        let is_taken = |key: &str| {
            let has_key = |name: &str| *mention::name_key(name) == *key;
            Ok(others.iter().any(|other| has_key(&other.name) || has_key(&other.handle)))
        };
        let free: Result<_, std::convert::Infallible> = self.first_free(is_taken);
        match free {
            Ok(name) => name,
            Err(never) => match never {},
        }
    }

    /// Name of a present or future member of an existing room.
    pub fn in_room(
        &self,
        room: &Room,
        member: &MemberId,
        view: &mut ReadView<'_>,
    ) -> Result<Box<str>, Fault> {
        self.first_free(|key| {
            if view.store.has_member_named(&room.id, key, member)? {
                return Ok(true);
            }
            let is_agent = |id: &str| member.agent().is_none_or(|own| own.as_str() != id);
            let mut agents = view.agents_in(room)?.to_vec().into_iter();
            if agents.any(|id| id.as_str().eq_ignore_ascii_case(key) && is_agent(id.as_str())) {
                return Ok(true);
            }
            let user = view.store.user_named(key)?.map(|user| MemberId::User(user.id));
            match user.filter(|user| user != member) {
                Some(user) => Ok(view.membership(&room.id, &user)?.is_some()),
                None => Ok(false),
            }
        })
    }
}

/// Names of a renamed user or agent in its rooms.
#[derive(Debug, Clone, Default)]
pub struct RoomNames(Vec<Renamed>);

/// A membership whose name changes, or is not the name of its user or agent.
#[derive(Debug, Clone)]
struct Renamed {
    room: Arc<Room>,
    member: MemberId,
    name: Box<str>,
    /// Members of the room, as far as an event needs them; `None` without an event, if the member had the name of its
    /// user or agent and has it again.
    members: Option<Vec<Member>>,
}

impl RoomNames {
    /// Decides the names of a user or agent that had the name `before`. `memberships` are all of its memberships.
    pub fn load(
        names: &OwnNames,
        before: &str,
        memberships: &[Member],
        view: &mut ReadView<'_>,
    ) -> Result<Self, Fault> {
        let mut renamed = Vec::new();
        if *names.name == *before {
            return Ok(Self(renamed));
        }
        for membership in memberships {
            let Some(room) = view.room(&membership.room)? else { continue };
            let name = names.in_room(&room, &membership.member, view)?;
            let follows_event = name == names.name && *membership.name == *before;
            let members = match follows_event {
                true => None,
                false => Some(load_for_event(&room.id, view)?),
            };
            renamed.push(Renamed { room, member: membership.member.clone(), name, members });
        }
        Ok(Self(renamed))
    }

    /// Stores the names. Publishes those that do not follow from the event of the user or agent, which must be published
    /// before.
    pub fn apply(self, effects: &mut EffectsBuilder<'_>) {
        for Renamed { room, member, name, members } in self.0 {
            let id = room.id.clone();
            effects.change(RoomChange::RenameMember { room: id, member: member.clone(), name: name.clone() });
            let Some(mut members) = members else { continue };
            for own in members.iter_mut().filter(|own| own.member == member) {
                own.name = name.clone();
            }
            let (change, members) = (MemberChange::Changed(member), members_for_event(&members));
            effects.publish(Event::MembersChanged { room, change, members });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::test_fixtures::member_of;
    use parlor_model::RoomId;

    fn names(name: &str, username: &str) -> OwnNames {
        OwnNames { name: name.into(), handle: "id".into(), username: username.into() }
    }

    #[track_caller]
    fn check(names: &OwnNames, others: &[&str], expected: &str) {
        let room = RoomId::stored("lobby");
        let others: Vec<Member> = others.iter().map(|name| Member::clone(&member_of(&room, name))).collect();
        assert_eq!(&*names.among(&others), expected);
    }

    #[test]
    fn a_free_name_stays() {
        check(&names("bot", "grace"), &["ada", "bot2"], "bot");
    }

    #[test]
    fn a_taken_name_gets_the_username_and_then_a_number() {
        check(&names("bot", "grace"), &["Bot"], "bot-grace");
        check(&names("bot", "grace"), &["ＢＯＴ", "bot-grace"], "bot-grace-2");
        check(&names("bot", "grace"), &["bot", "bot-grace", "bot-grace-2"], "bot-grace-3");
    }

    #[test]
    fn a_name_that_equals_the_username_gets_a_number() {
        check(&names("Ada", "ada"), &["ada"], "Ada-2");
    }

    #[test]
    fn a_name_is_not_the_handle_of_another_member() {
        let room = RoomId::stored("lobby");
        let other = Member { handle: "bot".into(), ..Member::clone(&member_of(&room, "Other")) };
        assert_eq!(&*names("bot", "grace").among(&[other]), "bot-grace");
    }

    #[test]
    fn after_the_last_number_the_id_is_used() {
        let mut taken = vec!["bot".to_owned(), "bot-grace".to_owned()];
        taken.extend((2..=LAST_NUMBER).map(|number| format!("bot-grace-{number}")));
        let taken: Vec<&str> = taken.iter().map(String::as_str).collect();
        check(&names("bot", "grace"), &taken, "bot-grace-id");
    }
}
