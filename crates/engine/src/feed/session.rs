//! Sessions: authenticated connections with one queue for all their feeds.
//!
//! Order, the limit of the queue, revocation and presence belong to the connection, not to a single feed.

use super::attach::Start;
use super::{
    Codec, DisconnectReason, Kinds, LiveFrame, OpenedFrame, Order, Outbox, Resync, RoomFilter, Subscriber,
    SubscriberId,
};
use crate::Hub;
use crate::permission::AuthContext;
use bytes::Bytes;
use parking_lot::Mutex;
use parlor_model::{
    Caller, Destination, Mailbox, Operation, Path, Position, Refusal, RoomId, Signal, SignalStamp, Time,
    UserId,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Subject of a feed. What the caller may see is decided for each event, not when the feed is opened.
#[derive(Debug, Clone)]
pub enum Interest {
    Room(RoomId),
    /// Messages on exactly this path, which is not the path of a room.
    Path(Path),
    /// Rooms of the caller, including rooms joined later, and account events that concern the caller.
    MyRooms(RoomFilter),
    /// Runs in sessions of the caller's agents.
    OwnSessions,
    /// New mail. Mail is state in the store, so `since` does not apply: open first, then read the inbox.
    Mailbox(Mailbox),
}

/// Start of a feed. Missed events are sent before live ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    Now,
    /// The events after this position. If the position is unknown, the feed begins with a resync.
    After(Position),
    /// The last messages of a room or path, at most this many, and all events since the first of them.
    Newest(usize),
    /// The messages of a room or path since this time, and all events since the first of them.
    From(Time),
}

impl From<Option<Position>> for Since {
    fn from(position: Option<Position>) -> Self {
        position.map_or(Self::Now, Self::After)
    }
}

/// A feed to open.
pub struct Open {
    pub interest: Interest,
    pub since: Since,
    /// If the feed is of a single room or path, the kinds apply to this feed alone.
    pub encoding: Encoding,
    /// Frame before the missed events.
    pub opened: Option<OpenedFrame>,
    /// Frame between the missed and the live events.
    pub live: Option<LiveFrame>,
}

/// Items that a feed queues, their order and their encoding.
#[derive(Debug, Clone, Copy)]
pub struct Encoding {
    pub codec: Codec,
    pub kinds: Kinds,
    pub order: Order,
}

/// A connection that begins a session.
pub struct NewSession {
    pub outbox: Arc<Outbox>,
    /// Encoding of the items that concern the user and need no feed.
    pub encoding: Encoding,
    /// Whether the connection makes its user count as online.
    pub present: bool,
    /// Whether the client enters presence sets itself. The hub derives members from all other connections that count as
    /// online.
    pub enters_places: bool,
    /// First frame of the session.
    pub greeting: Bytes,
}

/// Dropping a session closes its feeds, and ends the presence of its user after the grace period.
pub struct Session {
    hub: Hub,
    /// Current credential; [`Session::reauthorise`] replaces it.
    caller: Mutex<Arc<Caller>>,
    /// Rights of the current credential. Its end closes the connection, so they are current without a read.
    rights: Mutex<AuthContext>,
    id: SubscriberId,
    user: UserId,
    /// The session's first subscriber. It also receives items that are sent without an open feed, such as a lost
    /// room.
    own: Mutex<Subscriber>,
    /// Subscribers of further codecs. All subscribers of a session share its queue.
    others: Mutex<Vec<Subscriber>>,
    /// Set by [`Session::open_only`]: feeds of single rooms use the encoding of `own`.
    is_exclusive: AtomicBool,
}

impl Hub {
    /// Begins a session of an authenticated connection. From then on the connection is closed as soon as its sign-in
    /// ends. `admit` may still reject the caller, for example at a connection limit; it is called once, without a lock.
    pub async fn session<T>(
        &self,
        caller: &Caller,
        new: NewSession,
        admit: impl FnOnce(&AuthContext) -> Result<T, Refusal>,
    ) -> Result<(Session, AuthContext, T), Refusal> {
        let NewSession {
            outbox,
            encoding: Encoding { codec, kinds, order },
            present,
            enters_places,
            greeting,
        } = new;
        let subscriber = Subscriber {
            id: self.fanout().next_subscriber_id(),
            user: caller.user().cloned().ok_or(Refusal::NotSignedIn)?,
            principal: caller.principal.clone(),
            outbox,
            codec,
            kinds,
            order,
            present,
            enters_places,
            only_follows: order.only_follows(),
        };
        let (auth, admitted) = self.connect(caller, subscriber.clone(), greeting, admit).await?;
        let session = Session {
            hub: self.clone(),
            caller: Mutex::new(Arc::new(caller.clone())),
            rights: Mutex::new(auth.clone()),
            id: subscriber.id,
            user: subscriber.user.clone(),
            own: Mutex::new(subscriber),
            others: Mutex::default(),
            is_exclusive: AtomicBool::new(false),
        };
        Ok((session, auth, admitted))
    }

    /// Closes the connections of all sessions with a shutdown frame; commands that are already queued are still
    /// decided.
    pub fn end_sessions(&self) {
        self.fanout().shut_down();
    }
}

impl Session {
    /// Opens a feed. Returns when it is live; the missed events are queued first, no faster than they are read. A feed
    /// of all rooms replaces an earlier one of the same codec.
    ///
    /// The feed of a room or path that is already open continues with the kinds of this encoding. With
    /// [`Since::After`] it restarts at that position.
    pub async fn open(&self, open: Open) -> Result<(), Refusal> {
        let subscriber = match &open.interest {
            Interest::MyRooms(filter) => {
                self.hub.may_follow(&self.caller(), filter).await?;
                self.subscriber_with(open.encoding, true).await?
            }
            // A second subscriber would deliver the room twice.
            Interest::Room(_) if self.is_exclusive.load(Ordering::Acquire) => self.own.lock().clone(),
            Interest::Room(_) | Interest::Path(_) | Interest::Mailbox(_) | Interest::OwnSessions => {
                let subscriber = self.subscriber_with(open.encoding, false).await?;
                Subscriber { kinds: open.encoding.kinds, ..subscriber }
            }
        };
        self.begin(open, subscriber).await
    }

    /// Opens a feed of all the caller's rooms as the only feed of rooms. Its encoding replaces the one with which the
    /// session began, so that the session receives every item once; rooms that are opened later use it as well.
    ///
    /// If the caller may not list its rooms, nothing changes. After any other error the session has no open feed of a
    /// room, so its connection is closed.
    pub async fn open_only(&self, open: Open) -> Result<(), Refusal> {
        if let Interest::MyRooms(filter) = &open.interest {
            self.hub.may_follow(&self.caller(), filter).await?;
        }
        for other in self.others.lock().drain(..) {
            self.hub.fanout().disconnect(other.id);
        }
        let subscriber = {
            let mut own = self.own.lock();
            own.set_encoding(open.encoding);
            self.hub.fanout().set_encoding(self.id, open.encoding);
            self.is_exclusive.store(true, Ordering::Release);
            own.clone()
        };
        let outbox = subscriber.outbox.clone();
        let opened = self.begin(open, subscriber).await;
        if opened.is_err() {
            outbox.disconnect(DisconnectReason::Unavailable);
        }
        opened
    }

    async fn begin(&self, open: Open, subscriber: Subscriber) -> Result<(), Refusal> {
        let Open { interest, since, opened, live, .. } = open;
        let caller = self.caller();
        let begin = async |start| match &interest {
            Interest::Mailbox(mailbox) => self.hub.listen(&caller, &subscriber, mailbox.clone()).await,
            Interest::Room(room) => {
                let room = Destination::Room(room.clone());
                self.hub.attach(&caller, &subscriber, &room, start).await
            }
            Interest::Path(path) => {
                let path = Destination::Path(path.clone());
                self.hub.attach(&caller, &subscriber, &path, start).await
            }
            Interest::OwnSessions => self.hub.follow_sessions(&caller, &subscriber).await,
            Interest::MyRooms(rooms) => self.hub.follow(&caller, &subscriber, rooms, start).await,
        };
        let start = Start { since, resync: None, opened, live };
        match begin(start.clone()).await {
            Err(Refusal::Resync { now }) => {
                // The number of missed events is unknown if the position is from another epoch.
                let lost = match since {
                    Since::After(since) if since.epoch == now.epoch => Some(now.seq.0.abs_diff(since.seq.0)),
                    _ => None,
                };
                let resync = Some(Resync { lost, stamp: self.next_stamp() });
                begin(Start { since: Since::Now, resync, ..start }).await
            }
            opened => opened,
        }
    }

    /// Closes the feed of a room.
    pub fn close(&self, room: &RoomId) {
        self.close_topic(&Destination::Room(room.clone()));
    }

    /// Closes the feed of a room or path that uses the session's own encoding.
    pub fn close_topic(&self, topic: &Destination) {
        self.hub.fanout().leave(self.id, topic);
    }

    /// Closes the feed of a room or path that uses this codec.
    pub fn close_encoded(&self, topic: &Destination, codec: Codec) {
        if let Some(id) = self.id_with(codec) {
            self.hub.fanout().leave(id, topic);
        }
    }

    /// The registered subscriber with this codec.
    fn id_with(&self, codec: Codec) -> Option<SubscriberId> {
        if self.own.lock().codec == codec {
            return Some(self.id);
        }
        self.others.lock().iter().find(|other| other.codec == codec).map(|other| other.id)
    }

    /// Whether the session has an open feed of this room or path, in its own encoding.
    pub fn is_topic_open(&self, topic: &Destination) -> bool {
        self.hub.fanout().is_in(self.id, topic)
    }

    /// Whether the session has an open feed of this room.
    pub fn is_open(&self, room: &RoomId) -> bool {
        self.is_topic_open(&Destination::Room(room.clone()))
    }

    /// Publishes a typing signal to the other users in a room. Ignored unless the session has an open feed of the room;
    /// refused if the credential may not publish there.
    pub fn typing(&self, room: &RoomId, username: &str) -> Result<(), Refusal> {
        let topic = Destination::Room(room.clone());
        let others: Vec<SubscriberId> = self.others.lock().iter().map(|other| other.id).collect();
        if !others.into_iter().chain([self.id]).any(|id| self.hub.fanout().is_in(id, &topic)) {
            return Ok(());
        }
        if !self.rights.lock().is_permitted_in(Operation::Publish, room) {
            return Err(Refusal::Forbidden);
        }
        let (user, username) = (self.user().clone(), username.into());
        let signal = Signal::Typing { room: room.clone(), user, username };
        self.hub.fanout().signal_room(room, &signal, Some(self.user()));
        Ok(())
    }

    /// Continues the session with another credential of the same user; the hub closes the connection when this
    /// credential ends. Open feeds stay open: the caller must close or open again each feed that the credential may not
    /// permit, because opening checks the permission.
    pub async fn reauthorise(&self, caller: Caller) -> Result<AuthContext, Refusal> {
        if caller.user() != Some(&self.user) {
            return Err(Refusal::WrongCredentials);
        }
        let ids: Vec<SubscriberId> = {
            let others = self.others.lock();
            others.iter().map(|other| other.id).chain([self.id]).collect()
        };
        let auth_context = self.hub.reauthorise(&caller, &ids).await?;
        self.own.lock().principal = caller.principal.clone();
        for other in self.others.lock().iter_mut() {
            other.principal = caller.principal.clone();
        }
        *self.caller.lock() = Arc::new(caller);
        *self.rights.lock() = auth_context.clone();
        Ok(auth_context)
    }

    pub fn caller(&self) -> Arc<Caller> {
        self.caller.lock().clone()
    }

    pub fn user(&self) -> &UserId {
        &self.user
    }

    pub fn id(&self) -> SubscriberId {
        self.id
    }

    /// Sends the complete presence set of a room or path again, if its feed with this codec is open.
    pub fn resend_occupants(&self, place: &Path, codec: Codec) {
        if let Some(id) = self.id_with(codec) {
            self.hub.fanout().resend_occupants(id, place);
        }
    }

    /// A unique stamp for an item of this session alone.
    pub fn next_stamp(&self) -> SignalStamp {
        self.hub.fanout().next_stamp()
    }

    /// Ends the session before it is dropped.
    pub fn end(&self) {
        for other in self.others.lock().drain(..) {
            self.hub.fanout().disconnect(other.id);
        }
        self.hub.fanout().disconnect(self.id);
    }

    /// The subscriber with this codec, which is registered first if necessary. With `anew`, an earlier one ends.
    async fn subscriber_with(&self, encoding: Encoding, anew: bool) -> Result<Subscriber, Refusal> {
        let own = self.own.lock().clone();
        if encoding.codec == own.codec {
            return Ok(own);
        }
        {
            let mut others = self.others.lock();
            if let Some(place) = others.iter().position(|other| other.codec == encoding.codec) {
                if !anew {
                    return Ok(others[place].clone());
                }
                self.hub.fanout().disconnect(others.swap_remove(place).id);
            }
        }
        let id = self.hub.fanout().next_subscriber_id();
        let mut subscriber = Subscriber { id, present: false, ..own };
        subscriber.set_encoding(encoding);
        self.hub.connect(&self.caller(), subscriber.clone(), Bytes::new(), |_| Ok(())).await?;
        self.others.lock().push(subscriber.clone());
        Ok(subscriber)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.end();
    }
}
