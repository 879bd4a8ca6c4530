//! Subscriptions of connections to live events: presence, rooms and mailboxes.

use super::{Hub, blocking};
use crate::feed::{JoinResult, ReceivesEvents, Subscriber, SubscriberId};
use crate::permission::AuthContext;
use bytes::Bytes;
use parlor_model::query::{MayFollowRoom, MayListenToMailbox};
use parlor_model::{
    Caller, EntityKind, Event, LoggedEvent, Mailbox, Position, Refusal, RoomId, Scope, Seq, Signal, UserId,
};

impl Hub {
    /// Registers an authenticated connection and queues its protocol's greeting. From then on the connection
    /// is closed as soon as its sign-in ends. `count` may still reject the caller, for example at a
    /// connection limit.
    pub async fn connect<T: Send + 'static>(
        &self,
        caller: &Caller,
        subscriber: Subscriber,
        greeting: Bytes,
        count: impl FnOnce(&AuthContext) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<(AuthContext, T), Refusal> {
        let (caller, hub, user) = (caller.clone(), self.clone(), subscriber.user.clone());
        let (admission, first) = blocking(move || {
            hub.inner.fanout.connect(subscriber, greeting, || {
                let mut auth = None;
                hub.inner.reader.with(&mut |snapshot| {
                    auth = hub.with_view(&caller, snapshot, |caller, _| Ok(caller.auth.clone()))?;
                    Ok(())
                })?;
                let Some(auth) = auth.as_deref().cloned() else { return Ok(Err(Refusal::NotSignedIn)) };
                let hears = ReceivesEvents(auth.has(Scope::Read));
                Ok(count(&auth).map(|counted| ((auth, counted), hears)))
            })
        })
        .await??;
        if first {
            // If this read fails, only the presence signal is lost; the connection stays registered.
            let _ = self.present(&user, true).await;
        }
        Ok(admission)
    }

    /// Removes a connection. Returns whether its user is no longer online.
    pub fn disconnect(&self, viewer: SubscriberId) -> bool {
        self.inner.fanout.disconnect(viewer)
    }

    /// Publishes that a user is offline, unless the user has reconnected.
    pub async fn publish_absence(&self, user: &UserId) -> Result<(), Refusal> {
        if self.inner.fanout.is_present(user) {
            return Ok(());
        }
        self.present(user, false).await
    }

    /// Publishes a user's presence to all users who share a room with them, and to their own connections.
    async fn present(&self, user: &UserId, online: bool) -> Result<(), Refusal> {
        let id = user.clone();
        let found = self.read_snapshot(move |_, snapshot| Ok((snapshot.user(&id)?, snapshot.peers(&id)?)));
        let (Some(person), mut people) = found.await? else { return Ok(()) };
        people.push(user.clone());
        let signal = Signal::Presence { user: user.clone(), username: person.username, online };
        self.inner.fanout.signal_people(&people, &signal);
        Ok(())
    }

    /// Subscribes a connection to a room. With `since`, the events after that position are sent first,
    /// without gap or duplicate. `welcome` encodes the reached position into a frame that is sent between the
    /// replayed and the live events.
    pub async fn attach(
        &self,
        caller: &Caller,
        subscriber: &Subscriber,
        room: &RoomId,
        since: Option<Position>,
        welcome: impl Fn(Position) -> Option<Bytes> + Clone + Send + 'static,
    ) -> Result<Position, Refusal> {
        self.may(caller, MayFollowRoom { room: room.clone() }).await?;
        let mut from = since.map(|position| position.seq);
        if let Some(position) = since {
            self.check_position(position).await?;
            // The replay covers everything after the position, so the connection must not receive live events
            // at the same time. Without a position, an existing subscription continues: events missed during
            // an interruption could not be replayed.
            self.inner.fanout.leave(subscriber.id, room);
        }
        loop {
            match self.try_join(caller, subscriber, room, from, welcome.clone()).await? {
                JoinResult::Live { from } => return Ok(from),
                JoinResult::NotPublishedYet => {
                    self.inner.fanout.wait_until_published(from.unwrap_or_default()).await
                }
                JoinResult::NeedsReplay => {
                    let after = from.unwrap_or_default();
                    from = Some(self.catch_up(caller, subscriber, room, after).await?);
                }
            }
        }
    }

    pub fn detach(&self, viewer: SubscriberId, room: &RoomId) {
        self.inner.fanout.leave(viewer, room);
    }

    pub fn is_attached(&self, viewer: SubscriberId, room: &RoomId) -> bool {
        self.inner.fanout.is_in(viewer, room)
    }

    /// Pushes new mail of an agent's mailbox to a connection.
    pub async fn listen(
        &self,
        caller: &Caller,
        viewer: SubscriberId,
        mailbox: Mailbox,
    ) -> Result<(), Refusal> {
        let query = MayListenToMailbox { agent: mailbox.agent.clone() };
        self.may(caller, query.clone()).await?;
        let (caller, hub) = (caller.clone(), self.clone());
        let listening =
            blocking(move || hub.inner.fanout.listen(viewer, mailbox, || hub.admitted(&caller, &query)))
                .await?;
        if listening { Ok(()) } else { Err(Refusal::NotFound(EntityKind::Agent)) }
    }

    /// Waits until all events up to `seq` have been published to their subscribers.
    pub async fn wait_until_published(&self, seq: Seq) {
        self.inner.fanout.wait_until_published(seq).await;
    }

    /// Publishes a typing signal to the other users in a room. Ignored unless the connection is subscribed to
    /// the room.
    pub fn typing(&self, subscriber: &Subscriber, username: &str, room: &RoomId) {
        if self.inner.fanout.is_in(subscriber.id, room) {
            let signal = Signal::Typing {
                room: room.clone(),
                user: subscriber.user.clone(),
                username: username.into(),
            };
            self.inner.fanout.signal_room(room, &signal, Some(&subscriber.user));
        }
    }

    pub fn next_subscriber_id(&self) -> SubscriberId {
        self.inner.fanout.next_subscriber_id()
    }

    /// Closes every connection with a shutdown frame; commands that are already queued are still decided.
    pub fn disconnect_all(&self) {
        self.inner.fanout.shut_down();
    }

    async fn try_join(
        &self,
        caller: &Caller,
        subscriber: &Subscriber,
        room: &RoomId,
        from: Option<Seq>,
        welcome: impl FnOnce(Position) -> Option<Bytes> + Send + 'static,
    ) -> Result<JoinResult, Refusal> {
        let (caller, hub, id, room) = (caller.clone(), self.clone(), subscriber.id, room.clone());

        blocking(move || {
            let query = MayFollowRoom { room: room.clone() };
            let admitted = || hub.admitted(&caller, &query);
            let joined = hub.inner.fanout.join(id, &room, from, admitted, welcome)?;
            Ok(joined.ok_or(Refusal::NotAMember { room }))
        })
        .await?
    }

    /// Sends one page of missed events from the store. Returns the `Seq` up to which the subscriber is caught
    /// up.
    async fn catch_up(
        &self,
        caller: &Caller,
        subscriber: &Subscriber,
        room: &RoomId,
        after: Seq,
    ) -> Result<Seq, Refusal> {
        const PAGE: usize = 200;
        let (caller, id) = (caller.clone(), room.clone());
        let (events, through) = self
            .read_snapshot(move |hub, snapshot| {
                let query = MayFollowRoom { room: id.clone() };
                if let Err(refusal) = hub.permitted(&caller, &query, snapshot)? {
                    return Ok(Err(refusal));
                }
                let events = snapshot.room_tail(&id, after, PAGE)?;
                let through = match events.last() {
                    Some(last) if events.len() == PAGE => last.seq,
                    _ => snapshot.head()?.seq,
                };
                Ok(Ok((events, through)))
            })
            .await??;
        let for_them = |logged_event: &&LoggedEvent| {
            logged_event.event.only_user().is_none_or(|person| *person == subscriber.user)
        };
        // Open approvals are sent when the subscription to the room begins.
        let is_replayed =
            |logged_event: &&LoggedEvent| !matches!(logged_event.event, Event::ApprovalAsked(_));
        for logged_event in events.iter().filter(for_them).filter(is_replayed) {
            if let Some(bytes) = subscriber.egress.event(logged_event, self.inner.epoch)
                && !subscriber.outbox.push_when_half_empty(bytes).await
            {
                return Err(Refusal::Unavailable);
            }
        }
        Ok(through)
    }

    pub(crate) async fn check_position(&self, position: Position) -> Result<(), Refusal> {
        let head = self.read_snapshot(|_, snapshot| snapshot.head()).await?;
        let known =
            position.epoch == head.epoch && position.seq >= head.trimmed_through && position.seq <= head.seq;
        if known {
            return Ok(());
        }
        Err(Refusal::Resync { now: Position { epoch: head.epoch, seq: head.seq } })
    }
}
