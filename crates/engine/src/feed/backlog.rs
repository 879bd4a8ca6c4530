//! Missed events of a feed that the replay buffer no longer has: read from the store in pages.

use super::{Events, Item, Kinds, Opened, OpenedFrame, RoomFilter, Subscriber};
use crate::paths::on_path;
use crate::ports::{Head, Snapshot};
use crate::{Fault, Hub};
use parlor_model::{Caller, Event, LoggedEvent, Operation, Path, Position, Refusal, RoomId, Seq};

/// Maximum number of missed events per page: in total, and the minimum and maximum per room or path.
const PAGE: usize = 1000;
const PAGE_PER_ROOM: (usize, usize) = (20, 200);

/// Topics whose missed events are read. The rights are read with each page.
#[derive(Clone)]
pub enum Backlog {
    Rooms(RoomFilter),
    Path(Path),
}

impl Hub {
    /// Sends the frame before the missed events of a feed, which are about to follow from the store.
    pub(super) fn send_opened(&self, subscriber: &Subscriber, frame: Option<OpenedFrame>, after: Seq) {
        let from = Position { epoch: self.epoch(), seq: after };
        let opened = Opened { from, missed: true, resync: None };
        if let Some(frame) = frame {
            subscriber.outbox.push_item(subscriber.codec, Item::Opened { opened, frame });
        }
    }

    /// Sends one page of missed events from the store, no faster than the subscriber reads. Returns the `Seq` up to
    /// which the subscriber is caught up.
    pub(super) async fn send_missed(
        &self,
        caller: &Caller,
        subscriber: &Subscriber,
        backlog: &Backlog,
        after: Seq,
    ) -> Result<Seq, Refusal> {
        let (caller, backlog) = (caller.clone(), backlog.clone());
        let (events, through) = self
            .read_snapshot(move |hub, snapshot| match &backlog {
                Backlog::Rooms(following) => match hub.visible_rooms(&caller, following, snapshot)? {
                    Ok(rooms) => page(&rooms, after, snapshot).map(Ok),
                    Err(refusal) => Ok(Err(refusal)),
                },
                Backlog::Path(path) => {
                    let permitted = hub.with_view(&caller, snapshot, |caller, _| {
                        Ok(on_path(caller, Operation::Subscribe, path).map(drop))
                    })?;
                    match permitted {
                        Ok(()) => page_on_path(path, after, snapshot).map(Ok),
                        Err(refusal) => Ok(Err(refusal)),
                    }
                }
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

/// Refuses a position that the log does not contain.
pub(super) fn check_position(position: Position, head: Head) -> Result<(), Refusal> {
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

/// The next page of messages on a path, with the same result as [`page`].
fn page_on_path(
    path: &Path,
    after: Seq,
    snapshot: &mut dyn Snapshot,
) -> Result<(Vec<LoggedEvent>, Seq), Fault> {
    let (head, limit) = (snapshot.head()?.seq, PAGE_PER_ROOM.1);
    let events = snapshot.path_tail(path, after, limit)?;
    let through = events.last().filter(|_| events.len() == limit).map_or(head, |last| last.seq);
    Ok((events, through))
}
