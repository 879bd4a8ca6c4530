//! The fan-out: from each committed event to every connection that may see it now.
//!
//! Who may see what is kept by the same news, in order: a member removed at `Seq` n is disconnected
//! from the room while n is told, and so receives nothing after it. A frame for many viewers of one
//! door is encoded once and shared.

mod activities;
mod audience;
mod joining;
mod outbox;
mod questions;
mod replies;
mod roots;
mod shared;

pub use joining::{Followed, Following, Joined};
pub use outbox::{Caps, Outbox, Taken};
pub use replies::Unsaid;
pub use roots::Roots;

use crate::ports::Clock;
use crate::turns::rollup::Bounds;
use crate::{Fault, Limits};
use activities::Activities;
use audience::{Audience, Seat};
use bytes::Bytes;
use parking_lot::Mutex;
use parlor_model::{
    AgentId, Chunk, Delivery, Epoch, Event, EventAudience, LoggedEvent, Mailbox, MemberChange, Message,
    MessageId, Ordinal, Principal, Reaction, Refusal, RoomId, Run, RunEvent, RunId, RunState, Seq, Signal,
    SignalStamp, UserId,
};
use questions::Questions;
use replies::{Replies, Reply};
use shared::{Encoded, Kept, Mail, Neighbours};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{Notify, watch};

/// How a door tells things: complete bytes for its kind of socket, framing included.
pub trait Egress: Send + Sync {
    /// `None` where the door has no words for it.
    fn event(&self, logged: &LoggedEvent, epoch: Epoch) -> Option<Bytes>;
    /// What happened before and still stands, shown to who comes later.
    fn shown(&self, logged: &LoggedEvent, epoch: Epoch, _: SignalStamp) -> Option<Bytes> {
        self.event(logged, epoch)
    }
    /// To somebody who just lost the room, by this event.
    fn room_lost(&self, room: &RoomId, by: &LoggedEvent) -> Option<Bytes>;
    fn delivery(&self, message: &Message, delivery: &Delivery) -> Option<Bytes>;
    fn signal(&self, signal: &Signal, given: SignalStamp) -> Option<Bytes>;
    fn farewell(&self, reason: Farewell) -> Bytes;
    /// Whether all connections of its door have this one: then what it makes of something is worth keeping.
    fn is_shared(&self) -> bool {
        true
    }
    /// Whether its readers hear of all their rooms in one order. Others do in that of each room.
    fn keeps_one_order(&self) -> bool {
        false
    }
}

/// Why the hub ends a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Farewell {
    TooSlow,
    Revoked,
    ShuttingDown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ViewerId(pub(crate) u64);

/// One authenticated connection.
#[derive(Clone)]
pub struct Viewer {
    pub id: ViewerId,
    pub user: UserId,
    pub principal: Principal,
    pub egress: Arc<dyn Egress>,
    pub outbox: Arc<Outbox>,
    /// Whether it makes its person present.
    pub present: bool,
}

/// Whether a connection may hear what concerns its person: who may write alone, or only host agents, may not.
pub struct Hears(pub bool);

pub struct Switchboard {
    next_viewer: AtomicU64,
    epoch: Epoch,
    clock: Arc<dyn Clock>,
    roots: Arc<Roots>,
    /// Rung when the numbers for signals run short before the next event.
    crowded: Notify,
    recent_events: usize,
    recent_bytes: usize,
    /// Where the feed stands, for those who wait for it.
    told: watch::Sender<Seq>,
    /// Locked by the follower while it tells a batch, and by connections that come and go.
    state: Mutex<State>,
}

struct State {
    seen: Seq,
    /// The highest number that was given.
    number: Ordinal,
    /// What last happened that people see, in order, for those who come back; what is only for mailboxes is not in it.
    recent: VecDeque<Kept>,
    /// Nothing of that which happened from here on is missing there.
    kept_from: Seq,
    /// How much was said in these, by its length.
    recent_bytes: usize,
    viewers: HashMap<ViewerId, Viewer>,
    by_user: HashMap<UserId, Vec<ViewerId>>,
    /// Connections whose key may do something, but not hear what concerns its person.
    deaf: HashSet<ViewerId>,
    rooms: Audience<RoomId>,
    /// Connections that follow the rooms of their person as these come and go.
    following: HashMap<ViewerId, Following>,
    mailboxes: Audience<Mailbox>,
    /// Under the same lock as who is in a room: a piece is in what a newcomer is told first, or told live.
    replies: Replies,
    activities: Activities,
    questions: Questions,
}

impl Switchboard {
    pub fn new(epoch: Epoch, seen: Seq, limits: &Limits, clock: Arc<dyn Clock>) -> Self {
        let state = State {
            seen,
            number: Ordinal::after(seen),
            recent: VecDeque::new(),
            kept_from: seen.next(),
            recent_bytes: 0,
            viewers: HashMap::new(),
            by_user: HashMap::new(),
            deaf: HashSet::new(),
            rooms: Audience::default(),
            following: HashMap::new(),
            mailboxes: Audience::default(),
            replies: Replies::default(),
            activities: Activities::default(),
            questions: Questions::default(),
        };
        Self {
            next_viewer: AtomicU64::new(1),
            epoch,
            clock,
            roots: Arc::default(),
            crowded: Notify::new(),
            recent_events: limits.recent_events,
            recent_bytes: limits.recent_bytes,
            told: watch::Sender::new(seen),
            state: Mutex::new(state),
        }
    }

    pub(crate) fn roots(&self) -> &Arc<Roots> {
        &self.roots
    }

    pub fn seen(&self) -> Seq {
        self.state.lock().seen
    }

    pub fn viewer_id(&self) -> ViewerId {
        ViewerId(self.next_viewer.fetch_add(1, Ordering::Relaxed))
    }

    /// Takes a connection in if `admitted` says so under the lock, and greets it before anything else can
    /// reach it. Gives what `admitted` gave, and whether its person is newly present.
    pub fn connect<T>(
        &self,
        mut viewer: Viewer,
        greeting: Bytes,
        admitted: impl FnOnce() -> Result<Result<(T, Hears), Refusal>, Fault>,
    ) -> Result<Result<(T, bool), Refusal>, Fault> {
        let mut state = self.state.lock();
        let (admission, Hears(hears)) = match admitted()? {
            Ok(admission) => admission,
            Err(refusal) => return Ok(Err(refusal)),
        };
        if !hears {
            viewer.present = false;
            state.deaf.insert(viewer.id);
        }
        let first = viewer.present && !state.is_present(&viewer.user);
        if !greeting.is_empty() {
            viewer.outbox.push(greeting);
        }
        state.by_user.entry(viewer.user.clone()).or_default().push(viewer.id);
        state.viewers.insert(viewer.id, viewer);
        Ok(Ok((admission, first)))
    }

    /// Says whether its person is no longer present.
    pub fn disconnect(&self, id: ViewerId) -> bool {
        let mut state = self.state.lock();
        let Some(viewer) = state.remove(id) else { return false };
        viewer.present && !state.is_present(&viewer.user)
    }

    pub fn is_present(&self, user: &UserId) -> bool {
        self.state.lock().is_present(user)
    }

    pub fn connections(&self) -> usize {
        self.state.lock().viewers.len()
    }

    pub fn leave(&self, id: ViewerId, room: &RoomId) {
        self.state.lock().rooms.remove(room, id);
    }

    pub fn is_in(&self, id: ViewerId, room: &RoomId) -> bool {
        self.state.lock().rooms.contains(room, id)
    }

    /// Pushes new mail of a mailbox to a connection; `admitted` as with `join`.
    pub fn listen(
        &self,
        id: ViewerId,
        mailbox: Mailbox,
        admitted: impl FnOnce() -> Result<bool, Fault>,
    ) -> Result<bool, Fault> {
        let mut state = self.state.lock();
        if !admitted()? {
            return Ok(false);
        }
        let Some(seat) = state.viewers.get(&id).map(Seat::of) else { return Ok(false) };
        state.mailboxes.add(mailbox, seat);
        Ok(true)
    }

    /// Tells a batch of committed events, in order.
    pub fn publish(&self, batch: &[LoggedEvent]) {
        let mut state = self.state.lock();
        let (mut neighbours, mut mail) = (Neighbours::default(), Mail::default());
        for logged in batch {
            debug_assert_eq!(logged.seq, state.seen.next(), "the follower hands over a feed without holes");
            if !matches!(logged.event, Event::MessagePosted { .. }) {
                neighbours.flush(&state, self.epoch);
                mail.flush();
            }
            let left = self.roots.follow(&logged.event);
            if let Event::RunChanged(run) = &logged.event {
                self.wind_up(&mut state, run);
            }
            state.seen = logged.seq;
            state.number = Ordinal::after(logged.seq);
            state.questions.learn(logged);
            self.tell(&mut state, logged, &mut neighbours, &mut mail);
            self.roots.leave(&logged.event);
            if let Some(room) = left {
                self.tell_signal(&mut state, &room, &Signal::Refresh, None);
            }
            if let Event::MessageDeleted { message, .. } = &logged.event {
                state.fade(message);
            }
            if logged.event.room().is_some() || logged.event.audience().is_some() {
                state.recent_bytes += length(&logged.event);
                state.recent.push_back(Kept::new(logged.clone()));
            }
        }
        neighbours.flush(&state, self.epoch);
        mail.flush();
        while state.recent.len() > self.recent_events || state.recent_bytes > self.recent_bytes {
            let Some(oldest) = state.recent.pop_front() else { break };
            state.recent_bytes -= length(&oldest.logged.event);
            state.kept_from = oldest.logged.seq.next();
        }
        self.told.send_replace(state.seen);
    }

    /// How far everything has been told, as it goes on.
    pub fn watch(&self) -> watch::Receiver<Seq> {
        self.told.subscribe()
    }

    /// Waits until everything up to `seq` has been told.
    pub async fn told(&self, seq: Seq) {
        // The sender lives as long as this switchboard, so waiting cannot fail.
        let _ = self.told.subscribe().wait_for(|told| *told >= seq).await;
    }

    fn tell(&self, state: &mut State, logged: &LoggedEvent, neighbours: &mut Neighbours, mail: &mut Mail) {
        match &logged.event {
            Event::MessagePosted { message, deliveries } => {
                if message.destination.room().is_some() {
                    neighbours.add(logged.clone(), !state.following.is_empty());
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
                self.tell_room(state, &room.id, logged);
                match change {
                    MemberChange::Added(member) => {
                        // A newcomer's connections learn of the room before they have joined it.
                        let newcomers = member.user().map(|user| state.viewers_of(user)).unwrap_or_default();
                        for viewer in newcomers {
                            if !state.rooms.contains(&room.id, viewer.id) {
                                push(viewer.egress.event(logged, self.epoch), &viewer);
                                self.follow_further(state, &viewer, &room.id);
                            }
                        }
                    }
                    MemberChange::Removed(member) => {
                        for viewer in member.user().map(|user| state.viewers_of(user)).unwrap_or_default() {
                            push(viewer.egress.room_lost(&room.id, logged), &viewer);
                            state.rooms.remove(&room.id, viewer.id);
                        }
                    }
                    MemberChange::Changed(_) => {}
                }
            }
            Event::RoomRemoved { room, people } => {
                self.tell_room(state, room, logged);
                state.replies.close_where(|reply| reply.room == *room);
                state.activities.close_where(|of, _| of == room);
                let in_room = state.rooms.clear(room);
                for viewer in people.iter().flat_map(|user| state.viewers_of(user)) {
                    if !in_room.contains(&viewer.id) {
                        push(viewer.egress.room_lost(room, logged), &viewer);
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
            Event::AgentRemoved { agent, circle } => {
                state.mailboxes.clear_where(|mailbox| mailbox.agent == *agent);
                state.replies.close_where(|reply| reply.agent == *agent);
                state.activities.close_where(|_, of| of == agent);
                self.tell_circle(state, circle, logged);
            }
            Event::KeyRevoked { user, key } => {
                state.end(
                    user,
                    |principal| matches!(principal, Principal::Program { key: own, .. } if own == key),
                );
            }
            Event::RoomPreferencesChanged(_) | Event::RoomCleared { .. } | Event::BookmarkChanged { .. } => {
                // Also to connections that have not joined the room: it is in everybody's list of rooms.
                for viewer in logged.event.only_user().map(|user| state.viewers_of(user)).unwrap_or_default()
                {
                    push(viewer.egress.event(logged, self.epoch), &viewer);
                }
            }
            Event::RunChanged(run) => {
                state.turn(run);
                self.tell_room(state, &run.room, logged);
                let begun = state.activities.begin(run, state.number.plus(1));
                self.pass_on(state, &run.room, &begun);
            }
            Event::AgentChanged { .. } | Event::UserChanged { .. } | Event::SettingsChanged => {
                if let Some(circle) = logged.event.audience() {
                    self.tell_circle(state, circle, logged);
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
                if let Some(room) = logged.event.room() {
                    self.tell_room(state, room, logged);
                }
            }
        }
    }

    fn tell_room(&self, state: &State, room: &RoomId, logged: &LoggedEvent) {
        let mut encoded = Encoded::default();
        state.rooms.each(room, |seat| {
            if let Some(bytes) = encoded.by(&seat.egress, |egress| egress.event(logged, self.epoch)) {
                seat.outbox.push(bytes);
            }
        });
    }

    /// To everyone who follows what happens and may know of this, once.
    fn tell_circle(&self, state: &State, circle: &EventAudience, logged: &LoggedEvent) {
        let mut told = HashSet::new();
        if circle.everyone {
            told.extend(state.following.keys().copied());
        }
        for user in &circle.people {
            told.extend(state.by_user.get(user).into_iter().flatten().copied());
        }
        for room in &circle.rooms {
            state.rooms.each(room, |seat| {
                told.insert(seat.viewer);
            });
        }
        let mut encoded = Encoded::default();
        for viewer in told.iter().filter(|id| state.following.contains_key(*id)) {
            if let Some(viewer) = state.viewers.get(viewer)
                && let Some(bytes) = encoded.by(&viewer.egress, |egress| egress.event(logged, self.epoch))
            {
                viewer.outbox.push(bytes);
            }
        }
    }

    /// A turn is as it was committed: its agent can speak from its start to its end.
    pub fn turn(&self, run: &Run) {
        let mut state = self.state.lock();
        state.turn(run);
        let next = state.number.plus(1);
        state.activities.begin(run, next);
    }

    /// Tells the end of what a turn was at before the end of the turn itself: nothing of it comes after.
    fn wind_up(&self, state: &mut State, run: &Run) {
        if run.has_ended() {
            let ended: Vec<Signal> = state.activities.end(&run.id).into_iter().collect();
            self.pass_on(state, &run.room, &ended);
        }
    }

    /// An agent says the next piece of its reply, to everyone live in the room.
    pub fn speak(
        &self,
        run: &RunId,
        message: &MessageId,
        agent_name: &str,
        chunk: &Chunk,
        bounds: Bounds,
    ) -> Result<(), Unsaid> {
        let state = &mut *self.state.lock();
        let reply = state.replies.of(run).ok_or(Unsaid::Over)?.clone();
        let marks = reply.add(message, agent_name, chunk, bounds)?;
        let shown = state.activities.shown(run, chunk, state.number.plus(1));
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
        let calls = |reply: &Arc<Reply>| {
            let agent = reply.agent.clone();
            reply.tools().into_iter().map(move |call| (agent.clone(), call)).collect::<Vec<_>>()
        };
        replies.iter().flat_map(calls).collect()
    }

    /// How much of the reply of a turn was heard: so many whole parts, and so many bytes of the next.
    pub fn heard(&self, run: &RunId) -> (usize, usize) {
        self.state.lock().replies.of(run).map_or((0, 0), |reply| reply.end().place())
    }

    /// An agent tells something of its turn beside what it says, unless that is over.
    pub fn run_event(&self, run: &RunId, room: &RoomId, event: RunEvent) {
        let state = &mut *self.state.lock();
        let signals = state.activities.told(run, event, state.number.plus(1));
        self.pass_on(state, room, &signals);
    }

    /// So many numbers that nothing else has: the first, and the last with the time of now.
    fn number(&self, state: &mut State, count: u64) -> (Ordinal, SignalStamp) {
        let first = state.number.plus(1);
        let before = state.number.is_half_used();
        state.number = state.number.plus(count);
        if !before && state.number.is_half_used() {
            self.crowded.notify_one();
        }
        (first, SignalStamp { ordinal: state.number, at: self.clock.now() })
    }

    /// A number that nothing else has, for what one connection is told alone.
    pub fn moment(&self) -> SignalStamp {
        self.number(&mut self.state.lock(), 1).1
    }

    /// Waits until the numbers run short, once each time they do.
    pub async fn crowded(&self) {
        self.crowded.notified().await;
    }

    fn pass_on(&self, state: &mut State, room: &RoomId, signals: &[Signal]) {
        for signal in signals {
            self.tell_signal(state, room, signal, None);
        }
    }

    fn tell_signal(&self, state: &mut State, room: &RoomId, signal: &Signal, from: Option<&UserId>) {
        let (_, given) = self.number(state, 1);
        let mut encoded = Encoded::default();
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
    pub fn begin_anew(&self, run: &RunId) -> Option<(Arc<str>, Vec<Chunk>)> {
        let mut state = self.state.lock();
        let heard = state.replies.finish(run, None)?;
        let reply = state.replies.begin_anew(run)?;
        state.rooms.each(&reply.room, |seat| seat.outbox.settle(&reply));
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
        let mut encoded = Encoded::default();
        for viewer in people.into_iter().flat_map(|user| state.viewers_of(user)) {
            if let Some(bytes) = encoded.by(&viewer.egress, |egress| egress.signal(signal, given)) {
                viewer.outbox.push_signal(bytes);
            }
        }
    }

    /// Tells a signal to one connection, if it is there.
    pub fn signal_viewer(&self, id: ViewerId, signal: &Signal) {
        let mut state = self.state.lock();
        let (_, given) = self.number(&mut state, 1);
        if let Some(viewer) = state.viewers.get(&id)
            && let Some(bytes) = viewer.egress.signal(signal, given)
        {
            viewer.outbox.push_signal(bytes);
        }
    }

    /// Says good-bye to everyone.
    pub fn shut_down(&self) {
        let mut state = self.state.lock();
        let all: Vec<ViewerId> = state.viewers.keys().copied().collect();
        for viewer in all.into_iter().filter_map(|id| state.remove(id)) {
            viewer.outbox.close(viewer.egress.farewell(Farewell::ShuttingDown));
        }
    }
}

impl State {
    fn turn(&mut self, run: &Run) {
        match run.state {
            RunState::Queued => {}
            RunState::Running => self.replies.open(run),
            RunState::Ended(_) => {
                if let Some(reply) = self.replies.close(&run.id) {
                    self.rooms.each(&reply.room, |seat| seat.outbox.settle(&reply));
                }
            }
        }
    }

    /// What was deleted is not told again to those who come back.
    fn fade(&mut self, deleted: &MessageId) {
        let mut faded = 0;
        for kept in &mut self.recent {
            let about = match &kept.logged.event {
                Event::MessagePosted { message, .. } | Event::MessageEdited(message) => &message.id,
                Event::ReactionsChanged { message, .. } => message,
                _ => continue,
            };
            if about == deleted {
                faded += length(&kept.logged.event);
                kept.fade();
            }
        }
        self.recent_bytes -= faded;
    }

    fn is_present(&self, user: &UserId) -> bool {
        let ids = self.by_user.get(user).map(Vec::as_slice).unwrap_or_default();
        ids.iter().any(|id| self.viewers.get(id).is_some_and(|viewer| viewer.present))
    }

    /// The connections of a person that may hear what concerns them.
    fn viewers_of(&self, user: &UserId) -> Vec<Viewer> {
        let all = self.all_viewers_of(user);
        all.filter(|viewer| !self.deaf.contains(&viewer.id)).cloned().collect()
    }

    fn all_viewers_of(&self, user: &UserId) -> impl Iterator<Item = &Viewer> {
        let ids = self.by_user.get(user).map(Vec::as_slice).unwrap_or_default();
        ids.iter().filter_map(|id| self.viewers.get(id))
    }

    fn remove(&mut self, id: ViewerId) -> Option<Viewer> {
        let viewer = self.viewers.remove(&id)?;
        if let Some(ids) = self.by_user.get_mut(&viewer.user) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.by_user.remove(&viewer.user);
            }
        }
        self.deaf.remove(&id);
        self.rooms.remove_everywhere(id);
        self.following.remove(&id);
        self.mailboxes.remove_everywhere(id);
        Some(viewer)
    }

    /// Ends the connections of a person whose principal is meant; they see nothing of what follows.
    fn end(&mut self, user: &UserId, meant: impl Fn(&Principal) -> bool) {
        let meant: Vec<Viewer> =
            self.all_viewers_of(user).filter(|viewer| meant(&viewer.principal)).cloned().collect();
        for viewer in meant {
            self.remove(viewer.id);
            viewer.outbox.close(viewer.egress.farewell(Farewell::Revoked));
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
        event => event.audience().map_or(0, |circle| 2 * circle.length()),
    }
}

fn push(bytes: Option<Bytes>, viewer: &Viewer) {
    if let Some(bytes) = bytes {
        viewer.outbox.push(bytes);
    }
}

#[cfg(test)]
mod tests;
