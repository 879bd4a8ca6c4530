//! Complete presence sets: for a subscriber that opens a place, and for a query.

use super::derive::shared_rooms;
use super::{OccupantList, SharedOccupants};
use crate::feed::fanout::{Fanout, FanoutState};
use crate::feed::item::Item;
use crate::feed::subscribe::Topics;
use crate::feed::{Kinds, Subscriber, SubscriberId};
use parlor_model::{Occupant, Path, PresentUser, RoomId, Time, UserId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Fanout {
    /// Whether the presence sets of these topics can be sent: no derived member is missing for lack of facts.
    pub(in crate::feed) fn can_list_occupants(&self, state: &FanoutState, topics: &Topics<'_>) -> bool {
        let derives = match topics {
            Topics::Rooms { .. } => true,
            Topics::Path { path, .. } => state.occupants.derives_in(path),
        };
        !derives || state.occupants.directory.is_complete()
    }

    /// Whether a place can have derived members.
    pub(super) fn derives_in(&self, place: &Path) -> bool {
        self.state.lock().occupants.derives_in(place)
    }

    /// Sends the presence set of a place to a subscriber that has just opened it. The subscriber receives each later
    /// change.
    pub(in crate::feed) fn send_occupants(
        &self,
        state: &mut FanoutState,
        subscriber: &Subscriber,
        place: &Path,
    ) {
        if subscriber.kinds.includes(Kinds::PRESENCE) {
            state.track(place, self.clock.now());
            let list = self.list(state, place, &subscriber.user);
            subscriber.outbox.push_item(subscriber.codec, Item::Occupants(list));
        }
    }

    /// Sends the presence set again to those of these subscribers that have the place open.
    pub(in crate::feed) fn resend_occupants(&self, id: SubscriberId, place: &Path) {
        let state = &mut *self.state.lock();
        let mut receivers = Vec::new();
        state.each_at(place, |subscriber| {
            if subscriber.id == id && subscriber.kinds.includes(Kinds::PRESENCE) {
                receivers.push((subscriber.user.clone(), subscriber.outbox.clone(), subscriber.codec));
            }
        });
        for (user, outbox, codec) in receivers {
            let list = self.list(state, place, &user);
            outbox.push_item(codec, Item::Occupants(list));
        }
    }

    /// Returns the members of a place that a user with these rooms may see.
    pub(super) fn occupants_for(
        &self,
        place: &Path,
        viewer: &UserId,
        rooms: &BTreeSet<RoomId>,
    ) -> Vec<Arc<Occupant>> {
        let state = &mut *self.state.lock();
        let derived = match state.occupants.derived.get(place) {
            Some(derived) => derived.clone(),
            None => state.derived_members(place, self.clock.now()),
        };
        let is_filtered = state.occupants.users_place.as_ref() == Some(place);
        let derived = derived.iter().filter_map(|(user, occupant)| match is_filtered && user != viewer {
            true => shared_rooms(occupant, rooms),
            false => Some(occupant.clone()),
        });
        let directory = &state.occupants.directory;
        let shares_a_room = |user| directory.user(user).is_some_and(|facts| !facts.rooms.is_disjoint(rooms));
        let entered = state.occupants.sets.in_place(place);
        let entered = entered.filter(|(user, _)| !is_filtered || *user == viewer || shares_a_room(user));
        entered.map(|(_, occupant)| occupant.clone()).chain(derived).collect()
    }

    fn list(&self, state: &mut FanoutState, place: &Path, viewer: &UserId) -> Arc<SharedOccupants> {
        if let Some(list) = state.occupants.lists.get(place) {
            return list.clone();
        }
        let is_filtered = state.occupants.users_place.as_ref() == Some(place);
        let derived = state.occupants.derived.get(place).into_iter().flatten();
        let derived = derived.filter_map(|(_, occupant)| match is_filtered {
            true => state.occupants.seen_by(occupant, viewer),
            false => Some(occupant.clone()),
        });
        let entered = state.occupants.sets.in_place(place);
        let entered = entered.filter(|(user, _)| !is_filtered || state.occupants.sees_entered(viewer, user));
        let occupants = entered.map(|(_, occupant)| occupant.clone()).chain(derived).collect();
        let (_, stamp) = self.number(state, 1);
        let list = SharedOccupants::of(OccupantList { place: place.clone(), occupants, stamp });
        if !is_filtered {
            state.occupants.lists.insert(place.clone(), list.clone());
        }
        list
    }
}

impl FanoutState {
    /// Starts to maintain the derived members of a place.
    fn track(&mut self, place: &Path, now: Time) {
        if self.occupants.derives_in(place) && !self.occupants.derived.contains_key(place) {
            let members = self.derived_members(place, now);
            self.occupants.derived.insert(place.clone(), members);
            self.occupants.lists.remove(place);
            // A feed of all rooms opens a room that its user has joined without reading the facts first.
            self.occupants.wakes |= self.occupants.directory.begin_use();
        }
    }

    fn derived_members(&mut self, place: &Path, now: Time) -> BTreeMap<UserId, Arc<Occupant>> {
        if !self.occupants.derives_in(place) {
            return BTreeMap::new();
        }
        let users: Vec<UserId> = self.occupants.directory.users().cloned().collect();
        let present: Vec<_> = users.iter().filter_map(|user| self.present_user(place, user)).collect();
        let member = |user: PresentUser| (user.user.clone(), self.derived_occupant(user, now));
        present.into_iter().map(member).collect()
    }
}

impl super::Occupants {
    /// Whether a place can have derived members.
    fn derives_in(&self, place: &Path) -> bool {
        self.users_place.as_ref() == Some(place) || place.room().is_some()
    }
}
