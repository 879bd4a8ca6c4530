//! The fan-out: state of all subscriptions, and the publication of committed events to them.

use super::activities::Activities;
use super::batching::{MailBatch, MessageBatches};
use super::interest::Kinds;
use super::item::{Events, Item, LostRoom, Shared};
use super::merged_replies::Merging;
use super::occupants::Occupants;
use super::presence::Departures;
use super::replay_buffer::ReplayBuffer;
use super::reply_text::Replies;
use super::reservations::{Reservation, Reservations};
use super::room_state::RoomState;
use super::topic_subscribers::{TopicSubscriber, TopicSubscribers};
use super::{Encoding, RoomFilter, RoomRoots, Subscriber, SubscriberId};
use crate::Limits;
use crate::ports::Clock;
use bytes::Bytes;
use parking_lot::Mutex;
use parlor_model::{
    AgentId, Destination, Epoch, Event, EventAudience, EventScope, KeyId, LoggedEvent, Mailbox, MemberChange,
    Ordinal, Path, Principal, RoomId, Seq, Signal, SiteRole, UserId,
};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{Notify, Semaphore, watch};

pub struct Fanout {
    next_subscriber: AtomicU64,
    pub(super) epoch: Epoch,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) roots: Arc<RoomRoots>,
    /// Notified when the signals since the newest event have used half of the ordinals reserved for them. The
    /// driver then appends an empty event, which provides new ones.
    pub(super) ordinals_low: Notify,
    /// `Seq` of the newest published event, for tasks that wait for it.
    pub(super) published: watch::Sender<Seq>,
    /// Wakes the presence loop when a user has gone offline or the hub closes.
    pub(super) departed: Notify,
    /// Wakes the loop of presence sets when facts are needed, a grace period has begun or the hub closes.
    pub(super) occupants_changed: Notify,
    /// Lets one task at a time read the facts that members of presence sets are derived from.
    pub(super) loading: Semaphore,
    /// Wakes the loop that publishes merged replies.
    pub(super) merges: Notify,
    /// Locked by the log tailer while it publishes a batch, and by connections that subscribe or disconnect.
    pub(super) state: Mutex<FanoutState>,
}

pub(super) struct FanoutState {
    pub(super) published_through: Seq,
    /// Highest ordinal assigned so far.
    pub(super) last_ordinal: Ordinal,
    pub(super) replay_buffer: ReplayBuffer,
    pub(super) reservations: Reservations,
    pub(super) subscribers: HashMap<SubscriberId, Subscriber>,
    pub(super) by_user: HashMap<UserId, Vec<SubscriberId>>,
    /// Connections whose API key may act but may not receive events for its user.
    pub(super) write_only: HashSet<SubscriberId>,
    pub(super) rooms: TopicSubscribers<RoomId>,
    /// Paths outside rooms.
    pub(super) paths: TopicSubscribers<Path>,
    /// Connections that follow paths by the role of their user, not by a grant.
    pub(super) on_paths_by_role: HashSet<SubscriberId>,
    /// Keys of connections that are valid only while their owner is a site admin. Entries of revoked keys are removed.
    pub(super) admin_keys: HashSet<KeyId>,
    /// Connections that are subscribed to all rooms of their user, including rooms joined later.
    pub(super) following: HashMap<SubscriberId, RoomFilter>,
    /// Connections of each user that are subscribed to all rooms of the user, for the runs of the user's agents that
    /// have no room.
    pub(super) owners: TopicSubscribers<UserId>,
    pub(super) mailboxes: TopicSubscribers<Mailbox>,
    /// Under the same lock as the room subscriptions: a chunk is either in the text sent to a late joiner or
    /// published live.
    pub(super) replies: Replies,
    pub(super) merging: Merging,
    pub(super) activities: Activities,
    /// Also read by queries, without this lock.
    pub(super) roots: Arc<RoomRoots>,
    pub(super) room_state: RoomState,
    pub(super) departures: Departures,
    pub(super) occupants: Occupants,
}

impl Fanout {
    pub fn new(epoch: Epoch, published_through: Seq, limits: &Limits, clock: Arc<dyn Clock>) -> Self {
        let roots = Arc::<RoomRoots>::default();
        let state = FanoutState {
            published_through,
            last_ordinal: Ordinal::after(published_through),
            replay_buffer: ReplayBuffer::new(published_through, limits),
            reservations: Reservations::default(),
            subscribers: HashMap::new(),
            by_user: HashMap::new(),
            write_only: HashSet::new(),
            rooms: TopicSubscribers::default(),
            paths: TopicSubscribers::default(),
            on_paths_by_role: HashSet::new(),
            admin_keys: HashSet::new(),
            following: HashMap::new(),
            owners: TopicSubscribers::default(),
            mailboxes: TopicSubscribers::default(),
            replies: Replies::default(),
            merging: Merging::default(),
            activities: Activities::default(),
            roots: roots.clone(),
            room_state: RoomState::default(),
            departures: Departures::default(),
            occupants: Occupants::new(limits, clock.clone()),
        };
        Self {
            next_subscriber: AtomicU64::new(1),
            epoch,
            clock,
            roots,
            ordinals_low: Notify::new(),
            departed: Notify::new(),
            occupants_changed: Notify::new(),
            loading: Semaphore::new(1),
            merges: Notify::new(),
            published: watch::Sender::new(published_through),
            state: Mutex::new(state),
        }
    }

    pub(crate) fn roots(&self) -> &Arc<RoomRoots> {
        &self.roots
    }

    pub fn seen(&self) -> Seq {
        self.state.lock().published_through
    }

    pub fn next_subscriber_id(&self) -> SubscriberId {
        SubscriberId(self.next_subscriber.fetch_add(1, Ordering::Relaxed))
    }

    /// Starts a subscription: the reservation becomes invalid when an event is published that may change the
    /// rights of this user, or the owner of this agent.
    pub fn reserve(&self, user: &UserId, agent: Option<&AgentId>) -> Arc<Reservation> {
        self.state.lock().reservations.add(user, agent)
    }

    /// Records a key that is valid only while its owner is a site admin, before a connection with it is registered.
    pub fn add_admin_key(&self, key: KeyId) {
        self.state.lock().admin_keys.insert(key);
    }

    /// Registers a connection and queues the greeting as its first frame. Returns whether its user has just come
    /// online, or `None` if the reservation is no longer valid.
    pub fn connect(
        &self,
        reservation: &Reservation,
        mut subscriber: Subscriber,
        receives_events: bool,
        greeting: Bytes,
    ) -> Option<bool> {
        let mut state = self.state.lock();
        if !reservation.is_valid() {
            return None;
        }
        if !receives_events {
            // A connection with a limited credential receives no events of its user, but makes its user online if its
            // client can enter places.
            subscriber.present &= subscriber.enters_places;
            state.write_only.insert(subscriber.id);
        }
        let first = subscriber.present && !state.is_present(&subscriber.user);
        if subscriber.present {
            state.departures.cancel(&subscriber.user);
        }
        if !greeting.is_empty() {
            subscriber.outbox.push(greeting);
        }
        state.by_user.entry(subscriber.user.clone()).or_default().push(subscriber.id);
        state.subscribers.insert(subscriber.id, subscriber.clone());
        self.occupants_connected(&mut state, &subscriber);
        Some(first)
    }

    /// Replaces the credential of the subscribers of a session. Returns `false` if the reservation is no longer valid.
    pub fn reauthorise(
        &self,
        reservation: &Reservation,
        ids: &[SubscriberId],
        principal: &Principal,
        receives_events: bool,
    ) -> bool {
        let mut state = self.state.lock();
        if !reservation.is_valid() {
            return false;
        }
        for id in ids {
            let Some(subscriber) = state.subscribers.get_mut(id) else { continue };
            subscriber.principal = principal.clone();
            match receives_events {
                true => state.write_only.remove(id),
                false => state.write_only.insert(*id),
            };
        }
        true
    }

    /// Removes a connection. If it was the last one of its user, the user goes offline after the grace period.
    pub fn disconnect(&self, id: SubscriberId) {
        let mut state = self.state.lock();
        state.remove(id);
        self.wake_occupants(&mut state);
        let has_departed = !state.departures.is_empty();
        drop(state);
        if has_departed {
            self.departed.notify_one();
        }
    }

    pub fn connections(&self) -> usize {
        self.state.lock().subscribers.len()
    }

    pub fn leave(&self, id: SubscriberId, topic: &Destination) {
        let mut state = self.state.lock();
        match topic {
            Destination::Room(room) => state.rooms.remove(room, id),
            Destination::Path(path) => state.paths.remove(path, id),
        }
    }

    /// Ends all room subscriptions of a connection. Subscriptions that it opens afterwards use `encoding`.
    pub fn set_encoding(&self, id: SubscriberId, encoding: Encoding) {
        let mut state = self.state.lock();
        state.rooms.remove_everywhere(id);
        state.owners.remove_everywhere(id);
        state.following.remove(&id);
        if let Some(subscriber) = state.subscribers.get_mut(&id) {
            subscriber.set_encoding(encoding);
        }
    }

    pub fn is_in(&self, id: SubscriberId, topic: &Destination) -> bool {
        let state = self.state.lock();
        match topic {
            Destination::Room(room) => state.rooms.contains(room, id),
            Destination::Path(path) => state.paths.contains(path, id),
        }
    }

    /// Pushes new mail of a mailbox to a connection. Returns `false` if the reservation is no longer valid.
    pub fn listen(&self, reservation: &Reservation, id: SubscriberId, mailbox: Mailbox) -> bool {
        let mut state = self.state.lock();
        if !reservation.is_valid() {
            return false;
        }
        if let Some(subscriber) = state.subscribers.get(&id).map(TopicSubscriber::of) {
            state.mailboxes.add(mailbox, subscriber);
        }
        true
    }

    /// Publishes a batch of committed events, in order. The batch must continue directly after the last
    /// published event.
    pub fn publish(&self, batch: &[LoggedEvent]) {
        let mut state = self.state.lock();
        let (mut batches, mut mail) = (MessageBatches::default(), MailBatch::default());
        for logged_event in batch {
            debug_assert_eq!(
                logged_event.seq,
                state.published_through.next(),
                "the log tailer passes on events without gaps"
            );
            if !matches!(logged_event.event, Event::MessagePosted { .. }) {
                batches.flush(&state);
                mail.flush(&state);
            }
            let left = self.roots.apply_before_publish(&logged_event.event);
            if let Event::RoomChanged(room) | Event::MembersChanged { room, .. } = &logged_event.event {
                state.replies.set_root(&room.id, self.roots.of(&room.id).as_ref());
            }
            if let Event::RunChanged(run) = &logged_event.event {
                self.end_activity(&mut state, run);
            }
            state.published_through = logged_event.seq;
            state.last_ordinal = Ordinal::after(logged_event.seq);
            state.reservations.apply_event(&logged_event.event);
            state.room_state.apply_event(logged_event);
            self.publish_event(&mut state, logged_event, &mut batches, &mut mail);
            self.apply_to_occupants(&mut state, &logged_event.event);
            self.roots.apply_after_publish(&logged_event.event);
            if let Some(room) = left {
                self.publish_signal(&mut state, &room, &Signal::Refresh, None);
            }
            state.replay_buffer.apply_event(logged_event);
        }
        batches.flush(&state);
        self.publish_failures(&mut state);
        mail.flush(&state);
        state.replay_buffer.truncate();
        self.wake_occupants(&mut state);
        let has_departed = !state.departures.is_empty();
        self.published.send_replace(state.published_through);
        drop(state);
        if has_departed {
            self.departed.notify_one();
        }
    }

    /// A receiver for the `Seq` of the newest published event.
    pub fn watch(&self) -> watch::Receiver<Seq> {
        self.published.subscribe()
    }

    pub fn has_published(&self, seq: Seq) -> bool {
        *self.published.borrow() >= seq
    }

    /// Waits until all events up to `seq` have been published.
    pub async fn wait_until_published(&self, seq: Seq) {
        // The sender lives as long as this value, so waiting cannot fail.
        let _ = self.published.subscribe().wait_for(|published| *published >= seq).await;
    }

    /// Publishes an event to the connections that it reaches. Events that begin or end access, and those with a live
    /// part, have a case of their own.
    fn publish_event(
        &self,
        state: &mut FanoutState,
        logged_event: &LoggedEvent,
        batches: &mut MessageBatches,
        mail: &mut MailBatch,
    ) {
        match &logged_event.event {
            Event::MessagePosted { message, deliveries } => {
                batches.add(state, &message.destination, logged_event);
                mail.add(state, message, deliveries);
            }
            Event::MembersChanged { room, change, .. } => {
                self.publish_to_room(state, &room.id, logged_event);
                if let MemberChange::Added(member) | MemberChange::Removed(member) = change {
                    self.publish_rooms_changed(state, member.user());
                }
                match change {
                    MemberChange::Added(member) => {
                        // Connections of the added user receive the event although they are not subscribed to
                        // the room yet.
                        let connections =
                            member.user().map(|user| state.subscribers_of(user)).unwrap_or_default();
                        for subscriber in connections {
                            if !state.rooms.contains(&room.id, subscriber.id) {
                                state.push_event(&subscriber, logged_event);
                                self.follow_new_room(state, &subscriber, &room.id);
                            }
                        }
                    }
                    MemberChange::Removed(member) => {
                        // Includes connections whose credential is limited to some places: they have open rooms, but
                        // receive nothing else.
                        let connections: Vec<Subscriber> = member
                            .user()
                            .map(|user| state.all_subscribers_of(user).cloned().collect())
                            .unwrap_or_default();
                        for subscriber in connections {
                            state.push_lost(&subscriber, &room.id, logged_event);
                            state.rooms.remove(&room.id, subscriber.id);
                        }
                    }
                    MemberChange::Changed(_) => {}
                }
            }
            Event::RoomRemoved { room, people } => {
                self.publish_to_room(state, room, logged_event);
                self.publish_rooms_changed(state, people.iter());
                state.replies.close_where(|reply| reply.place.room() == Some(room));
                state.activities.close_where(|of, _| of.room() == Some(room));
                let in_room = state.rooms.clear(room);
                for subscriber in people.iter().flat_map(|user| state.subscribers_of(user)) {
                    if !in_room.contains(&subscriber.id) {
                        state.push_lost(&subscriber, room, logged_event);
                    }
                }
            }
            Event::UserRemoved(user) => state.end(user, |_| true),
            Event::UserChanged { user, audience } => {
                self.publish_to_audience(state, audience, logged_event);
                if user.role != SiteRole::Admin {
                    state.end_paths_by_role(&user.id);
                    state.end_admin_keys(&user.id);
                }
            }
            Event::SignInsEnded(user) => {
                state.end(user, |principal| matches!(principal, Principal::Person { .. }));
            }
            Event::SignInEnded { user, sign_in } => state.end(
                user,
                |principal| matches!(principal, Principal::Person { sign_in: own, .. } if own == sign_in),
            ),
            // The id may belong to another user later, so all subscriptions to its mailboxes end.
            Event::AgentRemoved { agent, audience } => {
                state.mailboxes.clear_where(|mailbox| mailbox.agent == *agent);
                state.replies.close_where(|reply| reply.agent == *agent);
                state.activities.close_where(|_, of| of == agent);
                self.publish_to_audience(state, audience, logged_event);
            }
            Event::KeyRevoked { user, key } | Event::TokensRevoked { user, key } => {
                state.end(
                    user,
                    |principal| matches!(principal, Principal::Program { key: own, .. } if own == key),
                );
                if matches!(logged_event.event, Event::KeyRevoked { .. }) {
                    state.admin_keys.remove(key);
                }
            }
            Event::RunChanged(run) => {
                state.apply_run(run);
                self.publish_to_viewers(state, run.place.scope(), logged_event);
                let begun = state.activities.begin(run, state.last_ordinal.plus(1));
                self.publish_signals(state, &run.place, &begun);
            }
            event => match event.scope() {
                scope @ (EventScope::Room(_) | EventScope::Owner(_)) => {
                    self.publish_to_viewers(state, scope, logged_event)
                }
                // Also sent to connections that are not subscribed to the room: its entry in the user's list of
                // rooms changes.
                EventScope::User(user) => {
                    for subscriber in state.subscribers_of(user) {
                        state.push_event(&subscriber, logged_event);
                    }
                }
                EventScope::Audience(audience) => self.publish_to_audience(state, audience, logged_event),
                EventScope::None => {}
            },
        }
    }

    fn publish_to_room(&self, state: &FanoutState, room: &RoomId, logged_event: &LoggedEvent) {
        self.publish_to_viewers(state, EventScope::Room(room), logged_event);
    }

    fn publish_to_viewers(&self, state: &FanoutState, scope: EventScope<'_>, logged_event: &LoggedEvent) {
        let (kind, mut shared) = (Kinds::of_event(&logged_event.event), None);
        state.each_viewer(scope, |subscriber| {
            if subscriber.kinds.includes(kind) {
                let event: &Arc<Events> = shared.get_or_insert_with(|| state.shared(logged_event));
                subscriber.outbox.push_item(subscriber.codec, Item::Events(event.clone()));
            }
        });
    }

    /// Publishes an event without a room, once to every connection that follows all rooms and belongs to the
    /// audience.
    fn publish_to_audience(&self, state: &FanoutState, audience: &EventAudience, logged_event: &LoggedEvent) {
        let mut recipients = HashSet::new();
        if audience.everyone {
            recipients.extend(state.following.keys().copied());
        }
        for user in &audience.people {
            recipients.extend(state.by_user.get(user).into_iter().flatten().copied());
        }
        for room in &audience.rooms {
            state.rooms.each(room, |subscriber| {
                recipients.insert(subscriber.id);
            });
        }
        let (kind, mut shared) = (Kinds::of_event(&logged_event.event), None);
        for recipient in recipients.iter().filter(|id| state.following.contains_key(*id)) {
            if let Some(subscriber) = state.subscribers.get(recipient)
                && subscriber.kinds.includes(kind)
            {
                let event: &Arc<Events> = shared.get_or_insert_with(|| state.shared(logged_event));
                subscriber.outbox.push_item(subscriber.codec, Item::Events(event.clone()));
            }
        }
    }
}

impl FanoutState {
    /// The event as an item, with the current project root of its room.
    pub(super) fn shared(&self, logged_event: &LoggedEvent) -> Arc<Events> {
        let root = logged_event.event.room().and_then(|room| self.roots.of(room));
        Events::of([logged_event.clone()].into(), root)
    }

    fn push_event(&self, subscriber: &Subscriber, logged_event: &LoggedEvent) {
        if subscriber.kinds.includes(Kinds::of_event(&logged_event.event)) {
            subscriber.outbox.push_item(subscriber.codec, Item::Events(self.shared(logged_event)));
        }
    }

    fn push_lost(&self, subscriber: &Subscriber, room: &RoomId, by: &LoggedEvent) {
        // A feed of a single room or path may have other kinds than its connection.
        let follows_changes = subscriber.kinds.includes(Kinds::CHANGES) && self.receives_events(subscriber);
        if follows_changes || self.rooms.contains(room, subscriber.id) {
            let lost = Shared::<LostRoom>::of(room, by, self.roots.of(room));
            subscriber.outbox.push_item(subscriber.codec, Item::RoomLost(lost));
        }
    }
}
