//! The log tailer delivers every event once and in log order, even if the bus loses, repeats or reorders
//! batches.

use bytes::Bytes;
use parlor_backends::sqlite::{self, Options, Synchronous};
use parlor_engine::feed::{
    Codec, DisconnectReason, Drained, Encoding, Entry, Feed, Interest, Item, Kinds, LiveFrame, NewSession,
    Open, Order, Outbox, OutboxLimits, Session, Since,
};
use parlor_engine::hub::HubDependencies;
use parlor_engine::local::{LocalBus, RandomIds, SystemClock};
use parlor_engine::ports::{Bus, BusPoll, Clock};
use parlor_engine::runs::RuleBasedTriage;
use parlor_engine::{Hub, Limits};
use parlor_model::command::{
    AddMember, CreateRoom, CreateSignIn, CreateUser, NewUser, RoomChanges, SignedIn,
};
use parlor_model::{
    Caller, Event, LoggedEvent, MemberId, Post, Refusal, RoomId, RoomRole, SecretHash, SiteRole, Time,
};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

const MESSAGES: usize = 300;

#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_receives_each_event_once_and_in_order_over_an_unreliable_bus() {
    let directory = tempfile::tempdir().unwrap();
    let hub = open(directory.path());
    let (caller, room) = user_in_a_room(&hub).await;
    let (session, outbox) = session(&hub, &caller).await.unwrap();
    session.open(feed(&room, None)).await.unwrap();

    let mut posted_seqs = Vec::new();
    for n in 0..MESSAGES {
        let posted = hub.execute(&caller, post(&room, n)).await;
        let posted = posted.unwrap();
        posted_seqs.push(posted.position.seq.0);
    }
    let mut received = Vec::new();
    while received.last() < posted_seqs.last() {
        received.extend(take(&outbox).await);
    }
    // The event of the room's creation may be published only after the subscriber joined: ignore it.
    received.retain(|seq| Some(seq) >= posted_seqs.first());
    assert_eq!(received, posted_seqs);
    hub.close().await;
}

/// A client resumes from the position it received last, so positions must never decrease.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_reply_to_a_join_directly_precedes_the_events_after_its_position() {
    let directory = tempfile::tempdir().unwrap();
    let hub = open(directory.path());
    let (caller, room) = user_in_a_room(&hub).await;
    // Wait until the room's creation is published: its members would receive it even without joining the
    // room.
    let posted = hub.execute(&caller, post(&room, 0)).await;
    let posted = posted.unwrap();
    hub.reached(posted.position.seq).await.unwrap();
    let posting = async {
        for n in 0.. {
            hub.execute(&caller, post(&room, n)).await.unwrap();
        }
    };
    let joining = async {
        for _ in 0..200 {
            let (session, outbox) = session(&hub, &caller).await.unwrap();
            session.open(feed(&room, Some(Arc::new(|_| Bytes::new())))).await.unwrap();
            let mut received = Vec::new();
            while received.len() < 3 {
                received.extend(take(&outbox).await);
            }
            assert!(received.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{received:?}");
        }
    };
    tokio::select! {
        () = joining => {}
        () = posting => unreachable!("messages are posted until the joins are done"),
    }
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_member_receives_no_live_event_from_before_its_membership() {
    let directory = tempfile::tempdir().unwrap();
    let bus = Arc::new(GatedBus::default());
    let hub = open_with(directory.path(), bus.clone());
    let (ada, room) = user_in_a_room(&hub).await;
    let ben = user(&hub, "ben").await;
    let (session, outbox) = until_available(async || session(&hub, &ben).await).await;

    bus.set(Gate::Held);
    let before = hub.execute(&ada, post(&room, 0)).await.unwrap().position.seq;
    let member = MemberId::User(ben.user().unwrap().clone());
    let add = AddMember { room: room.clone(), member, role: RoomRole::Member, description: None };
    hub.execute(&ada, add).await.unwrap();
    let opened = session.open(feed(&room, None)).await;
    assert_eq!(opened, Err(Refusal::Unavailable), "the membership is not published yet");
    bus.set(Gate::Open);
    until_available(async || session.open(feed(&room, None)).await).await;

    let after = hub.execute(&ada, post(&room, 1)).await.unwrap().position.seq;
    let mut received = Vec::new();
    while received.last() != Some(&after.0) {
        received.extend(take(&outbox).await);
    }
    assert!(received.iter().all(|seq| *seq > before.0), "{received:?} from before {before:?}");
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_lost_its_feeds_while_it_opened_all_rooms_is_closed() {
    let directory = tempfile::tempdir().unwrap();
    let bus = Arc::new(GatedBus::default());
    let hub = open_with(directory.path(), bus.clone());
    let (ada, room) = user_in_a_room(&hub).await;
    let ben = user(&hub, "ben").await;
    let (session, outbox) = until_available(async || session(&hub, &ben).await).await;

    bus.set(Gate::Held);
    let member = MemberId::User(ben.user().unwrap().clone());
    let add = AddMember { room: room.clone(), member, role: RoomRole::Member, description: None };
    hub.execute(&ada, add).await.unwrap();
    let all = Open { interest: Interest::MyRooms(parlor_engine::feed::RoomFilter::All), ..feed(&room, None) };
    assert_eq!(
        session.open_only(all).await,
        Err(Refusal::Unavailable),
        "the membership is not published yet"
    );
    let taken = outbox.take(&mut Vec::new(), 64).await;
    assert_eq!(taken, Drained::Last(Some(DisconnectReason::Unavailable)));
    bus.set(Gate::Open);
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_for_the_fan_out_is_refused_when_the_log_tailer_has_ended() {
    let directory = tempfile::tempdir().unwrap();
    let bus = Arc::new(GatedBus::default());
    let hub = open_with(directory.path(), bus.clone());
    let (ada, room) = user_in_a_room(&hub).await;
    bus.set(Gate::Closed);
    let posted = hub.execute(&ada, post(&room, 0)).await.unwrap();
    assert_eq!(hub.reached(posted.position.seq).await, Err(Refusal::Unavailable));
    assert_eq!(session(&hub, &ada).await.err(), Some(Refusal::Unavailable));
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_inside_the_process_that_falls_behind_continues_from_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let hub = open(directory.path());
    let (caller, room) = user_in_a_room(&hub).await;
    let mut feed = hub.feed(&caller, Interest::Room(room.clone()), None).await.unwrap();
    let from = feed.position();
    let mut posted = Vec::new();
    // More than the queue of a feed holds.
    for n in 0..1500 {
        posted.push(hub.execute(&caller, post(&room, n)).await.unwrap().position.seq.0);
    }
    assert_eq!(posted_seqs(&mut feed, *posted.last().unwrap()).await, posted);
    assert_eq!(feed.position().map(|position| position.seq.0), posted.last().copied());
    let mut again = hub.feed(&caller, Interest::Room(room), from).await.unwrap();
    assert_eq!(posted_seqs(&mut again, *posted.last().unwrap()).await, posted);
    hub.close().await;
}

/// The sequence numbers of the messages that a feed delivers, up to this one.
async fn posted_seqs(feed: &mut Feed, last: u64) -> Vec<u64> {
    let mut seqs = Vec::new();
    while seqs.last() != Some(&last) {
        if let Item::Events(events) = feed.next().await.unwrap() {
            let posted =
                events.value.iter().filter(|event| matches!(event.event, Event::MessagePosted { .. }));
            seqs.extend(posted.map(|event| event.seq.0));
        }
    }
    seqs
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sessions_of_an_expired_sign_in_end() {
    let directory = tempfile::tempdir().unwrap();
    let clock = Arc::new(SetClock(AtomicI64::new(1)));
    let hub = open_on(directory.path(), Arc::new(GatedBus::default()), clock.clone(), Limits::default());
    let (ada, _) = user_in_a_room(&hub).await;
    let (session, outbox) = session(&hub, &ada).await.unwrap();
    hub.end_expired_sessions().await.unwrap();
    assert!(!outbox.is_closed(), "the sign-in is valid");
    clock.0.store(i64::MAX, Ordering::Relaxed);
    hub.end_expired_sessions().await.unwrap();
    let taken = outbox.take(&mut Vec::new(), 64).await;
    assert_eq!(taken, Drained::Last(Some(DisconnectReason::Revoked)));
    drop(session);
    hub.close().await;
}

struct SetClock(AtomicI64);

impl Clock for SetClock {
    fn now(&self) -> Time {
        Time(self.0.load(Ordering::Relaxed))
    }
}

/// Repeats an operation until the fan-out is fast enough for it.
async fn until_available<T>(operation: impl AsyncFn() -> Result<T, Refusal>) -> T {
    loop {
        match operation().await {
            Err(Refusal::Unavailable) => {}
            Err(refusal) => panic!("{refusal:?}"),
            Ok(done) => return done,
        }
    }
}

/// The sequence numbers of the queued events, and of the position at which the subscription went live.
async fn take(outbox: &Outbox) -> Vec<u64> {
    let mut entries = Vec::new();
    outbox.take(&mut entries, 64).await;
    let seqs = |entry: Entry| match entry.item {
        Item::Events(events) => events.value.iter().map(|logged_event| logged_event.seq.0).collect(),
        Item::Live { live, .. } => vec![live.at.seq.0],
        _ => Vec::new(),
    };
    entries.into_iter().flat_map(seqs).collect()
}

const ENCODING: Encoding =
    Encoding { codec: Codec::new(0), kinds: Kinds::MESSAGES.with(Kinds::CHANGES), order: Order::PerRoom };

/// A session, and its queue.
async fn session(hub: &Hub, caller: &Caller) -> Result<(Session, Arc<Outbox>), Refusal> {
    let outbox = Arc::new(Outbox::new(OutboxLimits { bytes: 1 << 20, buffers: 4096 }));
    let greeting = Bytes::new();
    let new = NewSession {
        outbox: outbox.clone(),
        encoding: ENCODING,
        present: false,
        enters_places: false,
        greeting,
    };
    let (session, ..) = hub.session(caller, new, |_| Ok(())).await?;
    Ok((session, outbox))
}

fn feed(room: &RoomId, live: Option<LiveFrame>) -> Open {
    Open { interest: Interest::Room(room.clone()), since: Since::Now, encoding: ENCODING, opened: None, live }
}

fn post(room: &RoomId, n: usize) -> Post {
    Post {
        id: None,
        origin: None,
        author: None,
        room: room.clone(),
        text: n.to_string().into(),
        mentions: Vec::new(),
        reply_to: None,
        attachments: Vec::new(),
        client_message_id: None,
    }
}

fn open(directory: &std::path::Path) -> Hub {
    let bus = UnreliableBus { bus: LocalBus::new(8), published: AtomicUsize::new(0), late: Mutex::default() };
    open_on(directory, Arc::new(bus), Arc::new(SystemClock), Limits::default())
}

/// A hub that waits only shortly for its fan-out.
fn open_with(directory: &std::path::Path, bus: Arc<GatedBus>) -> Hub {
    let clock = Arc::new(SystemClock);
    open_on(directory, bus, clock, Limits { reach_timeout: Duration::from_millis(20), ..Limits::default() })
}

fn open_on(directory: &std::path::Path, bus: Arc<dyn Bus>, clock: Arc<dyn Clock>, limits: Limits) -> Hub {
    let options = Options { synchronous: Synchronous::Off, ..Options::default() };
    let (store, reader) = sqlite::open(directory, options).unwrap();
    let ids = Arc::new(RandomIds);
    Hub::open(HubDependencies { store, reader, bus, clock, ids, triage: Arc::new(RuleBasedTriage), limits })
        .unwrap()
}

async fn user_in_a_room(hub: &Hub) -> (Caller, RoomId) {
    let caller = user(hub, "ada").await;
    let changes = RoomChanges { name: Some("Kitchen".into()), ..RoomChanges::default() };
    let room = hub.execute(&caller, CreateRoom { changes, members: Vec::new() }).await.unwrap();
    (caller, room.id.clone())
}

async fn user(hub: &Hub, username: &str) -> Caller {
    let account = NewUser {
        username: username.into(),
        display_name: None,
        role: SiteRole::User,
        password_hash: "hash".into(),
    };
    let user = hub.execute(&Caller::OPERATOR, CreateUser { account }).await.unwrap();
    let sign_in = CreateSignIn {
        user: user.id.clone(),
        verified_password_hash: "hash".into(),
        second: None,
        refresh: SecretHash([username.as_bytes()[0]; 32]),
        device: "test".into(),
        address: "here".into(),
        expires_at: Time(i64::MAX),
    };
    let SignedIn { sign_in, .. } = hub.execute(&Caller::ANONYMOUS, sign_in).await.unwrap();
    Caller::person(user.id.clone(), sign_in.id.clone())
}

/// A bus that holds its batches back, or ends the log tailer.
struct GatedBus {
    bus: LocalBus,
    gate: Mutex<Gate>,
    opened: Condvar,
}

#[derive(Clone, Copy, PartialEq)]
enum Gate {
    Open,
    Held,
    Closed,
}

impl Default for GatedBus {
    fn default() -> Self {
        Self { bus: LocalBus::new(64), gate: Mutex::new(Gate::Open), opened: Condvar::new() }
    }
}

impl GatedBus {
    fn set(&self, gate: Gate) {
        *self.gate.lock().unwrap() = gate;
        self.opened.notify_all();
    }
}

impl Bus for GatedBus {
    fn publish(&self, batch: Arc<[LoggedEvent]>) {
        self.bus.publish(batch);
    }

    fn next(&self) -> BusPoll {
        let next = self.bus.next();
        let gate = self.opened.wait_while(self.gate.lock().unwrap(), |gate| *gate == Gate::Held).unwrap();
        if *gate == Gate::Closed { BusPoll::Closed } else { next }
    }
}

/// A bus that, of every four batches, loses one, repeats one, and publishes one after its successor.
struct UnreliableBus {
    bus: LocalBus,
    published: AtomicUsize,
    late: Mutex<Option<Arc<[LoggedEvent]>>>,
}

impl Bus for UnreliableBus {
    fn publish(&self, batch: Arc<[LoggedEvent]>) {
        match self.published.fetch_add(1, Ordering::Relaxed) % 4 {
            0 => {}
            1 => {
                self.bus.publish(batch.clone());
                self.bus.publish(batch);
            }
            2 => *self.late.lock().unwrap() = Some(batch),
            _ => {
                self.bus.publish(batch);
                let late = self.late.lock().unwrap().take();
                late.into_iter().for_each(|late| self.bus.publish(late));
            }
        }
    }

    fn next(&self) -> BusPoll {
        self.bus.next()
    }
}
