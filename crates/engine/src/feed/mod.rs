//! The fan-out: delivers each committed event to every connection that may see it at that moment.
//!
//! Permissions follow from the same events, in order: a member removed at `Seq` n is unsubscribed from the
//! room while n is published, and so receives no later events. A frame for many subscribers of one protocol
//! is encoded once and shared.

mod activities;
mod batching;
mod join;
mod log_tailer;
mod open_approvals;
mod queue;
mod reply_buffer;
mod reply_text;
mod room_roots;
mod topic_subscribers;

pub use join::{FollowScope, JoinResult, RoomFilter};
pub use log_tailer::{LogTailer, Projection};
pub use queue::{Drained, Outbox, OutboxLimits};
pub use reply_buffer::{ReplyBuffer, ReplyLimits};
pub use reply_text::ChunkRejected;
pub use room_roots::RoomRoots;

use crate::ports::Clock;
use crate::{Fault, Limits};
use activities::Activities;
use batching::{EncodedByProtocol, MailBatch, ReplayEvent, RoomBatches};
use bytes::Bytes;
use open_approvals::OpenApprovals;
use parking_lot::Mutex;
use parlor_model::{
    AgentId, Chunk, Delivery, Epoch, Event, EventAudience, LoggedEvent, Mailbox, MemberChange, Message,
    MessageId, Ordinal, Principal, Reaction, Refusal, RoomId, Run, RunEvent, RunId, RunState, Seq, Signal,
    SignalStamp, UserId,
};
use reply_text::{Replies, StreamingReply};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{Notify, watch};
use topic_subscribers::{TopicSubscriber, TopicSubscribers};

/// Encoder of one protocol: returns complete bytes for its kind of socket, framing included.
pub trait Egress: Send + Sync {
    /// Returns `None` if this protocol has no frame for the event.
    fn event(&self, logged_event: &LoggedEvent, epoch: Epoch) -> Option<Bytes>;
    /// Encodes an earlier event whose state still applies, such as an open approval, for a late joiner.
    fn replay_event(&self, logged_event: &LoggedEvent, epoch: Epoch, _: SignalStamp) -> Option<Bytes> {
        self.event(logged_event, epoch)
    }
    /// Encodes the notice to a user who has just lost access to the room through the event `by`.
    fn room_lost(&self, room: &RoomId, by: &LoggedEvent) -> Option<Bytes>;
    fn delivery(&self, message: &Message, delivery: &Delivery) -> Option<Bytes>;
    fn signal(&self, signal: &Signal, given: SignalStamp) -> Option<Bytes>;
    fn disconnect_frame(&self, reason: DisconnectReason) -> Bytes;
    /// Whether all connections of the protocol share this encoder: then its frames are worth caching.
    fn is_shared(&self) -> bool {
        true
    }
    /// Whether subscribers receive the events of all their rooms in one total order. Otherwise only the order
    /// within each room is kept.
    fn is_totally_ordered(&self) -> bool {
        false
    }
}

/// Reason why the hub closes a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisconnectReason {
    TooSlow,
    Revoked,
    ShuttingDown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SubscriberId(pub(crate) u64);

/// One authenticated connection. A socket may own several.
#[derive(Clone)]
pub struct Subscriber {
    pub id: SubscriberId,
    pub user: UserId,
    pub principal: Principal,
    pub egress: Arc<dyn Egress>,
    pub outbox: Arc<Outbox>,
    /// Whether this connection makes its user count as online.
    pub present: bool,
    /// Whether this connection receives events only while it follows rooms ([`crate::Hub::follow`]). An event
    /// that is published before that is part of the replay; delivering it at once would repeat it.
    pub only_follows: bool,
}

/// Whether a connection may receive events for its user. Keys that may only write, or only host agents, may
/// not.
pub struct ReceivesEvents(pub bool);

pub struct Fanout {
    next_subscriber: AtomicU64,
    epoch: Epoch,
    clock: Arc<dyn Clock>,
    roots: Arc<RoomRoots>,
    /// Notified when the signals since the newest event have used half of the ordinals reserved for them. The
    /// driver then appends an empty event, which provides new ones.
    ordinals_low: Notify,
    recent_events: usize,
    recent_bytes: usize,
    /// `Seq` of the newest published event, for tasks that wait for it.
    published: watch::Sender<Seq>,
    /// Locked by the log tailer while it publishes a batch, and by connections that subscribe or disconnect.
    state: Mutex<FanoutState>,
}

struct FanoutState {
    published_through: Seq,
    /// Highest ordinal assigned so far.
    last_ordinal: Ordinal,
    /// Replay buffer: the newest events visible to users, in order, for reconnecting clients. Events that
    /// only concern mailboxes are excluded.
    replay_buffer: VecDeque<ReplayEvent>,
    /// Low-water mark: oldest `Seq` from which the replay buffer is complete.
    replay_floor: Seq,
    /// Bytes of text in the replay buffer.
    recent_bytes: usize,
    subscribers: HashMap<SubscriberId, Subscriber>,
    by_user: HashMap<UserId, Vec<SubscriberId>>,
    /// Connections whose API key may act but may not receive events for its user.
    write_only: HashSet<SubscriberId>,
    rooms: TopicSubscribers<RoomId>,
    /// Connections that are subscribed to all rooms of their user, including rooms joined later.
    following: HashMap<SubscriberId, RoomFilter>,
    mailboxes: TopicSubscribers<Mailbox>,
    /// Under the same lock as the room subscriptions: a chunk is either in the text sent to a late joiner or
    /// published live.
    replies: Replies,
    activities: Activities,
    open_approvals: OpenApprovals,
}

impl Fanout {
    pub fn new(epoch: Epoch, published_through: Seq, limits: &Limits, clock: Arc<dyn Clock>) -> Self {
        let state = FanoutState {
            published_through,
            last_ordinal: Ordinal::after(published_through),
            replay_buffer: VecDeque::new(),
            replay_floor: published_through.next(),
            recent_bytes: 0,
            subscribers: HashMap::new(),
            by_user: HashMap::new(),
            write_only: HashSet::new(),
            rooms: TopicSubscribers::default(),
            following: HashMap::new(),
            mailboxes: TopicSubscribers::default(),
            replies: Replies::default(),
            activities: Activities::default(),
            open_approvals: OpenApprovals::default(),
        };
        Self {
            next_subscriber: AtomicU64::new(1),
            epoch,
            clock,
            roots: Arc::default(),
            ordinals_low: Notify::new(),
            recent_events: limits.recent_events,
            recent_bytes: limits.recent_bytes,
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

    /// Registers a connection if `admitted` allows it under the lock, and queues the greeting as its first
    /// frame. Returns the value of `admitted` and whether the user has just come online.
    pub fn connect<T>(
        &self,
        mut subscriber: Subscriber,
        greeting: Bytes,
        admitted: impl FnOnce() -> Result<Result<(T, ReceivesEvents), Refusal>, Fault>,
    ) -> Result<Result<(T, bool), Refusal>, Fault> {
        let mut state = self.state.lock();
        let (admission, ReceivesEvents(receives_events)) = match admitted()? {
            Ok(admission) => admission,
            Err(refusal) => return Ok(Err(refusal)),
        };
        if !receives_events {
            subscriber.present = false;
            state.write_only.insert(subscriber.id);
        }
        let first = subscriber.present && !state.is_present(&subscriber.user);
        if !greeting.is_empty() {
            subscriber.outbox.push(greeting);
        }
        state.by_user.entry(subscriber.user.clone()).or_default().push(subscriber.id);
        state.subscribers.insert(subscriber.id, subscriber);
        Ok(Ok((admission, first)))
    }

    /// Removes a connection. Returns whether its user is no longer online.
    pub fn disconnect(&self, id: SubscriberId) -> bool {
        let mut state = self.state.lock();
        let Some(subscriber) = state.remove(id) else { return false };
        subscriber.present && !state.is_present(&subscriber.user)
    }

    pub fn is_present(&self, user: &UserId) -> bool {
        self.state.lock().is_present(user)
    }

    pub fn connections(&self) -> usize {
        self.state.lock().subscribers.len()
    }

    pub fn leave(&self, id: SubscriberId, room: &RoomId) {
        self.state.lock().rooms.remove(room, id);
    }

    pub fn is_in(&self, id: SubscriberId, room: &RoomId) -> bool {
        self.state.lock().rooms.contains(room, id)
    }

    /// Pushes new mail of a mailbox to a connection. `admitted` is called under the lock, as in `join`.
    pub fn listen(
        &self,
        id: SubscriberId,
        mailbox: Mailbox,
        admitted: impl FnOnce() -> Result<bool, Fault>,
    ) -> Result<bool, Fault> {
        let mut state = self.state.lock();
        if !admitted()? {
            return Ok(false);
        }
        let Some(subscriber) = state.subscribers.get(&id).map(TopicSubscriber::of) else { return Ok(false) };
        state.mailboxes.add(mailbox, subscriber);
        Ok(true)
    }

    /// Publishes a batch of committed events, in order. The batch must continue directly after the last
    /// published event.
    pub fn publish(&self, batch: &[LoggedEvent]) {
        let mut state = self.state.lock();
        let (mut room_batches, mut mail) = (RoomBatches::default(), MailBatch::default());
        for logged_event in batch {
            debug_assert_eq!(
                logged_event.seq,
                state.published_through.next(),
                "the log tailer passes on events without gaps"
            );
            if !matches!(logged_event.event, Event::MessagePosted { .. }) {
                room_batches.flush(&state, self.epoch);
                mail.flush();
            }
            let left = self.roots.apply_before_publish(&logged_event.event);
            if let Event::RunChanged(run) = &logged_event.event {
                self.end_activity(&mut state, run);
            }
            state.published_through = logged_event.seq;
            state.last_ordinal = Ordinal::after(logged_event.seq);
            state.open_approvals.apply_event(logged_event);
            self.publish_event(&mut state, logged_event, &mut room_batches, &mut mail);
            self.roots.apply_after_publish(&logged_event.event);
            if let Some(room) = left {
                self.publish_signal(&mut state, &room, &Signal::Refresh, None);
            }
            if let Event::MessageDeleted { message, .. } = &logged_event.event {
                state.replace_with_tombstone(message);
            }
            if logged_event.event.room().is_some() || logged_event.event.audience().is_some() {
                state.recent_bytes += length(&logged_event.event);
                state.replay_buffer.push_back(ReplayEvent::new(logged_event.clone()));
            }
        }
        room_batches.flush(&state, self.epoch);
        mail.flush();
        while state.replay_buffer.len() > self.recent_events || state.recent_bytes > self.recent_bytes {
            let Some(oldest) = state.replay_buffer.pop_front() else { break };
            state.recent_bytes -= length(&oldest.logged_event.event);
            state.replay_floor = oldest.logged_event.seq.next();
        }
        self.published.send_replace(state.published_through);
    }

    /// A receiver for the `Seq` of the newest published event.
    pub fn watch(&self) -> watch::Receiver<Seq> {
        self.published.subscribe()
    }

    /// Waits until all events up to `seq` have been published.
    pub async fn wait_until_published(&self, seq: Seq) {
        // The sender lives as long as this value, so waiting cannot fail.
        let _ = self.published.subscribe().wait_for(|published| *published >= seq).await;
    }

    fn publish_event(
        &self,
        state: &mut FanoutState,
        logged_event: &LoggedEvent,
        room_batches: &mut RoomBatches,
        mail: &mut MailBatch,
    ) {
        match &logged_event.event {
            Event::MessagePosted { message, deliveries } => {
                if message.destination.room().is_some() {
                    room_batches.add(logged_event.clone(), !state.following.is_empty());
                }
                for delivery in deliveries.iter() {
                    state.mailboxes.each(&delivery.mailbox, |subscriber| {
                        if let Some(bytes) = subscriber.egress.delivery(message, delivery) {
                            mail.add(subscriber, bytes);
                        }
                    });
                }
            }
            Event::MembersChanged { room, change, .. } => {
                self.publish_to_room(state, &room.id, logged_event);
                match change {
                    MemberChange::Added(member) => {
                        // Connections of the added user receive the event although they are not subscribed to
                        // the room yet.
                        let connections =
                            member.user().map(|user| state.subscribers_of(user)).unwrap_or_default();
                        for subscriber in connections {
                            if !state.rooms.contains(&room.id, subscriber.id) {
                                push(subscriber.egress.event(logged_event, self.epoch), &subscriber);
                                self.follow_new_room(state, &subscriber, &room.id);
                            }
                        }
                    }
                    MemberChange::Removed(member) => {
                        for subscriber in
                            member.user().map(|user| state.subscribers_of(user)).unwrap_or_default()
                        {
                            push(subscriber.egress.room_lost(&room.id, logged_event), &subscriber);
                            state.rooms.remove(&room.id, subscriber.id);
                        }
                    }
                    MemberChange::Changed(_) => {}
                }
            }
            Event::RoomRemoved { room, people } => {
                self.publish_to_room(state, room, logged_event);
                state.replies.close_where(|reply| reply.room == *room);
                state.activities.close_where(|of, _| of == room);
                let in_room = state.rooms.clear(room);
                for subscriber in people.iter().flat_map(|user| state.subscribers_of(user)) {
                    if !in_room.contains(&subscriber.id) {
                        push(subscriber.egress.room_lost(room, logged_event), &subscriber);
                    }
                }
            }
            Event::UserRemoved(user) => state.end(user, |_| true),
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
            Event::KeyRevoked { user, key } => {
                state.end(
                    user,
                    |principal| matches!(principal, Principal::Program { key: own, .. } if own == key),
                );
            }
            Event::RoomPreferencesChanged(_) | Event::RoomCleared { .. } | Event::BookmarkChanged { .. } => {
                // Also sent to connections that are not subscribed to the room: its entry in the user's list
                // of rooms changes.
                for subscriber in
                    logged_event.event.only_user().map(|user| state.subscribers_of(user)).unwrap_or_default()
                {
                    push(subscriber.egress.event(logged_event, self.epoch), &subscriber);
                }
            }
            Event::RunChanged(run) => {
                state.apply_run(run);
                self.publish_to_room(state, &run.room, logged_event);
                let begun = state.activities.begin(run, state.last_ordinal.plus(1));
                self.publish_signals(state, &run.room, &begun);
            }
            Event::AgentChanged { .. } | Event::UserChanged { .. } | Event::SettingsChanged => {
                if let Some(audience) = logged_event.event.audience() {
                    self.publish_to_audience(state, audience, logged_event);
                }
            }
            Event::MessageEdited(_)
            | Event::MessageDeleted { .. }
            | Event::ReactionsChanged { .. }
            | Event::ApprovalAsked(_)
            | Event::ApprovalDecided(_)
            | Event::PlanChanged(_)
            | Event::MessagePinned(_)
            | Event::MessageUnpinned { .. }
            | Event::RoomChanged(_)
            | Event::RoomRead { .. }
            | Event::TaskChanged(_)
            | Event::TaskRemoved { .. }
            | Event::Tombstone => {
                if let Some(room) = logged_event.event.room() {
                    self.publish_to_room(state, room, logged_event);
                }
            }
        }
    }

    fn publish_to_room(&self, state: &FanoutState, room: &RoomId, logged_event: &LoggedEvent) {
        let mut encoded = EncodedByProtocol::default();
        state.rooms.each(room, |subscriber| {
            if let Some(bytes) =
                encoded.by(&subscriber.egress, |egress| egress.event(logged_event, self.epoch))
            {
                subscriber.outbox.push(bytes);
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
        let mut encoded = EncodedByProtocol::default();
        for recipient in recipients.iter().filter(|id| state.following.contains_key(*id)) {
            if let Some(subscriber) = state.subscribers.get(recipient)
                && let Some(bytes) =
                    encoded.by(&subscriber.egress, |egress| egress.event(logged_event, self.epoch))
            {
                subscriber.outbox.push(bytes);
            }
        }
    }

    /// Applies the committed state of a run: its agent can publish chunks while the run is running.
    pub fn apply_run(&self, run: &Run) {
        let mut state = self.state.lock();
        state.apply_run(run);
        let next = state.last_ordinal.plus(1);
        state.activities.begin(run, next);
    }

    /// Publishes the end of a run's activity before the end of the run, so that no activity signal follows
    /// the run's end.
    fn end_activity(&self, state: &mut FanoutState, run: &Run) {
        if run.has_ended() {
            let ended: Vec<Signal> = state.activities.end(&run.id).into_iter().collect();
            self.publish_signals(state, &run.room, &ended);
        }
    }

    /// Appends a chunk to a run's streaming reply and publishes it to the subscribers of the room.
    pub fn publish_chunk(
        &self,
        run: &RunId,
        message: &MessageId,
        agent_name: &str,
        chunk: &Chunk,
        bounds: ReplyLimits,
    ) -> Result<(), ChunkRejected> {
        let state = &mut *self.state.lock();
        let reply = state.replies.of(run).ok_or(ChunkRejected::Over)?.clone();
        let marks = reply.add(message, agent_name, chunk, bounds)?;
        let signals = state.activities.infer_from_chunk(run, chunk, state.last_ordinal.plus(1));
        self.publish_signals(state, &reply.room, &signals);
        if marks.0 < marks.1 {
            let numbers = self.number(state, reply_text::numbers(chunk.content.len()));
            state.rooms.each(&reply.room, |subscriber| {
                subscriber.outbox.push_reply_update(&reply, &subscriber.egress, marks, numbers)
            });
        }
        Ok(())
    }

    /// Tool calls in the streaming replies of a room, in order.
    pub fn tools_in_use(&self, room: &RoomId) -> Vec<(AgentId, Chunk)> {
        // Copies the list, so that the lock is not held while the calls are collected.
        let replies = self.state.lock().replies.in_room(room).to_vec();
        let calls = |reply: &Arc<StreamingReply>| {
            let agent = reply.agent.clone();
            reply.tools().into_iter().map(move |call| (agent.clone(), call)).collect::<Vec<_>>()
        };
        replies.iter().flat_map(calls).collect()
    }

    /// How much of a run's reply has been published: number of complete parts, and bytes of the next part.
    pub fn published_offset(&self, run: &RunId) -> (usize, usize) {
        self.state.lock().replies.of(run).map_or((0, 0), |reply| reply.end().place())
    }

    /// Publishes an event that an agent reports about its run; ignored once the run has ended.
    pub fn run_event(&self, run: &RunId, room: &RoomId, event: RunEvent) {
        let state = &mut *self.state.lock();
        let signals = state.activities.apply_run_event(run, event, state.last_ordinal.plus(1));
        self.publish_signals(state, room, &signals);
    }

    /// Reserves `count` unique ordinals: returns the first, and the last with the current time.
    fn number(&self, state: &mut FanoutState, count: u64) -> (Ordinal, SignalStamp) {
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

    fn publish_signals(&self, state: &mut FanoutState, room: &RoomId, signals: &[Signal]) {
        for signal in signals {
            self.publish_signal(state, room, signal, None);
        }
    }

    fn publish_signal(&self, state: &mut FanoutState, room: &RoomId, signal: &Signal, from: Option<&UserId>) {
        let (_, given) = self.number(state, 1);
        let mut encoded = EncodedByProtocol::default();
        state.rooms.each(room, |subscriber| {
            if from != Some(&subscriber.user)
                && let Some(bytes) = encoded.by(&subscriber.egress, |egress| egress.signal(signal, given))
            {
                subscriber.outbox.push_signal(bytes);
            }
        });
    }

    /// The final reply of a run, if it is still open. `final_text` is the full text as sent by the gateway.
    pub fn finish(&self, run: &RunId, final_text: Option<&str>) -> Option<(Arc<str>, Vec<Chunk>)> {
        self.state.lock().replies.finish(run, final_text)
    }

    /// Takes back the streamed text of a run, because it was not its reply, and returns it. The run continues
    /// with an empty reply.
    pub fn restart_reply(&self, run: &RunId) -> Option<(Arc<str>, Vec<Chunk>)> {
        let mut state = self.state.lock();
        let text = state.replies.finish(run, None)?;
        let reply = state.replies.restart(run)?;
        state.rooms.each(&reply.room, |subscriber| subscriber.outbox.finish_reply(&reply));
        Some(text)
    }

    /// Publishes a signal to the subscribers of a room, except to the user it comes from.
    pub fn signal_room(&self, room: &RoomId, signal: &Signal, from: Option<&UserId>) {
        self.publish_signal(&mut self.state.lock(), room, signal, from);
    }

    /// Publishes a signal to every connection of these users.
    pub fn signal_people<'a>(&self, people: impl IntoIterator<Item = &'a UserId>, signal: &Signal) {
        let mut state = self.state.lock();
        let (_, given) = self.number(&mut state, 1);
        let mut encoded = EncodedByProtocol::default();
        for subscriber in people.into_iter().flat_map(|user| state.subscribers_of(user)) {
            if let Some(bytes) = encoded.by(&subscriber.egress, |egress| egress.signal(signal, given)) {
                subscriber.outbox.push_signal(bytes);
            }
        }
    }

    /// Sends a signal to one connection, if it is still registered.
    pub fn signal_subscriber(&self, id: SubscriberId, signal: &Signal) {
        let mut state = self.state.lock();
        let (_, given) = self.number(&mut state, 1);
        if let Some(subscriber) = state.subscribers.get(&id)
            && let Some(bytes) = subscriber.egress.signal(signal, given)
        {
            subscriber.outbox.push_signal(bytes);
        }
    }

    /// Closes every connection with a shutdown frame.
    pub fn shut_down(&self) {
        let mut state = self.state.lock();
        let all: Vec<SubscriberId> = state.subscribers.keys().copied().collect();
        for subscriber in all.into_iter().filter_map(|id| state.remove(id)) {
            subscriber.outbox.close(subscriber.egress.disconnect_frame(DisconnectReason::ShuttingDown));
        }
    }
}

impl FanoutState {
    fn apply_run(&mut self, run: &Run) {
        match run.state {
            RunState::Queued => {}
            RunState::Running => self.replies.open(run),
            RunState::Ended(_) => {
                if let Some(reply) = self.replies.close(&run.id) {
                    self.rooms.each(&reply.room, |subscriber| subscriber.outbox.finish_reply(&reply));
                }
            }
        }
    }

    /// Replaces a deleted message in the replay buffer by a tombstone, so that a resume does not replay it.
    fn replace_with_tombstone(&mut self, deleted: &MessageId) {
        let mut removed_bytes = 0;
        for kept in &mut self.replay_buffer {
            let about = match &kept.logged_event.event {
                Event::MessagePosted { message, .. } | Event::MessageEdited(message) => &message.id,
                Event::ReactionsChanged { message, .. } => message,
                _ => continue,
            };
            if about == deleted {
                removed_bytes += length(&kept.logged_event.event);
                kept.replace_with_tombstone();
            }
        }
        self.recent_bytes -= removed_bytes;
    }

    fn is_present(&self, user: &UserId) -> bool {
        let ids = self.by_user.get(user).map(Vec::as_slice).unwrap_or_default();
        ids.iter().any(|id| self.subscribers.get(id).is_some_and(|subscriber| subscriber.present))
    }

    /// The connections of a user that may receive events now.
    fn subscribers_of(&self, user: &UserId) -> Vec<Subscriber> {
        let all = self.all_subscribers_of(user);
        all.filter(|subscriber| self.receives_events(subscriber)).cloned().collect()
    }

    fn receives_events(&self, subscriber: &Subscriber) -> bool {
        let is_subscribed = !subscriber.only_follows || self.following.contains_key(&subscriber.id);
        is_subscribed && !self.write_only.contains(&subscriber.id)
    }

    fn all_subscribers_of(&self, user: &UserId) -> impl Iterator<Item = &Subscriber> {
        let ids = self.by_user.get(user).map(Vec::as_slice).unwrap_or_default();
        ids.iter().filter_map(|id| self.subscribers.get(id))
    }

    fn remove(&mut self, id: SubscriberId) -> Option<Subscriber> {
        let subscriber = self.subscribers.remove(&id)?;
        if let Some(ids) = self.by_user.get_mut(&subscriber.user) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.by_user.remove(&subscriber.user);
            }
        }
        self.write_only.remove(&id);
        self.rooms.remove_everywhere(id);
        self.following.remove(&id);
        self.mailboxes.remove_everywhere(id);
        Some(subscriber)
    }

    /// Closes the connections of a user whose principal `matches`; they receive no later events.
    fn end(&mut self, user: &UserId, matches: impl Fn(&Principal) -> bool) {
        let matches: Vec<Subscriber> = self
            .all_subscribers_of(user)
            .filter(|subscriber| matches(&subscriber.principal))
            .cloned()
            .collect();
        for subscriber in matches {
            self.remove(subscriber.id);
            subscriber.outbox.close(subscriber.egress.disconnect_frame(DisconnectReason::Revoked));
        }
    }
}

/// Bytes that the content of an event occupies in the replay buffer.
fn length(event: &Event) -> usize {
    match event {
        Event::MessagePosted { message, .. } | Event::MessageEdited(message) => message.length(),
        Event::ReactionsChanged { reactions, .. } => reactions.iter().map(Reaction::length).sum(),
        Event::ApprovalAsked(approval) | Event::ApprovalDecided(approval) => approval.length(),
        Event::PlanChanged(plan) => plan.length(),
        // Counted twice: the changed agent contains the user ids of its audience again.
        event => event.audience().map_or(0, |audience| 2 * audience.length()),
    }
}

fn push(bytes: Option<Bytes>, subscriber: &Subscriber) {
    if let Some(bytes) = bytes {
        subscriber.outbox.push(bytes);
    }
}

#[cfg(test)]
mod tests;
