//! The log tailer delivers every event once and in log order, even if the bus loses, repeats or reorders
//! batches.

use bytes::Bytes;
use parlor_backends::sqlite::{self, Options, Synchronous};
use parlor_engine::feed::{Codec, Entry, Item, Kinds, Order, Outbox, OutboxLimits, Subscriber, Welcome};
use parlor_engine::hub::HubDependencies;
use parlor_engine::local::{LocalBus, RandomIds, SystemClock};
use parlor_engine::ports::{Bus, BusPoll};
use parlor_engine::runs::RuleBasedTriage;
use parlor_engine::{Hub, Limits};
use parlor_model::command::{
    AddMember, CreateRoom, CreateSignIn, CreateUser, NewUser, RoomChanges, SignedIn,
};
use parlor_model::{
    Caller, LoggedEvent, MemberId, Post, Refusal, RoomId, RoomRole, SecretHash, SiteRole, Time,
};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

const MESSAGES: usize = 300;

#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_receives_each_event_once_and_in_order_over_an_unreliable_bus() {
    let directory = tempfile::tempdir().unwrap();
    let hub = open(directory.path());
    let (caller, room) = user_in_a_room(&hub).await;
    let subscriber = subscriber(&hub, &caller);
    hub.connect(&caller, subscriber.clone(), Bytes::new(), |_| Ok(())).await.unwrap();
    hub.attach(&caller, &subscriber, &room, None, None).await.unwrap();

    let mut posted_seqs = Vec::new();
    for n in 0..MESSAGES {
        let posted = hub.execute(&caller, post(&room, n)).await;
        let posted = posted.unwrap();
        posted_seqs.push(posted.position.seq.0);
    }
    let mut received = Vec::new();
    while received.last() < posted_seqs.last() {
        received.extend(take(&subscriber).await);
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
            let subscriber = subscriber(&hub, &caller);
            hub.connect(&caller, subscriber.clone(), Bytes::new(), |_| Ok(())).await.unwrap();
            let reply: Welcome = Arc::new(|_| Bytes::new());
            hub.attach(&caller, &subscriber, &room, None, Some(reply)).await.unwrap();
            let mut received = Vec::new();
            while received.len() < 3 {
                received.extend(take(&subscriber).await);
            }
            assert!(received.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{received:?}");
            hub.disconnect(subscriber.id);
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
    let subscriber = subscriber(&hub, &ben);
    until_available(async || hub.connect(&ben, subscriber.clone(), Bytes::new(), |_| Ok(())).await).await;

    bus.set(Gate::Held);
    let before = hub.execute(&ada, post(&room, 0)).await.unwrap().position.seq;
    let member = MemberId::User(ben.user().unwrap().clone());
    let add = AddMember { room: room.clone(), member, role: RoomRole::Member, description: None };
    hub.execute(&ada, add).await.unwrap();
    let attached = hub.attach(&ben, &subscriber, &room, None, None).await;
    assert_eq!(attached, Err(Refusal::Unavailable), "the membership is not published yet");
    bus.set(Gate::Open);
    until_available(async || hub.attach(&ben, &subscriber, &room, None, None).await).await;

    let after = hub.execute(&ada, post(&room, 1)).await.unwrap().position.seq;
    let mut received = Vec::new();
    while received.last() != Some(&after.0) {
        received.extend(take(&subscriber).await);
    }
    assert!(received.iter().all(|seq| *seq > before.0), "{received:?} from before {before:?}");
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
    let subscriber = subscriber(&hub, &ada);
    let connected = hub.connect(&ada, subscriber, Bytes::new(), |_| Ok(())).await;
    assert_eq!(connected.err(), Some(Refusal::Unavailable));
    hub.close().await;
}

/// Repeats an operation until the fan-out is fast enough for it.
async fn until_available<T>(operation: impl AsyncFn() -> Result<T, Refusal>) {
    loop {
        match operation().await {
            Err(Refusal::Unavailable) => {}
            Err(refusal) => panic!("{refusal:?}"),
            Ok(_) => return,
        }
    }
}

/// The sequence numbers of the queued events, and of the position at which the subscription went live.
async fn take(subscriber: &Subscriber) -> Vec<u64> {
    let mut entries = Vec::new();
    subscriber.outbox.take(&mut entries, 64).await;
    let seqs = |entry: Entry| match entry.item {
        Item::Events(events) => events.value.iter().map(|logged_event| logged_event.seq.0).collect(),
        Item::Live { at, .. } => vec![at.seq.0],
        _ => Vec::new(),
    };
    entries.into_iter().flat_map(seqs).collect()
}

fn subscriber(hub: &Hub, caller: &Caller) -> Subscriber {
    Subscriber {
        id: hub.next_subscriber_id(),
        user: caller.user().unwrap().clone(),
        principal: caller.principal.clone(),
        outbox: Arc::new(Outbox::new(OutboxLimits { bytes: 1 << 20, buffers: 4096 })),
        codec: Codec::new(0),
        kinds: Kinds::MESSAGES.with(Kinds::CHANGES),
        order: Order::PerRoom,
        present: false,
        only_follows: false,
    }
}

fn post(room: &RoomId, n: usize) -> Post {
    Post {
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
    open_on(directory, Arc::new(bus), Limits::default())
}

/// A hub that waits only shortly for its fan-out.
fn open_with(directory: &std::path::Path, bus: Arc<GatedBus>) -> Hub {
    open_on(directory, bus, Limits { reach_timeout: Duration::from_millis(20), ..Limits::default() })
}

fn open_on(directory: &std::path::Path, bus: Arc<dyn Bus>, limits: Limits) -> Hub {
    let options = Options { synchronous: Synchronous::Off, ..Options::default() };
    let (store, reader) = sqlite::open(directory, options).unwrap();
    let (clock, ids) = (Arc::new(SystemClock), Arc::new(RandomIds));
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
