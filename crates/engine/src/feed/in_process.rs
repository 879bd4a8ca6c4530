//! Feeds for readers inside the process: items without an encoding, and without an end when the reader is slow.

use super::{
    Codec, DisconnectReason, Drained, Encoding, Entry, Interest, Item, Kinds, NewSession, Open, Order,
    Outbox, OutboxLimits, RoomFilter, Session,
};
use crate::Hub;
use bytes::Bytes;
use parlor_model::{Caller, Position, Refusal};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;

/// Limits of the queue. A reader that falls further behind continues from the store.
const LIMITS: OutboxLimits = OutboxLimits { bytes: 1024 * 1024, buffers: 1024 };
/// Maximum number of items taken from the queue at once.
const ITEMS_PER_DRAIN: usize = 64;
/// In the order of the log, so that one position covers all rooms.
const ENCODING: Encoding = Encoding { codec: Codec::PRIVATE, kinds: Kinds::ALL, order: Order::Log };

type Opening = Pin<Box<dyn Future<Output = Result<(), Refusal>> + Send>>;

/// A session with one feed. If its reader falls behind, it resumes from the store and loses only signals.
pub struct Feed {
    hub: Hub,
    caller: Caller,
    interest: Interest,
    /// Position after the last item that `next` has returned.
    position: Option<Position>,
    outbox: Arc<Outbox>,
    /// Sends the missed events while they are read; `None` once the feed is live.
    opening: Option<Opening>,
    buffered: VecDeque<Entry>,
    _session: Arc<Session>,
}

impl Hub {
    /// Opens a feed for a reader inside the process. It begins with the events after `since`.
    pub async fn feed(
        &self,
        caller: &Caller,
        interest: Interest,
        since: Option<Position>,
    ) -> Result<Feed, Refusal> {
        // A feed of all rooms also reports that a room was lost.
        let interest = match interest {
            Interest::Room(room) => Interest::MyRooms(RoomFilter::Only(room)),
            other => other,
        };
        let outbox = Arc::new(Outbox::new(LIMITS));
        let new = NewSession {
            outbox: outbox.clone(),
            encoding: ENCODING,
            present: false,
            enters_places: false,
            greeting: Bytes::new(),
        };
        let (session, ..) = self.session(caller, new, |_| Ok(())).await?;
        let session = Arc::new(session);
        let (opened, live) = (session.clone(), Arc::new(|_: &_| Bytes::new()) as _);
        let (interest_of_feed, start) = (interest.clone(), since.into());
        let open = Open {
            interest: interest_of_feed,
            since: start,
            encoding: ENCODING,
            opened: None,
            live: Some(live),
        };
        let mut feed = Feed {
            hub: self.clone(),
            caller: caller.clone(),
            interest,
            position: since,
            outbox,
            opening: Some(Box::pin(async move { opened.open(open).await })),
            buffered: VecDeque::new(),
            _session: session,
        };
        // Returns the refusal of a feed that cannot be opened. A feed with missed events opens while it is read.
        feed.advance().await?;
        // Without a position, a reader that falls behind before its first item could not resume. Mail has none.
        while feed.position.is_none() && !matches!(feed.interest, Interest::Mailbox(_)) {
            feed.position = feed.buffered.iter().find_map(|entry| match &entry.item {
                Item::Live { live, .. } => Some(live.at),
                _ => None,
            });
            if feed.position.is_none() && feed.advance().await?.is_some() {
                return Err(Refusal::Unavailable);
            }
        }
        Ok(feed)
    }
}

impl Feed {
    /// Waits for the next item. After `TooSlow` or `Unavailable`, the reader can open another feed at its position; a feed of mail
    /// has none, so its reader reads the mailbox again. Cancel-safe.
    pub async fn next(&mut self) -> Result<Item, DisconnectReason> {
        loop {
            if let Some(entry) = self.buffered.pop_front() {
                match &entry.item {
                    Item::Events(events) => {
                        let last = events.value.last().map(|logged_event| logged_event.seq);
                        self.position = last.map(|seq| Position { epoch: self.hub.epoch(), seq });
                    }
                    Item::Live { live, .. } => self.position = Some(live.at),
                    _ => {}
                }
                return Ok(entry.item);
            }
            match self.advance().await.unwrap_or_else(|refusal| Some(reason(&refusal))) {
                None => {}
                // Mail has no position to resume from.
                Some(DisconnectReason::TooSlow) if self.position.is_some() => {
                    let (caller, interest) = (self.caller.clone(), self.interest.clone());
                    let resumed = self.hub.clone().feed(&caller, interest, self.position).await;
                    *self = resumed.map_err(|refusal| reason(&refusal))?;
                }
                Some(reason) => return Err(reason),
            }
        }
    }

    /// Position from which a later feed misses nothing; `None` for a feed of mail.
    pub fn position(&self) -> Option<Position> {
        self.position
    }

    /// Waits until the feed has gone live, or until items are buffered. Returns why the hub has ended the feed, if it
    /// has. Cancel-safe.
    async fn advance(&mut self) -> Result<Option<DisconnectReason>, Refusal> {
        let mut entries = Vec::new();
        let taken = match &mut self.opening {
            None => self.outbox.take(&mut entries, ITEMS_PER_DRAIN).await,
            Some(opening) => tokio::select! {
                biased;
                opened = opening => {
                    self.opening = None;
                    return opened.map(|()| None);
                }
                taken = self.outbox.take(&mut entries, ITEMS_PER_DRAIN) => taken,
            },
        };
        self.buffered.extend(entries);
        match taken {
            Drained::Last(reason) if self.buffered.is_empty() => {
                Ok(Some(reason.unwrap_or(DisconnectReason::ShuttingDown)))
            }
            Drained::More | Drained::Last(_) => Ok(None),
        }
    }
}

/// Why a feed ended that could not be opened again.
fn reason(refusal: &Refusal) -> DisconnectReason {
    match refusal {
        Refusal::Unavailable => DisconnectReason::Unavailable,
        _ => DisconnectReason::Revoked,
    }
}
