//! Publication of changes of presence sets, and the derived members that follow from them.
//!
//! A user who has entered a place through a client has no derived member there, and agents that a client's member
//! announces are not derived. In the place of all users, each viewer receives only users with a shared room, with only
//! the shared rooms.

use super::Occupants;
use super::directory::UserFacts;
use super::sets::{Changed, hub_id};
use crate::feed::fanout::{Fanout, FanoutState};
use crate::feed::item::{Item, NumberedSignal};
use crate::feed::topic_subscribers::TopicSubscriber;
use crate::feed::{Kinds, Subscriber};
use parlor_model::{
    Event, MemberChange, Occupant, OccupantChange, OccupantSource, Path, PresentAgent, PresentUser, RoomId,
    Signal, SiteRole, Time, UserId,
};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Fanout {
    /// Publishes changes of clients' members, and the changes of derived members that follow.
    pub(super) fn publish_occupants(&self, state: &mut FanoutState, changes: Vec<Changed>) {
        for Changed { place, user, change, occupant } in changes {
            state.occupants.history.add(&place, change, &occupant);
            self.send_occupant(state, &place, change, &occupant, None);
            if change == OccupantChange::Left && !state.is_present(&user) {
                state.departures.cancel(&user);
                state.departures.add(user.clone());
                self.departed.notify_one();
            }
            self.derive(state, &place, &user);
        }
    }

    /// Applies an event to all sets, after it was published to the subscribers: members without the right to be in a
    /// place leave it in the same publication.
    pub(in crate::feed) fn apply_to_occupants(&self, state: &mut FanoutState, event: &Event) {
        let now = self.clock.now();
        let mut left = std::mem::take(&mut state.occupants.ended);
        let sets = &mut state.occupants.sets;
        match event {
            Event::MembersChanged { room, change: MemberChange::Removed(member), .. } => {
                if let Some(user) = member.user() {
                    left.extend(sets.remove_user(&Path::of_room(&room.id), user, now));
                }
            }
            Event::RoomRemoved { room, .. } => left.extend(sets.clear(&Path::of_room(room), now)),
            // The account may have lost its role.
            Event::UserChanged { user, .. } if user.role != SiteRole::Admin => {
                left.extend(sets.remove_by_role(&user.id, now));
            }
            _ => {}
        }
        self.publish_occupants(state, left);
        for (user, facts) in state.occupants.directory.changed_by(event) {
            self.set_facts(state, &user, facts);
        }
    }

    /// Publishes the departures of ended credentials.
    pub(in crate::feed) fn publish_ended_occupants(&self, state: &mut FanoutState) {
        let ended = std::mem::take(&mut state.occupants.ended);
        self.publish_occupants(state, ended);
    }

    /// Replaces the facts about a user, and publishes the derived members that change.
    pub(super) fn set_facts(&self, state: &mut FanoutState, user: &UserId, facts: Option<UserFacts>) {
        let rooms_before = state.occupants.directory.set(user, facts);
        self.derive_everywhere(state, user);
        self.derive_for_viewer(state, user, &rooms_before);
    }

    /// Publishes the changes of a user's derived members in all places.
    pub(super) fn derive_everywhere(&self, state: &mut FanoutState, user: &UserId) {
        let Occupants { derived, directory, .. } = &state.occupants;
        let facts = directory.user(user);
        let is_affected = |place: &Path| facts.is_some_and(|facts| facts.is_in(place));
        let affected =
            derived.iter().filter(|(place, members)| members.contains_key(user) || is_affected(place));
        let affected: Vec<Path> = affected.map(|(place, _)| place.clone()).collect();
        for place in affected {
            self.derive(state, &place, user);
        }
    }

    /// Publishes the change of a user's derived member in a place with subscribers, if there is one.
    fn derive(&self, state: &mut FanoutState, place: &Path, user: &UserId) {
        if !state.occupants.derived.contains_key(place) {
            return;
        }
        if !state.has_presence_subscribers(place) {
            state.occupants.derived.remove(place);
            state.occupants.lists.remove(place);
            return;
        }
        let new = state.present_user(place, user);
        let old = state.occupants.derived.get(place).and_then(|members| members.get(user)).cloned();
        if old.as_ref().and_then(|old| present(old)) == new.as_ref() {
            return;
        }
        let new = new.map(|new| state.derived_occupant(new, self.clock.now()));
        if let Some(members) = state.occupants.derived.get_mut(place) {
            match &new {
                Some(new) => members.insert(user.clone(), new.clone()),
                None => members.remove(user),
            };
        }
        if state.occupants.users_place.as_ref() != Some(place) {
            self.send_derived(state, place, old, new, None);
            return;
        }
        for viewer in state.viewers(place) {
            let seen = |occupant: &Option<Arc<Occupant>>| {
                occupant.as_ref().and_then(|occupant| state.occupants.seen_by(occupant, &viewer))
            };
            let (old, new) = (seen(&old), seen(&new));
            self.send_derived(state, place, old, new, Some(&viewer));
        }
    }

    /// Publishes to a viewer whose rooms have changed the members of the place of all users that appear, change or
    /// disappear for this viewer.
    fn derive_for_viewer(&self, state: &mut FanoutState, viewer: &UserId, rooms_before: &BTreeSet<RoomId>) {
        let Some(place) = state.occupants.users_place.clone() else { return };
        let rooms = state.occupants.rooms_of(viewer);
        if rooms == *rooms_before || !state.viewers(&place).contains(viewer) {
            return;
        }
        let members = state.occupants.derived.get(&place).into_iter().flatten();
        let views = members
            .filter(|(user, _)| *user != viewer)
            .map(|(_, occupant)| (shared_rooms(occupant, rooms_before), shared_rooms(occupant, &rooms)));
        let views: Vec<_> = views.collect();
        for (old, new) in views {
            let new = match new {
                // A new id, because the viewer may already have this state with other rooms.
                Some(new) if old.as_ref() != Some(&new) => {
                    present(&new).cloned().map(|new| state.derived_occupant(new, self.clock.now()))
                }
                new => new,
            };
            self.send_derived(state, &place, old, new, Some(viewer));
        }
    }

    fn send_derived(
        &self,
        state: &mut FanoutState,
        place: &Path,
        old: Option<Arc<Occupant>>,
        new: Option<Arc<Occupant>>,
        only: Option<&UserId>,
    ) {
        match (old, new) {
            (None, None) => {}
            (None, Some(new)) => self.send_occupant(state, place, OccupantChange::Entered, &new, only),
            (Some(old), Some(new)) => {
                if present(&old) != present(&new) {
                    self.send_occupant(state, place, OccupantChange::Updated, &new, only);
                }
            }
            (Some(old), None) => {
                if let Some(left) = present(&old).cloned() {
                    let left = state.derived_occupant(left, self.clock.now());
                    self.send_occupant(state, place, OccupantChange::Left, &left, only);
                }
            }
        }
    }

    /// Queues a change for the subscribers of a place, or only for those of one user. The outbox never drops a change:
    /// a subscriber that is too slow is disconnected, because its set would be wrong without the change.
    fn send_occupant(
        &self,
        state: &mut FanoutState,
        place: &Path,
        change: OccupantChange,
        occupant: &Arc<Occupant>,
        only: Option<&UserId>,
    ) {
        state.occupants.lists.remove(place);
        if !state.has_presence_subscribers(place) {
            return;
        }
        let (_, stamp) = self.number(state, 1);
        let signal = Signal::Occupant { place: place.clone(), change, occupant: occupant.clone() };
        let signal = NumberedSignal::of(signal, stamp, None);
        state.each_at(place, |subscriber| {
            if subscriber.kinds.includes(Kinds::PRESENCE) && only.is_none_or(|only| *only == subscriber.user)
            {
                subscriber.outbox.push_item(subscriber.codec, Item::Signal(signal.clone()));
            }
        });
    }

    /// Derives the members of the user of a new connection.
    pub(in crate::feed) fn occupants_connected(&self, state: &mut FanoutState, subscriber: &Subscriber) {
        let user = &subscriber.user;
        if subscriber.derives_members() {
            state.occupants.departures.cancel(user);
        }
        if state.occupants.directory.user(user).is_some() {
            self.derive_everywhere(state, user);
        } else if state.occupants.directory.request(user) {
            self.occupants_changed.notify_one();
        }
    }
}

impl FanoutState {
    /// The derived member of a user in a place.
    pub(super) fn present_user(&self, place: &Path, user: &UserId) -> Option<PresentUser> {
        let facts = self.occupants.directory.user(user)?;
        let room = place.room();
        let is_in = |rooms: &BTreeSet<RoomId>| room.as_ref().is_none_or(|room| rooms.contains(room));
        let entered = self.occupants.sets.of_user_in(user, place);
        let online = entered.is_none() && is_in(&facts.rooms) && self.derives_members(user);
        let announced = entered.unwrap_or_default();
        let here: Vec<_> = facts
            .agents
            .iter()
            .filter(|(id, agent)| is_in(&agent.rooms) && !announced.contains(id))
            .collect();
        if !online && here.is_empty() {
            return None;
        }
        let (rooms, agents) = match room {
            Some(room) => {
                let agents = here.iter().map(|(id, agent)| PresentAgent {
                    id: (*id).clone(),
                    name: agent.name.clone(),
                    description: agent.description.clone(),
                });
                (vec![room], agents.collect())
            }
            None => {
                let own = online.then_some(&facts.rooms).into_iter().flatten();
                let all: BTreeSet<&RoomId> =
                    own.chain(here.iter().flat_map(|(_, agent)| &agent.rooms)).collect();
                (all.into_iter().cloned().collect(), Vec::new())
            }
        };
        Some(PresentUser { user: user.clone(), username: facts.username.clone(), online, rooms, agents })
    }

    /// Whether the user is a derived member by an open connection, or by one that ended less than a grace period ago.
    pub(in crate::feed) fn derives_members(&self, user: &UserId) -> bool {
        let ids = self.by_user.get(user).map(Vec::as_slice).unwrap_or_default();
        ids.iter().any(|id| self.subscribers.get(id).is_some_and(Subscriber::derives_members))
            || self.occupants.departures.contains(user)
    }

    /// A new state of a derived member.
    pub(super) fn derived_occupant(&mut self, user: PresentUser, now: Time) -> Arc<Occupant> {
        let number = self.occupants.sets.next_number(now);
        Arc::new(Occupant {
            connection: Occupant::HUB.into(),
            client: user.user.as_str().into(),
            id: hub_id(number),
            order: Some((number, 0)),
            at: now,
            source: OccupantSource::Derived(user),
        })
    }

    pub(super) fn each_at(&self, place: &Path, publish: impl FnMut(&TopicSubscriber)) {
        match place.room() {
            Some(room) => self.rooms.each(&room, publish),
            None => self.paths.each(place, publish),
        }
    }

    pub(super) fn has_presence_subscribers(&self, place: &Path) -> bool {
        let mut found = false;
        self.each_at(place, |subscriber| found |= subscriber.kinds.includes(Kinds::PRESENCE));
        found
    }

    /// Users with a subscription to the presence set of a place.
    fn viewers(&self, place: &Path) -> BTreeSet<UserId> {
        let mut viewers = BTreeSet::new();
        self.each_at(place, |subscriber| {
            if subscriber.kinds.includes(Kinds::PRESENCE) {
                viewers.insert(subscriber.user.clone());
            }
        });
        viewers
    }
}

impl Occupants {
    /// The derived member of the place of all users with only the rooms that it shares with the viewer.
    pub(super) fn seen_by(&self, occupant: &Arc<Occupant>, viewer: &UserId) -> Option<Arc<Occupant>> {
        if present(occupant).is_some_and(|user| user.user == *viewer) {
            return Some(occupant.clone());
        }
        shared_rooms(occupant, &self.rooms_of(viewer))
    }

    fn rooms_of(&self, user: &UserId) -> BTreeSet<RoomId> {
        self.directory.user(user).map(|facts| facts.rooms.clone()).unwrap_or_default()
    }
}

/// The member with only these rooms; `None` if it is in none of them.
pub(super) fn shared_rooms(occupant: &Arc<Occupant>, rooms: &BTreeSet<RoomId>) -> Option<Arc<Occupant>> {
    let user = present(occupant)?;
    let shared: Vec<RoomId> = user.rooms.iter().filter(|room| rooms.contains(*room)).cloned().collect();
    match shared.len() {
        0 => None,
        all if all == user.rooms.len() => Some(occupant.clone()),
        _ => {
            let source = OccupantSource::Derived(PresentUser { rooms: shared, ..user.clone() });
            Some(Arc::new(Occupant { source, ..Occupant::clone(occupant) }))
        }
    }
}

fn present(occupant: &Occupant) -> Option<&PresentUser> {
    match &occupant.source {
        OccupantSource::Derived(user) => Some(user),
        OccupantSource::Client { .. } => None,
    }
}

impl UserFacts {
    fn is_in(&self, place: &Path) -> bool {
        place.room().is_none_or(|room| {
            self.rooms.contains(&room) || self.agents.values().any(|agent| agent.rooms.contains(&room))
        })
    }
}
