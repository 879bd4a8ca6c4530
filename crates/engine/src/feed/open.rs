//! Opens subscriptions: connections, all rooms of a user, and mailboxes; single rooms and paths are in `attach`.
//!
//! Each takes four steps: *reserve* under the fan-out's lock, *read* the rights and the head of the log in one
//! snapshot, *reach* that head, and *subscribe* under the lock unless the reservation has become invalid. A subscriber
//! is neither ahead of its membership nor behind its removal, and no read of the store happens under the lock.

use super::attach::Start;
use super::backlog::{Backlog, check_position};
use super::reservations::Reservation;
use super::subscribe::{Subscribed, Subscription, Topics};
use super::{RoomFilter, Since, Subscriber, SubscriberId};
use crate::permission::{AuthContext, PermitError};
use crate::ports::{Head, Snapshot};
use crate::queries::Query;
use crate::{Fault, Hub};
use bytes::Bytes;
use parlor_model::query::{ListRooms, MayFollowRoom, MayFollowSessions, MayListenToMailbox};
use parlor_model::{
    AgentId, Caller, Mailbox, MemberId, Principal, Refusal, RoomId, Scope, Seq, Signal, UserId,
};
use std::sync::Arc;

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
                .reserve(&subscriber.user, None, move |hub, snapshot| hub.authenticated(&who, snapshot))
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
            let (reservation, auth, _) =
                self.reserve(user, None, move |hub, snapshot| hub.authenticated(&who, snapshot)).await?;
            if self.fanout().reauthorise(&reservation, ids, &caller.principal, auth.has(Scope::Read)) {
                return Ok(AuthContext::clone(&auth));
            }
        }
    }

    /// Reads the auth context of a connection. If the connection's key is valid only while its owner is a site admin, an
    /// event that changes the role closes the connection.
    fn authenticated(
        &self,
        caller: &Caller,
        snapshot: &mut dyn Snapshot,
    ) -> Result<Result<Arc<AuthContext>, Refusal>, Fault> {
        if let Principal::Program { key, .. } = &caller.principal
            && snapshot.key(key)?.is_some_and(|key| key.grant.is_some())
        {
            self.fanout().add_admin_key(key.clone());
        }
        let auth = self.with_view(caller, snapshot, |caller, _| Ok(caller.auth.clone()))?;
        Ok(auth.ok_or(Refusal::NotSignedIn))
    }

    /// Subscribes a connection to the caller's rooms, including rooms joined later, in one total order. Such a feed
    /// begins at a position or now: a search for messages by time would read every room.
    pub(super) async fn follow(
        &self,
        caller: &Caller,
        subscriber: &Subscriber,
        following: &RoomFilter,
        start: Start,
    ) -> Result<(), Refusal> {
        let Start { since, resync, mut opened, live } = start;
        let (mut from, mut replayed_from_log) = (None, false);
        loop {
            let (who, filter) = (caller.clone(), following.clone());
            let visible =
                move |hub: &Hub, snapshot: &mut dyn Snapshot| hub.visible_rooms(&who, &filter, snapshot);
            let (reservation, rooms, head) = self.reserve(&subscriber.user, None, visible).await?;
            if let (Since::After(position), None) = (since, from) {
                check_position(position, head)?;
                from = Some(position.seq);
            }
            let (id, kinds) = (subscriber.id, subscriber.kinds);
            let topics = Topics::Rooms { rooms: &rooms, following: Some(following) };
            let subscription = Subscription {
                id,
                topics,
                kinds,
                since: from,
                resync,
                opened: opened.as_ref(),
                live: live.as_ref(),
            };
            match self.fanout().subscribe(&reservation, &subscription) {
                Subscribed::Live => {
                    if replayed_from_log {
                        // Events without a room are not replayed from the log, so the client is asked to
                        // reload its state.
                        self.fanout().signal_subscriber(id, &Signal::Refresh);
                    }
                    return Ok(());
                }
                Subscribed::Invalid => {}
                Subscribed::NeedsFacts => self.load_present_users().await?,
                Subscribed::Disconnected => return Err(Refusal::NotSignedIn),
                Subscribed::NeedsReplay => {
                    replayed_from_log = true;
                    let after = from.unwrap_or_default();
                    self.send_opened(subscriber, opened.take(), after);
                    let backlog = Backlog::Rooms(following.clone());
                    from = Some(self.send_missed(caller, subscriber, &backlog, after).await?);
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
            let (who, query) = (caller.clone(), MayListenToMailbox { mailbox: mailbox.clone() });
            let permitted =
                move |hub: &Hub, snapshot: &mut dyn Snapshot| hub.permitted(&who, &query, snapshot);
            let (reservation, (), _) =
                self.reserve(&subscriber.user, Some(&mailbox.agent), permitted).await?;
            if self.fanout().listen(&reservation, subscriber.id, mailbox.clone()) {
                return Ok(());
            }
        }
    }

    /// Publishes the runs in sessions of the caller's agents to a connection.
    pub(super) async fn follow_sessions(
        &self,
        caller: &Caller,
        subscriber: &Subscriber,
    ) -> Result<(), Refusal> {
        loop {
            let who = caller.clone();
            let permitted = move |hub: &Hub, snapshot: &mut dyn Snapshot| {
                hub.permitted(&who, &MayFollowSessions, snapshot)
            };
            let (reservation, (), _) = self.reserve(&subscriber.user, None, permitted).await?;
            if self.fanout().follow_sessions(&reservation, subscriber.id, subscriber.kinds) {
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
    pub(super) async fn reserve<T: Send + 'static>(
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
    pub(super) fn visible_rooms(
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
}
