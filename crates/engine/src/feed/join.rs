//! Subscribing a connection to rooms: replays missed events, sends the position, then the current state of
//! each room.

use super::batching::ReplayEvent;
use super::topic_subscribers::TopicSubscriber;
use super::{Fanout, FanoutState, Subscriber, SubscriberId, push};
use crate::Fault;
use bytes::Bytes;
use parlor_model::{Event, EventAudience, MemberChange, Position, RoomId, Seq, Signal};
use std::collections::HashSet;

/// Result of an attempt to subscribe to rooms.
pub enum JoinResult {
    Live {
        from: Position,
    },
    /// The missed events are no longer in the replay buffer, or exceed the outbox: replay them from the store
    /// first.
    NeedsReplay,
    /// The position is committed but not published yet: wait for its publication.
    NotPublishedYet,
}

/// The rooms that a connection follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoomFilter {
    /// All rooms of its user, including rooms joined later.
    All,
    Only(RoomId),
}

impl RoomFilter {
    pub fn includes(&self, room: &RoomId) -> bool {
        match self {
            Self::All => true,
            Self::Only(only) => only == room,
        }
    }
}

/// Rooms and state that a following connection may see, read under the lock.
pub struct FollowScope {
    pub rooms: Vec<RoomId>,
    /// Signals with current state that are sent in addition to the rooms' own.
    pub signals: Vec<Signal>,
}

impl Fanout {
    /// Subscribes a connection to a room from `since` on: sends the missed events from the replay buffer,
    /// then open approvals, activities and streaming replies. `admitted` is called under the lock, so that no
    /// removal can happen between the check and the first event; `welcome` is called under it too, so that
    /// the position it encodes is exact.
    pub fn join(
        &self,
        id: SubscriberId,
        room: &RoomId,
        since: Option<Seq>,
        admitted: impl FnOnce() -> Result<bool, Fault>,
        welcome: impl FnOnce(Position) -> Option<Bytes>,
    ) -> Result<Option<JoinResult>, Fault> {
        let admitted =
            || Ok(admitted()?.then(|| FollowScope { rooms: vec![room.clone()], signals: Vec::new() }));
        self.subscribe(id, since, None, admitted, welcome)
    }

    /// Like `join`, for several rooms in one total order, including rooms that the user joins later.
    pub fn follow(
        &self,
        id: SubscriberId,
        following: RoomFilter,
        since: Option<Seq>,
        admitted: impl FnOnce() -> Result<Option<FollowScope>, Fault>,
        welcome: impl FnOnce(Position) -> Option<Bytes>,
    ) -> Result<Option<JoinResult>, Fault> {
        self.subscribe(id, since, Some(following), admitted, welcome)
    }

    fn subscribe(
        &self,
        id: SubscriberId,
        since: Option<Seq>,
        following: Option<RoomFilter>,
        admitted: impl FnOnce() -> Result<Option<FollowScope>, Fault>,
        welcome: impl FnOnce(Position) -> Option<Bytes>,
    ) -> Result<Option<JoinResult>, Fault> {
        let state = &mut *self.state.lock();

        if since.is_some_and(|since| since.next() < state.replay_floor) {
            return Ok(Some(JoinResult::NeedsReplay));
        }
        if since.is_some_and(|since| since > state.published_through) {
            return Ok(Some(JoinResult::NotPublishedYet));
        }
        let Some(FollowScope { rooms, signals }) = admitted()? else { return Ok(None) };
        let Some(subscriber) = state.subscribers.get(&id).cloned() else { return Ok(None) };
        let (mut frames, mut needs_refresh) = (Vec::new(), false);
        if let Some(since) = since {
            let here: HashSet<&RoomId> = rooms.iter().collect();
            let for_them = |event: &Event| event.only_user().is_none_or(|person| *person == subscriber.user);
            // Open approvals are sent when each room is subscribed, below.
            let is_replayed = |event: &Event| !matches!(event, Event::ApprovalAsked(_));
            let is_in_audience = |audience: &EventAudience| {
                audience.everyone
                    || audience.people.contains(&subscriber.user)
                    || audience.rooms.iter().any(|room| here.contains(room))
            };
            // Past permissions are not known. So missed events without a room, and lost rooms, are not
            // replayed: a refresh signal makes the client reload its state.
            let elsewhere = |event: &Event| match event {
                Event::MembersChanged { room, change: MemberChange::Removed(member), .. } => {
                    member.user() == Some(&subscriber.user) && !here.contains(&room.id)
                }
                // A removal that was read from the log does not name the room's users.
                Event::RoomRemoved { people, .. } => people.is_empty() || people.contains(&subscriber.user),
                event => event.audience().is_some_and(is_in_audience),
            };
            let is_missed = |kept: &&mut ReplayEvent| {
                let event = &kept.logged_event.event;
                event.room().is_some_and(|room| here.contains(room)) && for_them(event) && is_replayed(event)
            };
            let first = state.replay_buffer.partition_point(|kept| kept.logged_event.seq <= since);
            needs_refresh = following.is_some()
                && state.replay_buffer.range(first..).any(|kept| elsewhere(&kept.logged_event.event));
            let missed = state.replay_buffer.range_mut(first..).filter(is_missed);
            frames.extend(missed.filter_map(|kept| kept.by(&subscriber.egress, self.epoch)));
        }
        let anything_missed = !frames.is_empty();
        let from = Position { epoch: self.epoch, seq: state.published_through };
        frames.extend(welcome(from));
        if anything_missed && !subscriber.outbox.fits(&frames) {
            return Ok(Some(JoinResult::NeedsReplay));
        }
        for frame in frames {
            subscriber.outbox.push(frame);
        }
        state.following.extend(following.map(|following| (id, following)));
        for room in &rooms {
            self.subscribe_to_room(state, &subscriber, room);
        }
        let refresh = needs_refresh.then_some(&Signal::Refresh);
        for signal in signals.iter().chain(refresh) {
            self.send_signal(state, &subscriber, signal);
        }
        Ok(Some(JoinResult::Live { from }))
    }

    /// Subscribes a connection to a room that its user has joined, if the connection follows it.
    pub(super) fn follow_new_room(&self, state: &mut FanoutState, subscriber: &Subscriber, room: &RoomId) {
        if state.following.get(&subscriber.id).is_some_and(|following| following.includes(room)) {
            self.subscribe_to_room(state, subscriber, room);
        }
    }

    /// Subscribes a connection to a room and sends the room's activities, streaming replies and open
    /// approvals.
    fn subscribe_to_room(&self, state: &mut FanoutState, subscriber: &Subscriber, room: &RoomId) {
        if state.rooms.contains(room, subscriber.id) {
            return;
        }
        state.rooms.add(room.clone(), TopicSubscriber::of(subscriber));
        for signal in state.activities.in_room(room).collect::<Vec<_>>() {
            self.send_signal(state, subscriber, &signal);
        }
        for reply in state.replies.in_room(room).to_vec() {
            let numbers = self.number(state, reply.numbers());
            subscriber.outbox.push_reply_from_start(&reply, &subscriber.egress, numbers);
        }
        for approval in state.open_approvals.in_room(room).to_vec() {
            let (_, given) = self.number(state, 1);
            // An approval that exceeds the outbox is omitted, and the client can query it; closing the
            // connection would only make it reconnect.
            let frame = subscriber.egress.replay_event(&approval, self.epoch, given);
            push(frame.filter(|frame| subscriber.outbox.fits(std::slice::from_ref(frame))), subscriber);
        }
    }

    fn send_signal(&self, state: &mut FanoutState, subscriber: &Subscriber, signal: &Signal) {
        let (_, given) = self.number(state, 1);
        if let Some(bytes) = subscriber.egress.signal(signal, given) {
            subscriber.outbox.push_signal(bytes);
        }
    }
}
