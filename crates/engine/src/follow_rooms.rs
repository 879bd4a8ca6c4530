//! Following all of one's rooms at once, in one order.

use crate::authorise::authorise_query;
use crate::fanout::{FollowScope, JoinResult, RoomFilter, Subscriber};
use crate::hub::blocking;
use crate::ports::Snapshot;
use crate::{Fault, Hub};
use bytes::Bytes;
use parlor_model::{
    Caller, Event, LoggedEvent, MemberId, Position, Query, Refusal, RoomId, Seq, Signal, SignalStamp,
};

/// How many missed events are read at once: in all, and of each room at least and at most.
const PAGE: usize = 1000;
const PAGE_PER_ROOM: (usize, usize) = (20, 200);

impl Hub {
    /// Follows the caller's rooms live, also those that are to come; with `since`, tells what was missed first,
    /// without hole or repeat. `welcome` as with [`Hub::attach`].
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
        let mut behind = false;
        if let Some(position) = since {
            self.check_position(position).await?;
        }
        loop {
            let (hub, caller_now, id) = (self.clone(), caller.clone(), subscriber.id);
            let (wanted, welcome) = (following.clone(), welcome.clone());
            let joined = blocking(move || {
                let seen = || hub.seen_by(&caller_now, &wanted);
                hub.switchboard().follow(id, wanted.clone(), from, seen, welcome)
            });
            match joined.await?.ok_or(Refusal::NotSignedIn)? {
                JoinResult::Live { from } => {
                    if behind {
                        // What happened in no room is not read from the log: whoever was away for so long looks anew.
                        self.switchboard().signal_viewer(id, &Signal::Refresh);
                    }
                    return Ok(from);
                }
                JoinResult::NotPublishedYet => self.wait_until_published(from.unwrap_or_default()).await,
                JoinResult::NeedsReplay => {
                    behind = true;
                    let after = from.unwrap_or_default();
                    from = Some(self.tell_missed(caller, subscriber, following, after).await?);
                }
            }
        }
    }

    /// Whether the caller may follow this now.
    pub async fn may_follow(&self, caller: &Caller, following: &RoomFilter) -> Result<(), Refusal> {
        match following {
            RoomFilter::All => self.may(caller, Query::Rooms).await,
            RoomFilter::Only(room) => self.may(caller, Query::MayFollow { room: room.clone() }).await,
        }
    }

    /// A number that nothing else has, for what one connection is told alone.
    pub fn next_stamp(&self) -> SignalStamp {
        self.switchboard().moment()
    }

    /// What may be followed now; asked while nothing can change it.
    fn seen_by(&self, caller: &Caller, following: &RoomFilter) -> Result<Option<FollowScope>, Fault> {
        let mut seen = None;
        self.with_snapshot(&mut |snapshot| {
            seen = self.rooms_seen(caller, following, snapshot)?;
            Ok(())
        })?;
        Ok(seen.map(|rooms| FollowScope { signals: self.turns().desk().queues_in(&rooms), rooms }))
    }

    /// `None` where the caller may follow nothing at all.
    fn rooms_seen(
        &self,
        caller: &Caller,
        following: &RoomFilter,
        snapshot: &mut dyn Snapshot,
    ) -> Result<Option<Vec<RoomId>>, Fault> {
        let facts = self.facts(caller, &Query::Rooms, snapshot)?;
        let (Ok(()), Some(standing)) = (authorise_query(caller, &Query::Rooms, &facts), &facts.standing)
        else {
            return Ok(None);
        };
        let own = MemberId::User(standing.user.id.clone());
        let mut rooms = Vec::new();
        for member in snapshot.memberships(&own)?.into_iter().filter(|own| following.includes(&own.room)) {
            let query = Query::MayFollow { room: member.room.clone() };
            let facts = self.facts(caller, &query, snapshot)?;
            if authorise_query(caller, &query, &facts).is_ok() {
                rooms.push(member.room);
            }
        }
        Ok(Some(rooms))
    }

    /// Tells one page of what was missed, and says up to where.
    async fn tell_missed(
        &self,
        caller: &Caller,
        subscriber: &Subscriber,
        following: &RoomFilter,
        after: Seq,
    ) -> Result<Seq, Refusal> {
        let (caller, following) = (caller.clone(), following.clone());
        let (events, through) = self
            .read_snapshot(move |hub, snapshot| {
                let Some(rooms) = hub.rooms_seen(&caller, &following, snapshot)? else {
                    return Ok(Err(Refusal::NotSignedIn));
                };
                page(&rooms, after, snapshot).map(Ok)
            })
            .await??;
        let for_them = |logged_event: &&LoggedEvent| {
            logged_event.event.only_user().is_none_or(|person| *person == subscriber.user)
        };
        // What is open is shown when the seats are taken.
        let told = |logged_event: &&LoggedEvent| !matches!(logged_event.event, Event::ApprovalAsked(_));
        for logged_event in events.iter().filter(for_them).filter(told) {
            if let Some(bytes) = subscriber.egress.event(logged_event, self.epoch())
                && !subscriber.outbox.push_when_half_empty(bytes).await
            {
                return Err(Refusal::Unavailable);
            }
        }
        Ok(through)
    }
}

/// What happened in these rooms next, in one order, and up to where that is all of it.
fn page(rooms: &[RoomId], after: Seq, snapshot: &mut dyn Snapshot) -> Result<(Vec<LoggedEvent>, Seq), Fault> {
    let mut through = snapshot.head()?.seq;
    let mut events = Vec::new();
    let most = (PAGE / rooms.len().max(1)).clamp(PAGE_PER_ROOM.0, PAGE_PER_ROOM.1);
    for room in rooms {
        let tail = snapshot.room_tail(room, after, most)?;
        if let Some(last) = tail.last().filter(|_| tail.len() == most) {
            through = through.min(last.seq);
        }
        events.extend(tail);
        // What lies beyond is read again, with the next page.
        events.retain(|logged_event| logged_event.seq <= through);
    }
    events.sort_by_key(|logged_event| logged_event.seq);
    Ok((events, through))
}
