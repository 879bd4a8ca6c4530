//! Publication of changes of presence sets, and the derived members that follow from them.
//!
//! A user who has entered a place through a client has no derived member there, and agents that a client's member
//! announces are not derived. In the place of all users, each viewer receives only users with a shared room, and derived
//! members with only the shared rooms.

use super::Occupants;
use super::directory::UserFacts;
use super::sets::{Changed, hub_id};
use crate::feed::fanout::{Fanout, FanoutState};
use crate::feed::item::{Item, NumberedSignal};
use crate::feed::topic_subscribers::TopicSubscriber;
use crate::feed::{Codec, Kinds, Outbox, Subscriber};
use parlor_model::{
    Event, MemberChange, Occupant, OccupantChange, OccupantSource, Path, PresentAgent, PresentUser, RoomId,
    Signal, SignalStamp, SiteRole, Time, UserId,
};
use std::collections::{BTreeSet, HashMap};
use std::mem::discriminant;
use std::sync::Arc;

impl Fanout {
    /// Publishes changes of clients' members, and the changes of derived members that follow.
    pub(super) fn publish_occupants(&self, state: &mut FanoutState, changes: Vec<Changed>) {
        for Changed { place, user, change, occupant } in changes {
            state.occupants.history.add(&place, &user, change, &occupant);
            if state.occupants.users_place.as_ref() == Some(&place) {
                // Other users receive the member once the facts about its user have been read.
                let is_unknown = state.occupants.directory.user(&user).is_none();
                if is_unknown && state.occupants.directory.request(&user) {
                    self.occupants_changed.notify_one();
                }
                self.send_to_viewers(state, &place, |occupants, viewer| {
                    occupants.sees_entered(viewer, &user).then(|| (change, occupant.clone()))
                });
            } else {
                self.send_occupant(state, &place, change, &occupant);
            }
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
        if state.occupants.directory.has_unread() {
            self.occupants_changed.notify_one();
        }
    }

    /// Publishes the departures of ended credentials.
    pub(in crate::feed) fn publish_ended_occupants(&self, state: &mut FanoutState) {
        let ended = std::mem::take(&mut state.occupants.ended);
        self.publish_occupants(state, ended);
    }

    /// Replaces the facts about a user, and publishes the members that change.
    pub(super) fn set_facts(&self, state: &mut FanoutState, user: &UserId, facts: Option<UserFacts>) {
        let rooms_before = state.occupants.directory.set(user, facts);
        self.derive_everywhere(state, user);
        let rooms = state.occupants.rooms_of(user).cloned().unwrap_or_default();
        if rooms != rooms_before {
            self.publish_entered(state, user, &rooms_before, &rooms);
            self.publish_for_viewer(state, user, &rooms_before, &rooms);
        }
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
        let now = self.clock.now();
        // A departure has a new id.
        let old = old.map(|old| state.renewed(&old, now));
        let new = new.map(|new| state.derived_occupant(new, now));
        if let Some(members) = state.occupants.derived.get_mut(place) {
            match &new {
                Some(new) => members.insert(user.clone(), new.clone()),
                None => members.remove(user),
            };
        }
        if state.occupants.users_place.as_ref() == Some(place) {
            self.send_to_viewers(state, place, |occupants, viewer| {
                let seen = |occupant: &Option<Arc<Occupant>>| occupants.seen_by(occupant.as_ref()?, viewer);
                derived_change(seen(&old), seen(&new))
            });
        } else if let Some((change, occupant)) = derived_change(old, new) {
            self.send_occupant(state, place, change, &occupant);
        }
    }

    /// Publishes the own members of a user whose rooms have changed. The other users that now share a room with the user
    /// receive them as entered, and those that no longer do as left.
    fn publish_entered(
        &self,
        state: &mut FanoutState,
        user: &UserId,
        rooms_before: &BTreeSet<RoomId>,
        rooms: &BTreeSet<RoomId>,
    ) {
        let Some(place) = state.occupants.users_place.clone() else { return };
        let entered = state.occupants.sets.entered_by(user, &place);
        if entered.is_empty() || !state.has_presence_subscribers(&place) {
            return;
        }
        // One pass over the subscribers for all members: each subscriber receives the same change of every member.
        let renewed = entered.iter().map(|occupant| {
            let occupant = state.renewed(occupant, self.clock.now());
            (occupant, self.number(state, 1).1)
        });
        let renewed: Vec<(Arc<Occupant>, SignalStamp)> = renewed.collect();
        let mut by_user: HashMap<UserId, Option<OccupantChange>> = HashMap::new();
        let mut by_change: HashMap<_, Vec<Arc<NumberedSignal>>> = HashMap::new();
        state.each_at(&place, |subscriber| {
            let viewer = &subscriber.user;
            if !subscriber.kinds.includes(Kinds::PRESENCE) || viewer == user {
                return;
            }
            let change = *by_user
                .entry(viewer.clone())
                .or_insert_with(|| entered_change(rooms_before, rooms, state.occupants.rooms_of(viewer)?));
            let Some(change) = change else { return };
            let signals = by_change.entry(discriminant(&change)).or_insert_with(|| {
                let signal =
                    |(occupant, stamp): &(_, SignalStamp)| occupant_signal(&place, change, occupant, *stamp);
                renewed.iter().map(signal).collect()
            });
            for signal in signals {
                subscriber.outbox.push_item(subscriber.codec, Item::Signal(signal.clone()));
            }
        });
    }

    /// Publishes to a viewer whose rooms have changed the members of the place of all users that appear, change or
    /// disappear for this viewer.
    fn publish_for_viewer(
        &self,
        state: &mut FanoutState,
        viewer: &UserId,
        rooms_before: &BTreeSet<RoomId>,
        rooms: &BTreeSet<RoomId>,
    ) {
        let Some(place) = state.occupants.users_place.clone() else { return };
        let receivers = state.receivers_of(&place, viewer);
        if receivers.is_empty() {
            return;
        }
        let occupants = &state.occupants;
        let derived = occupants.derived.get(&place).into_iter().flatten();
        let derived = derived.filter(|(user, _)| *user != viewer).filter_map(|(_, member)| {
            derived_change(shared_rooms(member, rooms_before), shared_rooms(member, rooms))
        });
        let entered = occupants.sets.in_place(&place).filter(|(user, _)| *user != viewer);
        let entered = entered.filter_map(|(user, member)| {
            let change = entered_change(rooms_before, rooms, occupants.rooms_of(user)?)?;
            Some((change, member.clone()))
        });
        let changes: Vec<_> = entered.chain(derived).collect();
        for (change, occupant) in changes {
            // A new id, because the viewer may already have this state with other rooms.
            let occupant = state.renewed(&occupant, self.clock.now());
            let (_, stamp) = self.number(state, 1);
            let signal = occupant_signal(&place, change, &occupant, stamp);
            for (outbox, codec) in &receivers {
                outbox.push_item(*codec, Item::Signal(signal.clone()));
            }
        }
    }

    /// Queues a change for the subscribers of a place. The outbox never drops a change: a subscriber that is too slow
    /// is disconnected, because its set would be wrong without the change.
    fn send_occupant(
        &self,
        state: &mut FanoutState,
        place: &Path,
        change: OccupantChange,
        occupant: &Arc<Occupant>,
    ) {
        state.occupants.lists.remove(place);
        if !state.has_presence_subscribers(place) {
            return;
        }
        let (_, stamp) = self.number(state, 1);
        let signal = occupant_signal(place, change, occupant, stamp);
        state.each_at(place, |subscriber| {
            if subscriber.kinds.includes(Kinds::PRESENCE) {
                subscriber.outbox.push_item(subscriber.codec, Item::Signal(signal.clone()));
            }
        });
    }

    /// Queues a change of the place of all users for its subscribers, with the change that each user sees. Reads the
    /// subscribers once; those of one user, and users who see the same, share the item.
    fn send_to_viewers(
        &self,
        state: &mut FanoutState,
        place: &Path,
        seen: impl Fn(&Occupants, &UserId) -> Option<(OccupantChange, Arc<Occupant>)>,
    ) {
        if !state.has_presence_subscribers(place) {
            return;
        }
        let (_, stamp) = self.number(state, 1);
        let mut by_user: HashMap<UserId, Option<Arc<NumberedSignal>>> = HashMap::new();
        let mut by_view = HashMap::new();
        state.each_at(place, |subscriber| {
            if !subscriber.kinds.includes(Kinds::PRESENCE) {
                return;
            }
            let signal = by_user.entry(subscriber.user.clone()).or_insert_with(|| {
                let (change, occupant) = seen(&state.occupants, &subscriber.user)?;
                // The signal keeps the occupant, so no other one gets its address.
                let signal = by_view
                    .entry((discriminant(&change), Arc::as_ptr(&occupant)))
                    .or_insert_with(|| occupant_signal(place, change, &occupant, stamp));
                Some(Arc::clone(signal))
            });
            if let Some(signal) = signal {
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
        let (rooms, agents) = match &room {
            Some(room) => {
                let agents = here.iter().map(|(id, agent)| PresentAgent {
                    id: (*id).clone(),
                    name: agent.name_in(room).into(),
                    description: agent.description.clone(),
                });
                (vec![room.clone()], agents.collect())
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

    /// Returns the state of a member under a new id, which the hub assigns.
    fn renewed(&mut self, occupant: &Occupant, now: Time) -> Arc<Occupant> {
        let number = self.occupants.sets.next_number(now);
        // At least the time of the state, because the clock may have been set back.
        let (id, at) = (hub_id(number), now.max(occupant.at));
        let order = present(occupant).map(|_| (number, 0));
        Arc::new(Occupant { id, order, at, ..occupant.clone() })
    }

    pub(super) fn each_at(&self, place: &Path, publish: impl FnMut(&TopicSubscriber)) {
        match place.room() {
            Some(room) => self.rooms.each(&room, publish),
            None => self.paths.each(place, publish),
        }
    }

    pub(super) fn has_presence_subscribers(&self, place: &Path) -> bool {
        let receives = |subscriber: &TopicSubscriber| subscriber.kinds.includes(Kinds::PRESENCE);
        match place.room() {
            Some(room) => self.rooms.any(&room, receives),
            None => self.paths.any(place, receives),
        }
    }

    /// Queues of a user's subscriptions to the presence set of a place.
    fn receivers_of(&self, place: &Path, user: &UserId) -> Vec<(Arc<Outbox>, Codec)> {
        let mut receivers = Vec::new();
        self.each_at(place, |subscriber| {
            if subscriber.user == *user && subscriber.kinds.includes(Kinds::PRESENCE) {
                receivers.push((subscriber.outbox.clone(), subscriber.codec));
            }
        });
        receivers
    }
}

impl Occupants {
    /// The derived member of the place of all users with only the rooms that it shares with the viewer.
    pub(super) fn seen_by(&self, occupant: &Arc<Occupant>, viewer: &UserId) -> Option<Arc<Occupant>> {
        if present(occupant).is_some_and(|user| user.user == *viewer) {
            return Some(occupant.clone());
        }
        shared_rooms(occupant, self.rooms_of(viewer)?)
    }

    /// Whether a viewer receives the members that a user has entered in the place of all users.
    pub(super) fn sees_entered(&self, viewer: &UserId, user: &UserId) -> bool {
        let share_a_room = || Some(!self.rooms_of(viewer)?.is_disjoint(self.rooms_of(user)?));
        viewer == user || share_a_room().unwrap_or(false)
    }

    fn rooms_of(&self, user: &UserId) -> Option<&BTreeSet<RoomId>> {
        self.directory.user(user).map(|facts| &facts.rooms)
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

/// The change between two states of a derived member, with the newer state or, of a departure, the last one.
fn derived_change(
    old: Option<Arc<Occupant>>,
    new: Option<Arc<Occupant>>,
) -> Option<(OccupantChange, Arc<Occupant>)> {
    match (old, new) {
        (None, None) => None,
        (None, Some(new)) => Some((OccupantChange::Entered, new)),
        (Some(old), Some(new)) => (present(&old) != present(&new)).then_some((OccupantChange::Updated, new)),
        (Some(old), None) => Some((OccupantChange::Left, old)),
    }
}

/// Whether a member that a client entered in the place of all users appears or disappears: the rooms of either its user
/// or the viewer have changed, `other` are those of the other user.
fn entered_change(
    before: &BTreeSet<RoomId>,
    after: &BTreeSet<RoomId>,
    other: &BTreeSet<RoomId>,
) -> Option<OccupantChange> {
    match (before.is_disjoint(other), after.is_disjoint(other)) {
        (true, false) => Some(OccupantChange::Entered),
        (false, true) => Some(OccupantChange::Left),
        _ => None,
    }
}

fn occupant_signal(
    place: &Path,
    change: OccupantChange,
    occupant: &Arc<Occupant>,
    stamp: SignalStamp,
) -> Arc<NumberedSignal> {
    let signal = Signal::Occupant { place: place.clone(), change, occupant: occupant.clone() };
    NumberedSignal::of(signal, stamp, None)
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
