//! Opens subscriptions: connections, rooms, all rooms of a user, and mailboxes.
//!
//! Each takes four steps: *reserve* under the fan-out's lock, *read* the rights and the head of the log in one
//! snapshot, *reach* that head, and *subscribe* under the lock unless the reservation has become invalid. A subscriber
//! is neither ahead of its membership nor behind its removal, and no read of the store happens under the lock.

use super::reservations::Reservation;
use super::subscribe::{Subscribed, Subscription};
use super::{Events, Item, Kinds, LiveFrame, Resync, RoomFilter, Subscriber, SubscriberId};
use crate::permission::{AuthContext, PermitError};
use crate::ports::{Head, Snapshot};
use crate::queries::Query;
use crate::{Fault, Hub};
use bytes::Bytes;
use parlor_model::query::{ListRooms, MayFollowRoom, MayListenToMailbox};
use parlor_model::{
    AgentId, Caller, Event, LoggedEvent, Mailbox, MemberId, Position, Refusal, RoomId, Scope, Seq, Signal,
    UserId,
};
use std::sync::Arc;

/// Maximum number of missed events per page: in total, and the minimum and maximum per room.
const PAGE: usize = 1000;
const PAGE_PER_ROOM: (usize, usize) = (20, 200);

impl Hub {
    /// Registers an authenticated connection and queues its protocol's greeting. From then on the connection
    /// is closed as soon as its sign-in ends. `admit` may still reject the caller, for example at a connection
    /// limit; it is called once, without a lock.
    pub(super) async fn connect<T>(
        &self,
        caller: &Caller,
        subscriber: Subscriber,
        greeting: Bytes,
        admit: impl FnOnce(&AuthContext) -> Result<T, Refusal>,
    ) -> Result<(AuthContext, T), Refusal> {
        let (mut admit, mut admitted) = (Some(admit), None);
        loop {
            let who = caller.clone();
            let (reservation, auth, _) = self
                .reserve(&subscriber.user, None, move |hub, snapshot| {
                    let auth = hub.with_view(&who, snapshot, |caller, _| Ok(caller.auth.clone()))?;
                    Ok(auth.ok_or(Refusal::NotSignedIn))
                })
                .await?;
            if let Some(admit) = admit.take() {
                admitted = Some(admit(&auth)?);
            }
            let (new, receives_events) = (subscriber.clone(), auth.has(Scope::Read));
            if let Some(first) = self.fanout().connect(&reservation, new, receives_events, greeting.clone())
                && let Some(admitted) = admitted.take()
            {
                if first {
                    // If this read fails, only the presence signal is lost; the connection stays registered.
                    let _ = self.publish_presence(&subscriber.user, true).await;
                }
                return Ok((AuthContext::clone(&auth), admitted));
            }
        }
    }

    /// Replaces the credential of the subscribers of a session.
    pub(super) async fn reauthorise(
        &self,
        caller: &Caller,
        ids: &[SubscriberId],
    ) -> Result<AuthContext, Refusal> {
        let user = caller.user().ok_or(Refusal::NotSignedIn)?;
        loop {
            let who = caller.clone();
            let (reservation, auth, _) = self
                .reserve(user, None, move |hub, snapshot| {
                    let auth = hub.with_view(&who, snapshot, |caller, _| Ok(caller.auth.clone()))?;
                    Ok(auth.ok_or(Refusal::NotSignedIn))
                })
                .await?;
            if self.fanout().reauthorise(&reservation, ids, &caller.principal, auth.has(Scope::Read)) {
                return Ok(AuthContext::clone(&auth));
            }
        }
    }

    /// Subscribes a connection to a room. With `since`, the events after that position are sent first,
    /// without gap or duplicate. `live` is the frame between the replayed and the live events.
    pub(super) async fn attach(
        &self,
        caller: &Caller,
        subscriber: &Subscriber,
        room: &RoomId,
        since: Option<Position>,
        resync: Option<Resync>,
        live: Option<&LiveFrame>,
    ) -> Result<(), Refusal> {
        let only = RoomFilter::Only(room.clone());
        let mut from = None;
        loop {
            let (who, query) = (caller.clone(), MayFollowRoom { room: room.clone() });
            let permitted =
                move |hub: &Hub, snapshot: &mut dyn Snapshot| hub.permitted(&who, &query, snapshot);
            let (reservation, (), head) = self.reserve(&subscriber.user, None, permitted).await?;
            if let Some(position) = since.filter(|_| from.is_none()) {
                check_position(position, head)?;
                from = Some(position.seq);
                // The replay covers everything after the position, so the connection must not receive live events
                // at the same time. Without a position, an existing subscription continues: events missed during
                // an interruption could not be replayed.
                self.fanout().leave(subscriber.id, room);
            }
            let rooms = std::slice::from_ref(room);
            let subscription = Subscription { id: subscriber.id, rooms, following: None, since: from };
            match self.fanout().subscribe(&reservation, &subscription, resync, live) {
                Subscribed::Live => return Ok(()),
                Subscribed::Invalid => {}
                Subscribed::Disconnected => return Err(Refusal::NotAMember { room: room.clone() }),
                Subscribed::NeedsReplay => {
                    from = Some(self.send_missed(caller, subscriber, &only, from.unwrap_or_default()).await?);
                }
            }
        }
    }

    /// Subscribes a connection to the caller's rooms, including rooms joined later, in one total order. The arguments
    /// are those of `attach`.
    pub(super) async fn follow(
        &self,
        caller: &Caller,
        subscriber: &Subscriber,
        following: &RoomFilter,
        since: Option<Position>,
        resync: Option<Resync>,
        live: Option<&LiveFrame>,
    ) -> Result<(), Refusal> {
        let (mut from, mut replayed_from_log) = (None, false);
        loop {
            let (who, filter) = (caller.clone(), following.clone());
            let visible =
                move |hub: &Hub, snapshot: &mut dyn Snapshot| hub.visible_rooms(&who, &filter, snapshot);
            let (reservation, rooms, head) = self.reserve(&subscriber.user, None, visible).await?;
            if let Some(position) = since.filter(|_| from.is_none()) {
                check_position(position, head)?;
                from = Some(position.seq);
            }
            let (id, following_rooms) = (subscriber.id, Some(following));
            let subscription = Subscription { id, rooms: &rooms, following: following_rooms, since: from };
            match self.fanout().subscribe(&reservation, &subscription, resync, live) {
                Subscribed::Live => {
                    if replayed_from_log {
                        // Events without a room are not replayed from the log, so the client is asked to
                        // reload its state.
                        self.fanout().signal_subscriber(id, &Signal::Refresh);
                    }
                    return Ok(());
                }
                Subscribed::Invalid => {}
                Subscribed::Disconnected => return Err(Refusal::NotSignedIn),
                Subscribed::NeedsReplay => {
                    replayed_from_log = true;
                    from = Some(
                        self.send_missed(caller, subscriber, following, from.unwrap_or_default()).await?,
                    );
                }
            }
        }
    }

    /// Pushes new mail of an agent's mailbox to a connection.
    pub(super) async fn listen(
        &self,
        caller: &Caller,
        subscriber: &Subscriber,
        mailbox: Mailbox,
    ) -> Result<(), Refusal> {
        loop {
            let (who, query) = (caller.clone(), MayListenToMailbox { agent: mailbox.agent.clone() });
            let permitted =
                move |hub: &Hub, snapshot: &mut dyn Snapshot| hub.permitted(&who, &query, snapshot);
            let (reservation, (), _) =
                self.reserve(&subscriber.user, Some(&mailbox.agent), permitted).await?;
            if self.fanout().listen(&reservation, subscriber.id, mailbox.clone()) {
                return Ok(());
            }
        }
    }

    /// Waits until the projections have applied all events up to `seq`, and the fan-out has published them. Refuses
    /// after `Limits::reach_timeout`: the log tailer may have ended.
    pub async fn reached(&self, seq: Seq) -> Result<(), Refusal> {
        // The usual case needs neither a timer nor a receiver.
        if self.fanout().has_published(seq) {
            return Ok(());
        }
        let reached =
            tokio::time::timeout(self.limits().reach_timeout, self.fanout().wait_until_published(seq));
        reached.await.map_err(|_| Refusal::Unavailable)
    }

    /// The first three steps: returns a reservation, the result of `read`, and the head of the log at that time,
    /// which the fan-out has reached.
    async fn reserve<T: Send + 'static>(
        &self,
        user: &UserId,
        agent: Option<&AgentId>,
        read: impl Fn(&Hub, &mut dyn Snapshot) -> Result<Result<T, Refusal>, Fault> + Send + 'static,
    ) -> Result<(Arc<Reservation>, T, Head), Refusal> {
        let reservation = self.fanout().reserve(user, agent);
        let (found, head) =
            self.read_snapshot(move |hub, snapshot| Ok((read(hub, snapshot)?, snapshot.head()?))).await?;
        let found = found?;
        self.reached(head.seq).await?;
        Ok((reservation, found, head))
    }

    /// Whether the caller may currently follow these rooms.
    pub(super) async fn may_follow(&self, caller: &Caller, following: &RoomFilter) -> Result<(), Refusal> {
        match following {
            RoomFilter::All => self.may(caller, ListRooms).await,
            RoomFilter::Only(room) => self.may(caller, MayFollowRoom { room: room.clone() }).await,
        }
    }

    /// The rooms that the caller may see, of those that it follows.
    fn visible_rooms(
        &self,
        caller: &Caller,
        following: &RoomFilter,
        snapshot: &mut dyn Snapshot,
    ) -> Result<Result<Vec<RoomId>, Refusal>, Fault> {
        self.with_view(caller, snapshot, |caller, view| {
            let Ok(own) = PermitError::split(ListRooms.permit(caller, view))? else {
                return Ok(Err(Refusal::NotSignedIn));
            };
            let candidates = match following {
                RoomFilter::Only(room) => vec![room.clone()],
                RoomFilter::All => {
                    let own = MemberId::User(own.user.id.clone());
                    view.store.memberships(&own)?.into_iter().map(|member| member.room).collect()
                }
            };
            let mut rooms = Vec::new();
            for room in candidates {
                let query = MayFollowRoom { room: room.clone() };
                if PermitError::split(query.permit(caller, view))?.is_ok() {
                    rooms.push(room);
                }
            }
            Ok(Ok(rooms))
        })
    }

    /// Sends one page of missed events from the store, no faster than the subscriber reads. Returns the `Seq` up to
    /// which the subscriber is caught up.
    async fn send_missed(
        &self,
        caller: &Caller,
        subscriber: &Subscriber,
        following: &RoomFilter,
        after: Seq,
    ) -> Result<Seq, Refusal> {
        let (caller, following) = (caller.clone(), following.clone());
        let (events, through) = self
            .read_snapshot(move |hub, snapshot| match hub.visible_rooms(&caller, &following, snapshot)? {
                Ok(rooms) => page(&rooms, after, snapshot).map(Ok),
                Err(refusal) => Ok(Err(refusal)),
            })
            .await??;
        let for_them = |logged_event: &&LoggedEvent| {
            logged_event.event.only_user().is_none_or(|person| *person == subscriber.user)
        };
        // Open approvals are sent when the subscription begins.
        let is_replayed =
            |logged_event: &&LoggedEvent| !matches!(logged_event.event, Event::ApprovalAsked(_));
        for logged_event in events.iter().filter(for_them).filter(is_replayed) {
            if subscriber.kinds.includes(Kinds::of_event(&logged_event.event)) {
                let root = logged_event.event.room().and_then(|room| self.fanout().roots().of(room));
                let item = Item::Events(Events::of([logged_event.clone()].into(), root));
                if !subscriber.outbox.push_item_when_half_empty(subscriber.codec, item).await {
                    return Err(Refusal::Unavailable);
                }
            }
        }
        Ok(through)
    }
}

fn check_position(position: Position, head: Head) -> Result<(), Refusal> {
    let known =
        position.epoch == head.epoch && position.seq >= head.trimmed_through && position.seq <= head.seq;
    if known {
        return Ok(());
    }
    Err(Refusal::Resync { now: Position { epoch: head.epoch, seq: head.seq } })
}

/// The next page of events in these rooms, ordered by `Seq`, and the `Seq` up to which the page is complete.
fn page(rooms: &[RoomId], after: Seq, snapshot: &mut dyn Snapshot) -> Result<(Vec<LoggedEvent>, Seq), Fault> {
    let mut through = snapshot.head()?.seq;
    let mut events = Vec::new();
    let limit = (PAGE / rooms.len().max(1)).clamp(PAGE_PER_ROOM.0, PAGE_PER_ROOM.1);
    for room in rooms {
        let tail = snapshot.room_tail(room, after, limit)?;
        if let Some(last) = tail.last().filter(|_| tail.len() == limit) {
            through = through.min(last.seq);
        }
        events.extend(tail);
        // Events beyond `through` are read again with the next page.
        events.retain(|logged_event| logged_event.seq <= through);
    }
    events.sort_by_key(|logged_event| logged_event.seq);
    Ok((events, through))
}
