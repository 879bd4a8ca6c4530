//! How a connection takes its seats: what it missed, where it stands, and what goes on there.

use super::batching::ReplayEvent;
use super::topic_subscribers::TopicSubscriber;
use super::{Fanout, FanoutState, Subscriber, SubscriberId, push};
use crate::Fault;
use bytes::Bytes;
use parlor_model::{Event, EventAudience, MemberChange, Position, RoomId, Seq, Signal};
use std::collections::HashSet;

/// How an attempt to follow a room live ended.
pub enum JoinResult {
    Live {
        from: Position,
    },
    /// What was missed is older than what is kept in memory, or more than the outbox holds: read the store first.
    NeedsReplay,
    /// The position is of something committed that is still to be told here: wait for it.
    NotPublishedYet,
}

/// Which rooms a connection follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoomFilter {
    /// Those of its person, as they come and go.
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

/// What a connection that follows many rooms may see, as it is found under the lock.
pub struct FollowScope {
    pub rooms: Vec<RoomId>,
    /// What is shown to it besides.
    pub signals: Vec<Signal>,
}

impl Fanout {
    /// Goes live in a room from `since`, telling what is kept in memory first, and what agents who are speaking have
    /// said so far. `admitted` is asked under the lock, so that no removal can slip between the question and the first
    /// event; `welcome` is said under it too, so that what it tells of the position is true where it stands.
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
        self.take_seats(id, since, None, admitted, welcome)
    }

    /// The same for many rooms at once, in one order; and for those that its person comes into later.
    pub fn follow(
        &self,
        id: SubscriberId,
        following: RoomFilter,
        since: Option<Seq>,
        admitted: impl FnOnce() -> Result<Option<FollowScope>, Fault>,
        welcome: impl FnOnce(Position) -> Option<Bytes>,
    ) -> Result<Option<JoinResult>, Fault> {
        self.take_seats(id, since, Some(following), admitted, welcome)
    }

    fn take_seats(
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
        let Some(subscriber) = state.viewers.get(&id).cloned() else { return Ok(None) };
        let (mut frames, mut looks_again) = (Vec::new(), false);
        if let Some(since) = since {
            let here: HashSet<&RoomId> = rooms.iter().collect();
            let for_them = |event: &Event| event.only_user().is_none_or(|person| *person == subscriber.user);
            // What is open is shown to everyone who takes a seat, below.
            let told = |event: &Event| !matches!(event, Event::ApprovalAsked(_));
            let known = |event_audience: &EventAudience| {
                event_audience.everyone
                    || event_audience.people.contains(&subscriber.user)
                    || event_audience.rooms.iter().any(|room| here.contains(room))
            };
            // Who may see something is known of now only: what happened in no room, and that a room is theirs no longer, is
            // told by having them look again.
            let elsewhere = |event: &Event| match event {
                Event::MembersChanged { room, change: MemberChange::Removed(member), .. } => {
                    member.user() == Some(&subscriber.user) && !here.contains(&room.id)
                }
                // Of one that was read from the log it is not known whose it was.
                Event::RoomRemoved { people, .. } => people.is_empty() || people.contains(&subscriber.user),
                event => event.audience().is_some_and(known),
            };
            let wanted = |kept: &&mut ReplayEvent| {
                let event = &kept.logged_event.event;
                event.room().is_some_and(|room| here.contains(room)) && for_them(event) && told(event)
            };
            let first = state.replay_buffer.partition_point(|kept| kept.logged_event.seq <= since);
            looks_again = following.is_some()
                && state.replay_buffer.range(first..).any(|kept| elsewhere(&kept.logged_event.event));
            let missed = state.replay_buffer.range_mut(first..).filter(wanted);
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
            self.seat(state, &subscriber, room);
        }
        let refresh = looks_again.then_some(&Signal::Refresh);
        for signal in signals.iter().chain(refresh) {
            self.show(state, &subscriber, signal);
        }
        Ok(Some(JoinResult::Live { from }))
    }

    /// Takes a seat in a room that its person came into.
    pub(super) fn follow_new_room(&self, state: &mut FanoutState, subscriber: &Subscriber, room: &RoomId) {
        if state.following.get(&subscriber.id).is_some_and(|following| following.includes(room)) {
            self.seat(state, subscriber, room);
        }
    }

    /// Takes a seat, and shows what goes on in the room.
    fn seat(&self, state: &mut FanoutState, subscriber: &Subscriber, room: &RoomId) {
        if state.rooms.contains(room, subscriber.id) {
            return;
        }
        state.rooms.add(room.clone(), TopicSubscriber::of(subscriber));
        for signal in state.activities.in_room(room).collect::<Vec<_>>() {
            self.show(state, subscriber, &signal);
        }
        for reply in state.replies.in_room(room).to_vec() {
            let numbers = self.number(state, reply.numbers());
            subscriber.outbox.push_reply_from_start(&reply, &subscriber.egress, numbers);
        }
        for question in state.open_approvals.in_room(room).to_vec() {
            let (_, given) = self.number(state, 1);
            // Whoever has no room for it can ask for it; to close the connection would only bring them back.
            let frame = subscriber.egress.replay_event(&question, self.epoch, given);
            push(frame.filter(|frame| subscriber.outbox.fits(std::slice::from_ref(frame))), subscriber);
        }
    }

    fn show(&self, state: &mut FanoutState, subscriber: &Subscriber, signal: &Signal) {
        let (_, given) = self.number(state, 1);
        if let Some(bytes) = subscriber.egress.signal(signal, given) {
            subscriber.outbox.push_signal(bytes);
        }
    }
}
