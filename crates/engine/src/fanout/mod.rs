//! The fan-out: from each committed event to every connection that may see it now.
//!
//! Who may see what is kept by the same news, in order: a member removed at `Seq` n is disconnected
//! from the room while n is told, and so receives nothing after it. A frame for many viewers of one
//! door is encoded once and shared.

mod activities;
mod batching;
mod join;
mod open_approvals;
mod outbox;
mod replies;
mod room_roots;
mod topic_subscribers;

pub use join::{FollowScope, JoinResult, RoomFilter};
pub use outbox::{Drained, Outbox, OutboxLimits};
pub use replies::ChunkRejected;
pub use room_roots::RoomRoots;

use crate::ports::Clock;
use crate::runs::reply_buffer::ReplyLimits;
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
use replies::{Replies, StreamingReply};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{Notify, watch};
use topic_subscribers::{TopicSubscriber, TopicSubscribers};

/// How a door tells things: complete bytes for its kind of socket, framing included.
pub trait Egress: Send + Sync {
    /// `None` where the door has no words for it.
    fn event(&self, logged_event: &LoggedEvent, epoch: Epoch) -> Option<Bytes>;
    /// What happened before and still stands, shown to who comes later.
    fn replay_event(&self, logged_event: &LoggedEvent, epoch: Epoch, _: SignalStamp) -> Option<Bytes> {
        self.event(logged_event, epoch)
    }
    /// To somebody who just lost the room, by this event.
    fn room_lost(&self, room: &RoomId, by: &LoggedEvent) -> Option<Bytes>;
    fn delivery(&self, message: &Message, delivery: &Delivery) -> Option<Bytes>;
    fn signal(&self, signal: &Signal, given: SignalStamp) -> Option<Bytes>;
    fn disconnect_frame(&self, reason: DisconnectReason) -> Bytes;
    /// Whether all connections of its door have this one: then what it makes of something is worth keeping.
    fn is_shared(&self) -> bool {
        true
    }
    /// Whether its readers hear of all their rooms in one order. Others do in that of each room.
    fn is_totally_ordered(&self) -> bool {
        false
    }
}

/// Why the hub ends a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisconnectReason {
    TooSlow,
    Revoked,
    ShuttingDown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SubscriberId(pub(crate) u64);

/// One authenticated connection.
#[derive(Clone)]
pub struct Subscriber {
    pub id: SubscriberId,
    pub user: UserId,
    pub principal: Principal,
    pub egress: Arc<dyn Egress>,
    pub outbox: Arc<Outbox>,
    /// Whether it makes its person present.
    pub present: bool,
}

/// Whether a connection may hear what concerns its person: who may write alone, or only host agents, may not.
pub struct ReceivesEvents(pub bool);

pub struct Fanout {
    next_viewer: AtomicU64,
    epoch: Epoch,
    clock: Arc<dyn Clock>,
    roots: Arc<RoomRoots>,
    /// Rung when the numbers for signals run short before the next event.
    ordinals_low: Notify,
    recent_events: usize,
    recent_bytes: usize,
    /// Where the feed stands, for those who wait for it.
    published: watch::Sender<Seq>,
    /// Locked by the follower while it tells a batch, and by connections that come and go.
    state: Mutex<FanoutState>,
}

struct FanoutState {
    published_through: Seq,
    /// The highest number that was given.
    last_ordinal: Ordinal,
    /// What last happened that people see, in order, for those who come back; what is only for mailboxes is not in it.
    replay_buffer: VecDeque<ReplayEvent>,
    /// Nothing of that which happened from here on is missing there.
    replay_floor: Seq,
    /// How much was said in these, by its length.
    recent_bytes: usize,
    viewers: HashMap<SubscriberId, Subscriber>,
    by_user: HashMap<UserId, Vec<SubscriberId>>,
    /// Connections whose key may do something, but not hear what concerns its person.
    write_only: HashSet<SubscriberId>,
    rooms: TopicSubscribers<RoomId>,
    /// Connections that follow the rooms of their person as these come and go.
    following: HashMap<SubscriberId, RoomFilter>,
    mailboxes: TopicSubscribers<Mailbox>,
    /// Under the same lock as who is in a room: a piece is in what a newcomer is told first, or told live.
    replies: Replies,
    activities: Activities,
    open_approvals: OpenApprovals,
}

impl Fanout {
    pub fn new(epoch: Epoch, seen: Seq, limits: &Limits, clock: Arc<dyn Clock>) -> Self {
        let state = FanoutState {
            published_through: seen,
            last_ordinal: Ordinal::after(seen),
            replay_buffer: VecDeque::new(),
            replay_floor: seen.next(),
            recent_bytes: 0,
            viewers: HashMap::new(),
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
            next_viewer: AtomicU64::new(1),
            epoch,
            clock,
            roots: Arc::default(),
            ordinals_low: Notify::new(),
            recent_events: limits.recent_events,
            recent_bytes: limits.recent_bytes,
            published: watch::Sender::new(seen),
            state: Mutex::new(state),
        }
    }

    pub(crate) fn roots(&self) -> &Arc<RoomRoots> {
        &self.roots
    }

    pub fn seen(&self) -> Seq {
        self.state.lock().published_through
    }

    pub fn viewer_id(&self) -> SubscriberId {
        SubscriberId(self.next_viewer.fetch_add(1, Ordering::Relaxed))
    }

    /// Takes a connection in if `admitted` says so under the lock, and greets it before anything else can
    /// reach it. Gives what `admitted` gave, and whether its person is newly present.
    pub fn connect<T>(
        &self,
        mut subscriber: Subscriber,
        greeting: Bytes,
        admitted: impl FnOnce() -> Result<Result<(T, ReceivesEvents), Refusal>, Fault>,
    ) -> Result<Result<(T, bool), Refusal>, Fault> {
        let mut state = self.state.lock();
        let (admission, ReceivesEvents(hears)) = match admitted()? {
            Ok(admission) => admission,
            Err(refusal) => return Ok(Err(refusal)),
        };
        if !hears {
            subscriber.present = false;
            state.write_only.insert(subscriber.id);
        }
        let first = subscriber.present && !state.is_present(&subscriber.user);
        if !greeting.is_empty() {
            subscriber.outbox.push(greeting);
        }
        state.by_user.entry(subscriber.user.clone()).or_default().push(subscriber.id);
        state.viewers.insert(subscriber.id, subscriber);
        Ok(Ok((admission, first)))
    }

    /// Says whether its person is no longer present.
    pub fn disconnect(&self, id: SubscriberId) -> bool {
        let mut state = self.state.lock();
        let Some(subscriber) = state.remove(id) else { return false };
        subscriber.present && !state.is_present(&subscriber.user)
    }

    pub fn is_present(&self, user: &UserId) -> bool {
        self.state.lock().is_present(user)
    }

    pub fn connections(&self) -> usize {
        self.state.lock().viewers.len()
    }

    pub fn leave(&self, id: SubscriberId, room: &RoomId) {
        self.state.lock().rooms.remove(room, id);
    }

    pub fn is_in(&self, id: SubscriberId, room: &RoomId) -> bool {
        self.state.lock().rooms.contains(room, id)
    }

    /// Pushes new mail of a mailbox to a connection; `admitted` as with `join`.
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
        let Some(seat) = state.viewers.get(&id).map(TopicSubscriber::of) else { return Ok(false) };
        state.mailboxes.add(mailbox, seat);
        Ok(true)
    }

    /// Tells a batch of committed events, in order.
    pub fn publish(&self, batch: &[LoggedEvent]) {
        let mut state = self.state.lock();
        let (mut room_batches, mut mail) = (RoomBatches::default(), MailBatch::default());
        for logged_event in batch {
            debug_assert_eq!(
                logged_event.seq,
                state.published_through.next(),
                "the follower hands over a feed without holes"
            );
            if !matches!(logged_event.event, Event::MessagePosted { .. }) {
                room_batches.flush(&state, self.epoch);
                mail.flush();
            }
            let left = self.roots.follow(&logged_event.event);
            if let Event::RunChanged(run) = &logged_event.event {
                self.end_activity(&mut state, run);
            }
            state.published_through = logged_event.seq;
            state.last_ordinal = Ordinal::after(logged_event.seq);
            state.open_approvals.learn(logged_event);
            self.publish_event(&mut state, logged_event, &mut room_batches, &mut mail);
            self.roots.leave(&logged_event.event);
            if let Some(room) = left {
                self.tell_signal(&mut state, &room, &Signal::Refresh, None);
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

    /// How far everything has been told, as it goes on.
    pub fn watch(&self) -> watch::Receiver<Seq> {
        self.published.subscribe()
    }

    /// Waits until everything up to `seq` has been told.
    pub async fn wait_until_published(&self, seq: Seq) {
        // The sender lives as long as this switchboard, so waiting cannot fail.
        let _ = self.published.subscribe().wait_for(|told| *told >= seq).await;
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
                    state.mailboxes.each(&delivery.mailbox, |seat| {
                        if let Some(bytes) = seat.egress.delivery(message, delivery) {
                            mail.add(seat, bytes);
                        }
                    });
                }
            }
            Event::MembersChanged { room, change, .. } => {
                self.publish_to_room(state, &room.id, logged_event);
                match change {
                    MemberChange::Added(member) => {
                        // A newcomer's connections learn of the room before they have joined it.
                        let newcomers = member.user().map(|user| state.viewers_of(user)).unwrap_or_default();
                        for subscriber in newcomers {
                            if !state.rooms.contains(&room.id, subscriber.id) {
                                push(subscriber.egress.event(logged_event, self.epoch), &subscriber);
                                self.follow_new_room(state, &subscriber, &room.id);
                            }
                        }
                    }
                    MemberChange::Removed(member) => {
                        for subscriber in member.user().map(|user| state.viewers_of(user)).unwrap_or_default()
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
                for subscriber in people.iter().flat_map(|user| state.viewers_of(user)) {
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
            // The id may be somebody else's tomorrow: whoever listened to it hears nothing more.
            Event::AgentRemoved { agent, circle: event_audience } => {
                state.mailboxes.clear_where(|mailbox| mailbox.agent == *agent);
                state.replies.close_where(|reply| reply.agent == *agent);
                state.activities.close_where(|_, of| of == agent);
                self.publish_to_audience(state, event_audience, logged_event);
            }
            Event::KeyRevoked { user, key } => {
                state.end(
                    user,
                    |principal| matches!(principal, Principal::Program { key: own, .. } if own == key),
                );
            }
            Event::RoomPreferencesChanged(_) | Event::RoomCleared { .. } | Event::BookmarkChanged { .. } => {
                // Also to connections that have not joined the room: it is in everybody's list of rooms.
                for subscriber in
                    logged_event.event.only_user().map(|user| state.viewers_of(user)).unwrap_or_default()
                {
                    push(subscriber.egress.event(logged_event, self.epoch), &subscriber);
                }
            }
            Event::RunChanged(run) => {
                state.turn(run);
                self.publish_to_room(state, &run.room, logged_event);
                let begun = state.activities.begin(run, state.last_ordinal.plus(1));
                self.pass_on(state, &run.room, &begun);
            }
            Event::AgentChanged { .. } | Event::UserChanged { .. } | Event::SettingsChanged => {
                if let Some(event_audience) = logged_event.event.audience() {
                    self.publish_to_audience(state, event_audience, logged_event);
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
        state.rooms.each(room, |seat| {
            if let Some(bytes) = encoded.by(&seat.egress, |egress| egress.event(logged_event, self.epoch)) {
                seat.outbox.push(bytes);
            }
        });
    }

    /// To everyone who follows what happens and may know of this, once.
    fn publish_to_audience(
        &self,
        state: &FanoutState,
        event_audience: &EventAudience,
        logged_event: &LoggedEvent,
    ) {
        let mut told = HashSet::new();
        if event_audience.everyone {
            told.extend(state.following.keys().copied());
        }
        for user in &event_audience.people {
            told.extend(state.by_user.get(user).into_iter().flatten().copied());
        }
        for room in &event_audience.rooms {
            state.rooms.each(room, |seat| {
                told.insert(seat.viewer);
            });
        }
        let mut encoded = EncodedByProtocol::default();
        for viewer in told.iter().filter(|id| state.following.contains_key(*id)) {
            if let Some(subscriber) = state.viewers.get(viewer)
                && let Some(bytes) =
                    encoded.by(&subscriber.egress, |egress| egress.event(logged_event, self.epoch))
            {
                subscriber.outbox.push(bytes);
            }
        }
    }

    /// A turn is as it was committed: its agent can speak from its start to its end.
    pub fn turn(&self, run: &Run) {
        let mut state = self.state.lock();
        state.turn(run);
        let next = state.last_ordinal.plus(1);
        state.activities.begin(run, next);
    }

    /// Tells the end of what a turn was at before the end of the turn itself: nothing of it comes after.
    fn end_activity(&self, state: &mut FanoutState, run: &Run) {
        if run.has_ended() {
            let ended: Vec<Signal> = state.activities.end(&run.id).into_iter().collect();
            self.pass_on(state, &run.room, &ended);
        }
    }

    /// An agent says the next piece of its reply, to everyone live in the room.
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
        let shown = state.activities.shown(run, chunk, state.last_ordinal.plus(1));
        self.pass_on(state, &reply.room, &shown);
        if marks.0 < marks.1 {
            let numbers = self.number(state, replies::numbers(chunk.content.len()));
            state.rooms.each(&reply.room, |seat| seat.outbox.tell(&reply, &seat.egress, marks, numbers));
        }
        Ok(())
    }

    /// The tools that agents have called in turns that run in a room, in order.
    pub fn tools_in_use(&self, room: &RoomId) -> Vec<(AgentId, Chunk)> {
        // Nobody waits for the copies.
        let replies = self.state.lock().replies.in_room(room).to_vec();
        let calls = |reply: &Arc<StreamingReply>| {
            let agent = reply.agent.clone();
            reply.tools().into_iter().map(move |call| (agent.clone(), call)).collect::<Vec<_>>()
        };
        replies.iter().flat_map(calls).collect()
    }

    /// How much of the reply of a turn was heard: so many whole parts, and so many bytes of the next.
    pub fn published_offset(&self, run: &RunId) -> (usize, usize) {
        self.state.lock().replies.of(run).map_or((0, 0), |reply| reply.end().place())
    }

    /// An agent tells something of its turn beside what it says, unless that is over.
    pub fn run_event(&self, run: &RunId, room: &RoomId, event: RunEvent) {
        let state = &mut *self.state.lock();
        let signals = state.activities.told(run, event, state.last_ordinal.plus(1));
        self.pass_on(state, room, &signals);
    }

    /// So many numbers that nothing else has: the first, and the last with the time of now.
    fn number(&self, state: &mut FanoutState, count: u64) -> (Ordinal, SignalStamp) {
        let first = state.last_ordinal.plus(1);
        let before = state.last_ordinal.is_half_used();
        state.last_ordinal = state.last_ordinal.plus(count);
        if !before && state.last_ordinal.is_half_used() {
            self.ordinals_low.notify_one();
        }
        (first, SignalStamp { ordinal: state.last_ordinal, at: self.clock.now() })
    }

    /// A number that nothing else has, for what one connection is told alone.
    pub fn moment(&self) -> SignalStamp {
        self.number(&mut self.state.lock(), 1).1
    }

    /// Waits until the numbers run short, once each time they do.
    pub async fn crowded(&self) {
        self.ordinals_low.notified().await;
    }

    fn pass_on(&self, state: &mut FanoutState, room: &RoomId, signals: &[Signal]) {
        for signal in signals {
            self.tell_signal(state, room, signal, None);
        }
    }

    fn tell_signal(&self, state: &mut FanoutState, room: &RoomId, signal: &Signal, from: Option<&UserId>) {
        let (_, given) = self.number(state, 1);
        let mut encoded = EncodedByProtocol::default();
        state.rooms.each(room, |seat| {
            if from != Some(&seat.user)
                && let Some(bytes) = encoded.by(&seat.egress, |egress| egress.signal(signal, given))
            {
                seat.outbox.push_signal(bytes);
            }
        });
    }

    /// The reply of a turn as it is to be kept, if it goes on; `said` is what the agent says it was.
    pub fn finish(&self, run: &RunId, said: Option<&str>) -> Option<(Arc<str>, Vec<Chunk>)> {
        self.state.lock().replies.finish(run, said)
    }

    /// What was taken for the reply of a turn is not: it is given back, and the turn has said nothing yet.
    pub fn restart_reply(&self, run: &RunId) -> Option<(Arc<str>, Vec<Chunk>)> {
        let mut state = self.state.lock();
        let heard = state.replies.finish(run, None)?;
        let reply = state.replies.begin_anew(run)?;
        state.rooms.each(&reply.room, |seat| seat.outbox.finish_reply(&reply));
        Some(heard)
    }

    /// Tells a signal to whoever is live in a room, except the person it comes from.
    pub fn signal_room(&self, room: &RoomId, signal: &Signal, from: Option<&UserId>) {
        self.tell_signal(&mut self.state.lock(), room, signal, from);
    }

    /// Tells a signal to every connection of these people.
    pub fn signal_people<'a>(&self, people: impl IntoIterator<Item = &'a UserId>, signal: &Signal) {
        let mut state = self.state.lock();
        let (_, given) = self.number(&mut state, 1);
        let mut encoded = EncodedByProtocol::default();
        for subscriber in people.into_iter().flat_map(|user| state.viewers_of(user)) {
            if let Some(bytes) = encoded.by(&subscriber.egress, |egress| egress.signal(signal, given)) {
                subscriber.outbox.push_signal(bytes);
            }
        }
    }

    /// Tells a signal to one connection, if it is there.
    pub fn signal_viewer(&self, id: SubscriberId, signal: &Signal) {
        let mut state = self.state.lock();
        let (_, given) = self.number(&mut state, 1);
        if let Some(subscriber) = state.viewers.get(&id)
            && let Some(bytes) = subscriber.egress.signal(signal, given)
        {
            subscriber.outbox.push_signal(bytes);
        }
    }

    /// Says good-bye to everyone.
    pub fn shut_down(&self) {
        let mut state = self.state.lock();
        let all: Vec<SubscriberId> = state.viewers.keys().copied().collect();
        for subscriber in all.into_iter().filter_map(|id| state.remove(id)) {
            subscriber.outbox.close(subscriber.egress.disconnect_frame(DisconnectReason::ShuttingDown));
        }
    }
}

impl FanoutState {
    fn turn(&mut self, run: &Run) {
        match run.state {
            RunState::Queued => {}
            RunState::Running => self.replies.open(run),
            RunState::Ended(_) => {
                if let Some(reply) = self.replies.close(&run.id) {
                    self.rooms.each(&reply.room, |seat| seat.outbox.finish_reply(&reply));
                }
            }
        }
    }

    /// What was deleted is not told again to those who come back.
    fn replace_with_tombstone(&mut self, deleted: &MessageId) {
        let mut faded = 0;
        for kept in &mut self.replay_buffer {
            let about = match &kept.logged_event.event {
                Event::MessagePosted { message, .. } | Event::MessageEdited(message) => &message.id,
                Event::ReactionsChanged { message, .. } => message,
                _ => continue,
            };
            if about == deleted {
                faded += length(&kept.logged_event.event);
                kept.fade();
            }
        }
        self.recent_bytes -= faded;
    }

    fn is_present(&self, user: &UserId) -> bool {
        let ids = self.by_user.get(user).map(Vec::as_slice).unwrap_or_default();
        ids.iter().any(|id| self.viewers.get(id).is_some_and(|subscriber| subscriber.present))
    }

    /// The connections of a person that may hear what concerns them.
    fn viewers_of(&self, user: &UserId) -> Vec<Subscriber> {
        let all = self.all_viewers_of(user);
        all.filter(|subscriber| !self.write_only.contains(&subscriber.id)).cloned().collect()
    }

    fn all_viewers_of(&self, user: &UserId) -> impl Iterator<Item = &Subscriber> {
        let ids = self.by_user.get(user).map(Vec::as_slice).unwrap_or_default();
        ids.iter().filter_map(|id| self.viewers.get(id))
    }

    fn remove(&mut self, id: SubscriberId) -> Option<Subscriber> {
        let subscriber = self.viewers.remove(&id)?;
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

    /// Ends the connections of a person whose principal is meant; they see nothing of what follows.
    fn end(&mut self, user: &UserId, meant: impl Fn(&Principal) -> bool) {
        let meant: Vec<Subscriber> =
            self.all_viewers_of(user).filter(|subscriber| meant(&subscriber.principal)).cloned().collect();
        for subscriber in meant {
            self.remove(subscriber.id);
            subscriber.outbox.close(subscriber.egress.disconnect_frame(DisconnectReason::Revoked));
        }
    }
}

/// How much somebody said with it.
fn length(event: &Event) -> usize {
    match event {
        Event::MessagePosted { message, .. } | Event::MessageEdited(message) => message.length(),
        Event::ReactionsChanged { reactions, .. } => reactions.iter().map(Reaction::length).sum(),
        Event::ApprovalAsked(approval) | Event::ApprovalDecided(approval) => approval.input.0.len(),
        Event::PlanChanged(plan) => plan.plan.0.len(),
        // The agent has the people once more.
        event => event.audience().map_or(0, |event_audience| 2 * event_audience.length()),
    }
}

fn push(bytes: Option<Bytes>, subscriber: &Subscriber) {
    if let Some(bytes) = bytes {
        subscriber.outbox.push(bytes);
    }
}

#[cfg(test)]
mod tests;
