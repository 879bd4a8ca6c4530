//! Subscribing a connection to rooms or a path: replays missed events, sends the position, then the current state
//! of each room.

use super::fanout::{Fanout, FanoutState};
use super::item::{Item, Live, LiveFrame, Opened, OpenedFrame, Resync};
use super::reservations::Reservation;
use super::topic_subscribers::TopicSubscriber;
use super::viewers::Viewers;
use super::{Kinds, RoomFilter, Subscriber, SubscriberId};
use parlor_model::{Event, EventAudience, EventScope, MemberChange, Path, Position, RoomId, Seq, Signal};
use std::collections::HashSet;

/// Result of an attempt to subscribe.
pub enum Subscribed {
    Live,
    /// The missed events are no longer in the replay buffer, or exceed the outbox: replay them from the store
    /// first.
    NeedsReplay,
    /// The rights may have changed since they were read: read them again.
    Invalid,
    /// The facts that members of the presence set are derived from have to be read first.
    NeedsFacts,
    /// The connection is no longer registered.
    Disconnected,
}

/// A subscription whose rights have been read. It begins when the fan-out accepts it.
pub struct Subscription<'a> {
    pub id: SubscriberId,
    pub topics: Topics<'a>,
    /// Kinds of items of this feed.
    pub kinds: Kinds,
    /// Position from which on missed events are sent first.
    pub since: Option<Seq>,
    pub resync: Option<Resync>,
    /// Frame before the missed events, unless it has been sent.
    pub opened: Option<&'a OpenedFrame>,
    /// Frame after the missed events.
    pub live: Option<&'a LiveFrame>,
}

pub enum Topics<'a> {
    Rooms {
        /// The rooms that the connection may see.
        rooms: &'a [RoomId],
        /// Set for a connection that also receives rooms that its user joins later.
        following: Option<&'a RoomFilter>,
    },
    Path {
        path: &'a Path,
        /// Whether the role of the user permits the feed, not a grant.
        by_role: bool,
    },
}

impl Fanout {
    /// Subscribes a connection: sends the missed events from the replay buffer, then the state of each room. The
    /// fan-out must have reached the snapshot that the rights were read from. The positions in the frames are taken
    /// under the lock, so they are exact.
    pub fn subscribe(&self, reservation: &Reservation, subscription: &Subscription<'_>) -> Subscribed {
        let Subscription { id, topics, kinds, since, resync, opened, live } = subscription;
        let state = &mut *self.state.lock();
        if !reservation.is_valid() {
            return Subscribed::Invalid;
        }
        if kinds.includes(Kinds::PRESENCE) && !self.can_list_occupants(state, topics) {
            return Subscribed::NeedsFacts;
        }
        if since.is_some_and(|since| !state.replay_buffer.reaches(since)) {
            return Subscribed::NeedsReplay;
        }
        let Some(subscriber) = state.subscribers.get(id) else { return Subscribed::Disconnected };
        let subscriber = Subscriber { kinds: *kinds, ..subscriber.clone() };
        let (missed, needs_refresh) = match since {
            Some(since) => state.missed(&subscriber, topics, *since),
            None => (Vec::new(), false),
        };
        let (missed_any, at) = (!missed.is_empty(), state.published_through);
        let position = |seq| Position { epoch: self.epoch, seq };
        let opened = opened.map(|frame| {
            let from = position(since.unwrap_or(at));
            Item::Opened {
                opened: Opened { from, missed: missed_any, resync: *resync },
                frame: frame.clone(),
            }
        });
        let live = live.map(|frame| Item::Live {
            live: Live { at: position(at), resync: *resync },
            frame: frame.clone(),
        });
        let items: Vec<Item> = opened.into_iter().chain(missed).chain(live).collect();
        if missed_any && !subscriber.outbox.fits(&items) {
            return Subscribed::NeedsReplay;
        }
        for item in items {
            subscriber.outbox.push_item(subscriber.codec, item);
        }
        match *topics {
            Topics::Rooms { rooms, following } => {
                state.following.extend(following.map(|following| (*id, following.clone())));
                for room in rooms {
                    self.subscribe_to_room(state, &subscriber, room);
                }
                if following.is_some_and(|following| *following == RoomFilter::All) {
                    self.subscribe_as_owner(state, &subscriber);
                }
            }
            Topics::Path { path, by_role } => {
                state.paths.add(path.clone(), TopicSubscriber::of(&subscriber));
                if by_role {
                    state.on_paths_by_role.insert(*id);
                }
                self.send_occupants(state, &subscriber, path);
            }
        }
        if needs_refresh {
            self.send_signal(state, &subscriber, &Signal::Refresh);
        }
        Subscribed::Live
    }

    /// Subscribes a connection to a room that its user has joined, if the connection follows it.
    pub(super) fn follow_new_room(&self, state: &mut FanoutState, subscriber: &Subscriber, room: &RoomId) {
        if state.following.get(&subscriber.id).is_some_and(|following| following.includes(room)) {
            self.subscribe_to_room(state, subscriber, room);
        }
    }

    /// Subscribes a connection to a room and sends the state of its runs and its backlogs.
    fn subscribe_to_room(&self, state: &mut FanoutState, subscriber: &Subscriber, room: &RoomId) {
        let is_open = state.rooms.contains(room, subscriber.id);
        state.rooms.add(room.clone(), TopicSubscriber::of(subscriber));
        self.send_occupants(state, subscriber, &Path::of_room(room));
        if is_open {
            return;
        }
        self.send_state(state, subscriber, &Viewers::Room(room.clone()));
        for backlog in state.room_state.backlogs(room).to_vec() {
            self.send_signal(state, subscriber, &backlog);
        }
    }

    /// Subscribes a connection to the runs without a room of its user's agents, and sends their state.
    fn subscribe_as_owner(&self, state: &mut FanoutState, subscriber: &Subscriber) {
        let is_open = state.owners.contains(&subscriber.user, subscriber.id);
        state.owners.add(subscriber.user.clone(), TopicSubscriber::of(subscriber));
        if !is_open {
            self.send_state(state, subscriber, &Viewers::Owner(subscriber.user.clone()));
        }
    }

    /// Sends the activities, streaming replies and open approvals of the runs that these viewers see.
    fn send_state(&self, state: &mut FanoutState, subscriber: &Subscriber, viewers: &Viewers) {
        for signal in state.activities.of_viewers(viewers).collect::<Vec<_>>() {
            self.send_signal(state, subscriber, &signal);
        }
        if subscriber.kinds.includes(Kinds::REPLY_TEXT) {
            for reply in state.replies.of_viewers(viewers).to_vec() {
                let numbers = self.number(state, reply.numbers());
                subscriber.outbox.push_reply_from_start(&reply, subscriber.codec, numbers);
            }
        }
        if subscriber.kinds.includes(Kinds::MERGED_REPLIES) {
            for reply in state.replies.of_viewers(viewers).to_vec() {
                for signal in reply.merged_so_far() {
                    self.send_signal(state, subscriber, &signal);
                }
            }
        }
        if subscriber.kinds.includes(Kinds::CHANGES) {
            for approval in state.room_state.open_approvals(viewers).to_vec() {
                let (_, stamp) = self.number(state, 1);
                let item = Item::OpenApproval { asked: state.shared(&approval), stamp };
                // An approval that exceeds the outbox is omitted, and the client can query it; closing the
                // connection would only make it reconnect.
                if subscriber.outbox.fits(std::slice::from_ref(&item)) {
                    subscriber.outbox.push_item(subscriber.codec, item);
                }
            }
        }
    }
}

impl FanoutState {
    /// The events after `since` in the replay buffer that the subscriber may see, and whether it missed events that are
    /// not replayed, so that it must reload its state.
    fn missed(&mut self, subscriber: &Subscriber, topics: &Topics<'_>, since: Seq) -> (Vec<Item>, bool) {
        match *topics {
            Topics::Rooms { rooms, following } => self.missed_in_rooms(subscriber, rooms, following, since),
            Topics::Path { path, .. } => (self.missed_on_path(subscriber, path, since), false),
        }
    }

    fn missed_in_rooms(
        &mut self,
        subscriber: &Subscriber,
        rooms: &[RoomId],
        following: Option<&RoomFilter>,
        since: Seq,
    ) -> (Vec<Item>, bool) {
        let here: HashSet<&RoomId> = rooms.iter().collect();
        let (is_following, is_owner) =
            (following.is_some(), following.is_some_and(|following| *following == RoomFilter::All));
        let is_visible = |event: &Event| match event.scope() {
            EventScope::Owner(owner) => is_owner && *owner == subscriber.user,
            _ => event.room().is_some_and(|room| here.contains(room)),
        };
        let for_them = |event: &Event| event.only_user().is_none_or(|person| *person == subscriber.user);
        // Open approvals are sent when each room is subscribed.
        let is_replayed = |event: &Event| !matches!(event, Event::ApprovalAsked(_));
        let is_in_audience = |audience: &EventAudience| {
            audience.everyone
                || audience.people.contains(&subscriber.user)
                || audience.rooms.iter().any(|room| here.contains(room))
        };
        // The fan-out does not know past permissions. It therefore replays neither missed events without a room nor
        // events of lost rooms: a refresh signal makes the client reload its state.
        let elsewhere = |event: &Event| match event {
            Event::MembersChanged { room, change: MemberChange::Removed(member), .. } => {
                member.user() == Some(&subscriber.user) && !here.contains(&room.id)
            }
            // A removal that was read from the log does not name the room's users.
            Event::RoomRemoved { people, .. } => people.is_empty() || people.contains(&subscriber.user),
            event => event.audience().is_some_and(is_in_audience),
        };
        let (mut items, mut needs_refresh) = (Vec::new(), false);
        for kept in self.replay_buffer.after(since) {
            let event = &kept.logged_event.event;
            needs_refresh |= is_following && elsewhere(event);
            if is_visible(event)
                && for_them(event)
                && is_replayed(event)
                && subscriber.kinds.includes(Kinds::of_event(event))
            {
                let root = event.room().and_then(|room| self.roots.of(room));
                items.push(kept.item(root));
            }
        }
        (items, needs_refresh)
    }

    fn missed_on_path(&mut self, subscriber: &Subscriber, path: &Path, since: Seq) -> Vec<Item> {
        let mut items = Vec::new();
        for kept in self.replay_buffer.after(since) {
            let event = &kept.logged_event.event;
            if event.path() == Some(path) && subscriber.kinds.includes(Kinds::of_event(event)) {
                items.push(kept.item(None));
            }
        }
        items
    }
}
