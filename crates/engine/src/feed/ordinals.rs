//! Ordinals of signals, and their publication: both under the fan-out's lock, so that signals are queued in the order
//! of their ordinals.

use super::fanout::{Fanout, FanoutState};
use super::interest::Kinds;
use super::item::{Item, NumberedSignal};
use super::{Subscriber, SubscriberId};
use parlor_model::{EventScope, Ordinal, RoomId, RunPlace, Signal, SignalStamp, UserId};
use std::sync::Arc;

impl Fanout {
    /// Reserves `count` unique ordinals: returns the first, and the last with the current time.
    pub(super) fn number(&self, state: &mut FanoutState, count: u64) -> (Ordinal, SignalStamp) {
        let first = state.last_ordinal.plus(1);
        let before = state.last_ordinal.is_half_used();
        state.last_ordinal = state.last_ordinal.plus(count);
        if !before && state.last_ordinal.is_half_used() {
            self.ordinals_low.notify_one();
        }
        (first, SignalStamp { ordinal: state.last_ordinal, at: self.clock.now() })
    }

    /// A unique stamp for a signal that is sent to a single connection.
    pub fn next_stamp(&self) -> SignalStamp {
        self.number(&mut self.state.lock(), 1).1
    }

    /// Waits until the ordinals for signals run low; completes once for each time they do.
    pub async fn wait_for_low_ordinals(&self) {
        self.ordinals_low.notified().await;
    }

    /// Publishes signals about a run.
    pub(super) fn publish_signals(&self, state: &mut FanoutState, place: &RunPlace, signals: &[Signal]) {
        for signal in signals {
            self.publish_to_scope(state, place.scope(), signal, None);
        }
    }

    pub(super) fn publish_signal(
        &self,
        state: &mut FanoutState,
        room: &RoomId,
        signal: &Signal,
        from: Option<&UserId>,
    ) {
        self.publish_to_scope(state, EventScope::Room(room), signal, from);
    }

    fn publish_to_scope(
        &self,
        state: &mut FanoutState,
        scope: EventScope<'_>,
        signal: &Signal,
        from: Option<&UserId>,
    ) {
        let (_, stamp) = self.number(state, 1);
        let (kind, mut shared) = (Kinds::of_signal(signal), None);
        state.each_viewer(scope, |subscriber| {
            if from != Some(&subscriber.user) && subscriber.kinds.includes(kind) {
                let signal: &Arc<NumberedSignal> =
                    shared.get_or_insert_with(|| state.numbered(signal, stamp));
                subscriber.outbox.push_signal(subscriber.codec, Item::Signal(signal.clone()));
            }
        });
    }

    /// Publishes a signal to the subscribers of a room, except to the user it comes from.
    pub fn signal_room(&self, room: &RoomId, signal: &Signal, from: Option<&UserId>) {
        self.publish_signal(&mut self.state.lock(), room, signal, from);
    }

    /// Publishes the backlog of an agent in a room, and keeps it for late joiners.
    pub fn publish_backlog(&self, room: &RoomId, backlog: &Signal) {
        let mut state = self.state.lock();
        state.room_state.apply_backlog(backlog);
        self.publish_signal(&mut state, room, backlog, None);
    }

    /// Publishes a signal to every connection of these users.
    pub fn signal_people<'a>(&self, people: impl IntoIterator<Item = &'a UserId>, signal: &Signal) {
        self.send_to_people(&mut self.state.lock(), people, signal);
    }

    pub(super) fn send_to_people<'a>(
        &self,
        state: &mut FanoutState,
        people: impl IntoIterator<Item = &'a UserId>,
        signal: &Signal,
    ) {
        let (_, stamp) = self.number(state, 1);
        let (kind, signal) = (Kinds::of_signal(signal), state.numbered(signal, stamp));
        for subscriber in people.into_iter().flat_map(|user| state.subscribers_of(user)) {
            if subscriber.kinds.includes(kind) {
                subscriber.outbox.push_signal(subscriber.codec, Item::Signal(signal.clone()));
            }
        }
    }

    /// Notifies the connections of these users that have the place of all users open.
    pub(super) fn publish_rooms_changed<'a>(
        &self,
        state: &mut FanoutState,
        users: impl IntoIterator<Item = &'a UserId>,
    ) {
        let Some(place) = state.occupants.users_place.clone() else { return };
        for user in users {
            let (_, stamp) = self.number(state, 1);
            let changed = state.numbered(&Signal::RoomsChanged { user: user.clone() }, stamp);
            state.paths.each(&place, |subscriber| {
                if subscriber.user == *user && subscriber.kinds.includes(Kinds::MESSAGES) {
                    subscriber.outbox.push_signal(subscriber.codec, Item::Signal(changed.clone()));
                }
            });
        }
    }

    /// Sends a signal to one connection, if it is still registered.
    pub fn signal_subscriber(&self, id: SubscriberId, signal: &Signal) {
        let state = &mut *self.state.lock();
        if let Some(subscriber) = state.subscribers.get(&id).cloned() {
            self.send_signal(state, &subscriber, signal);
        }
    }

    pub(super) fn send_signal(&self, state: &mut FanoutState, subscriber: &Subscriber, signal: &Signal) {
        let (_, stamp) = self.number(state, 1);
        if subscriber.kinds.includes(Kinds::of_signal(signal)) {
            let signal = state.numbered(signal, stamp);
            subscriber.outbox.push_signal(subscriber.codec, Item::Signal(signal));
        }
    }
}

impl FanoutState {
    /// The signal as an item, with the current project root of its room.
    fn numbered(&self, signal: &Signal, stamp: SignalStamp) -> Arc<NumberedSignal> {
        let root = signal.room().and_then(|room| self.roots.of(room));
        NumberedSignal::of(signal.clone(), stamp, root)
    }
}
