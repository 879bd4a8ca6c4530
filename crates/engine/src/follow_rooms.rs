//! Subscribes a connection to all rooms of its user in one total order, with replay of missed events from the
//! store.

use crate::feed::{FollowScope, JoinResult, RoomFilter, Subscriber};
use crate::hub::blocking;
use crate::permission::PermitError;
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::{Fault, Hub};
use bytes::Bytes;
use parlor_model::query::{ListRooms, MayFollowRoom};
use parlor_model::{
    Caller, Event, LoggedEvent, MemberId, Position, Refusal, RoomId, Seq, Signal, SignalStamp,
};

/// Maximum number of missed events per page: in total, and the minimum and maximum per room.
const PAGE: usize = 1000;
const PAGE_PER_ROOM: (usize, usize) = (20, 200);

impl Hub {
    /// Subscribes a connection to the caller's rooms, including rooms joined later. With `since`, the events
    /// after that position are sent first, without gap or duplicate. `welcome` works as in [`Hub::attach`].
    pub async fn follow(
        &self,
        caller: &Caller,
        subscriber: &Subscriber,
        following: &RoomFilter,
        since: Option<Position>,
        welcome: impl Fn(Position) -> Option<Bytes> + Clone + Send + 'static,
    ) -> Result<Position, Refusal> {
        self.may_follow(caller, following).await?;
        let mut from = since.map(|position| position.seq);
        let mut replayed_from_log = false;
        if let Some(position) = since {
            self.check_position(position).await?;
        }
        loop {
            let (hub, caller_now, id) = (self.clone(), caller.clone(), subscriber.id);
            let (filter, welcome) = (following.clone(), welcome.clone());
            let joined = blocking(move || {
                let scope = || hub.follow_scope(&caller_now, &filter);
                hub.fanout().follow(id, filter.clone(), from, scope, welcome)
            });
            match joined.await?.ok_or(Refusal::NotSignedIn)? {
                JoinResult::Live { from } => {
                    if replayed_from_log {
                        // Events without a room are not replayed from the log, so the client is asked to
                        // reload its state.
                        self.fanout().signal_subscriber(id, &Signal::Refresh);
                    }
                    return Ok(from);
                }
                JoinResult::NotPublishedYet => self.wait_until_published(from.unwrap_or_default()).await,
                JoinResult::NeedsReplay => {
                    replayed_from_log = true;
                    let after = from.unwrap_or_default();
                    from = Some(self.send_missed(caller, subscriber, following, after).await?);
                }
            }
        }
    }

    /// Whether the caller may currently follow these rooms.
    pub async fn may_follow(&self, caller: &Caller, following: &RoomFilter) -> Result<(), Refusal> {
        match following {
            RoomFilter::All => self.may(caller, ListRooms).await,
            RoomFilter::Only(room) => self.may(caller, MayFollowRoom { room: room.clone() }).await,
        }
    }

    /// A unique stamp for a signal that is sent to a single connection.
    pub fn next_stamp(&self) -> SignalStamp {
        self.fanout().next_stamp()
    }

    /// Rooms and queued runs that the caller may see. Called under the fan-out's lock, so that the result
    /// cannot become stale.
    fn follow_scope(&self, caller: &Caller, following: &RoomFilter) -> Result<Option<FollowScope>, Fault> {
        let mut seen = None;
        self.with_snapshot(&mut |snapshot| {
            seen = self.visible_rooms(caller, following, snapshot)?;
            Ok(())
        })?;
        Ok(seen.map(|rooms| FollowScope { signals: self.scheduler().lock().queues_in(&rooms), rooms }))
    }

    /// Returns `None` if the caller may not follow any rooms.
    fn visible_rooms(
        &self,
        caller: &Caller,
        following: &RoomFilter,
        snapshot: &mut dyn Snapshot,
    ) -> Result<Option<Vec<RoomId>>, Fault> {
        self.with_view(caller, snapshot, |caller, view| {
            let Ok(own) = PermitError::split(ListRooms.permit(caller, view))? else { return Ok(None) };
            let own = MemberId::User(own.user.id.clone());
            let mut rooms = Vec::new();
            let memberships = view.store.memberships(&own)?.into_iter();
            for member in memberships.filter(|own| following.includes(&own.room)) {
                let query = MayFollowRoom { room: member.room.clone() };
                if PermitError::split(query.permit(caller, view))?.is_ok() {
                    rooms.push(member.room);
                }
            }
            Ok(Some(rooms))
        })
    }

    /// Sends one page of missed events. Returns the `Seq` up to which the subscriber is caught up.
    async fn send_missed(
        &self,
        caller: &Caller,
        subscriber: &Subscriber,
        following: &RoomFilter,
        after: Seq,
    ) -> Result<Seq, Refusal> {
        let (caller, following) = (caller.clone(), following.clone());
        let (events, through) = self
            .read_snapshot(move |hub, snapshot| {
                let Some(rooms) = hub.visible_rooms(&caller, &following, snapshot)? else {
                    return Ok(Err(Refusal::NotSignedIn));
                };
                page(&rooms, after, snapshot).map(Ok)
            })
            .await??;
        let for_them = |logged_event: &&LoggedEvent| {
            logged_event.event.only_user().is_none_or(|person| *person == subscriber.user)
        };
        // Open approvals are sent when the subscription begins.
        let is_replayed =
            |logged_event: &&LoggedEvent| !matches!(logged_event.event, Event::ApprovalAsked(_));
        for logged_event in events.iter().filter(for_them).filter(is_replayed) {
            if let Some(bytes) = subscriber.egress.event(logged_event, self.epoch())
                && !subscriber.outbox.push_when_half_empty(bytes).await
            {
                return Err(Refusal::Unavailable);
            }
        }
        Ok(through)
    }
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
