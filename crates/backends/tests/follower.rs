//! The store gives the order, the bus only carries the news: one that loses, repeats and reorders them changes
//! nothing for those who listen.

use bytes::Bytes;
use parlor_backends::sqlite::{self, Options, Synchronous};
use parlor_engine::fanout::{DisconnectReason, Egress, Outbox, OutboxLimits, Subscriber};
use parlor_engine::hub::HubDependencies;
use parlor_engine::local::{LocalBus, RandomIds, SystemClock};
use parlor_engine::ports::{Bus, BusPoll};
use parlor_engine::runs::RuleBasedTriage;
use parlor_engine::{Hub, Limits};
use parlor_model::command::{NewSignIn, NewUser, RoomChanges};
use parlor_model::{
    Caller, Command, Delivery, Epoch, LoggedEvent, Message, Position, Post, Receipt, RoomId, SecretHash, Seq,
    Signal, SignalStamp, SiteRole, Time,
};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

const MESSAGES: usize = 300;

#[tokio::test(flavor = "multi_thread")]
async fn whatever_the_bus_loses_repeats_or_reorders_everyone_hears_each_event_once_and_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let hub = open(directory.path());
    let (caller, room) = somebody_in_a_room(&hub).await;
    let subscriber = viewer(&hub, &caller);
    hub.connect(&caller, subscriber.clone(), Bytes::new(), |_| Ok(())).await.unwrap();
    hub.attach(&caller, &subscriber, &room, None, |_| None).await.unwrap();

    let mut said = Vec::new();
    for n in 0..MESSAGES {
        let posted = hub.execute(&caller, Command::Post(post(&room, n))).await;
        let Ok(Receipt::Posted(posted)) = posted else { panic!("{posted:?}") };
        said.push(posted.position.seq.0);
    }
    let mut heard = Vec::new();
    while heard.last() < said.last() {
        let mut buffers = Vec::new();
        subscriber.outbox.take(&mut buffers, 64).await;
        heard.extend(buffers.concat().chunks(8).map(|seq| u64::from_le_bytes(seq.try_into().unwrap())));
    }
    // That the room was made may be told only after the viewer has joined it.
    heard.retain(|seq| Some(seq) >= said.first());
    assert_eq!(heard, said);
    hub.close().await;
}

/// A client takes the position of whatever comes last: it must never go back.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_answer_to_a_join_comes_right_before_what_follows_its_position() {
    let directory = tempfile::tempdir().unwrap();
    let hub = open(directory.path());
    let (caller, room) = somebody_in_a_room(&hub).await;
    // That the room was made is told to everyone of its people, joined or not: it lies behind them.
    let posted = hub.execute(&caller, Command::Post(post(&room, 0))).await;
    let Ok(Receipt::Posted(posted)) = posted else { panic!("{posted:?}") };
    hub.wait_until_published(posted.position.seq).await;
    let said = async {
        for n in 0.. {
            hub.execute(&caller, Command::Post(post(&room, n))).await.unwrap();
        }
    };
    let joined = async {
        for _ in 0..200 {
            let subscriber = viewer(&hub, &caller);
            hub.connect(&caller, subscriber.clone(), Bytes::new(), |_| Ok(())).await.unwrap();
            let place = |seq: Seq| Bytes::from(seq.0.to_le_bytes().to_vec());
            let answer = move |position: Position| Some(place(position.seq));
            hub.attach(&caller, &subscriber, &room, None, answer).await.unwrap();
            let mut heard = Vec::new();
            while heard.len() < 3 {
                let mut buffers = Vec::new();
                subscriber.outbox.take(&mut buffers, 64).await;
                let places = buffers
                    .concat()
                    .chunks(8)
                    .map(|seq| u64::from_le_bytes(seq.try_into().unwrap()))
                    .collect::<Vec<_>>();
                heard.extend(places);
            }
            assert!(heard.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{heard:?}");
            hub.disconnect(subscriber.id);
        }
    };
    tokio::select! {
        () = joined => {}
        () = said => unreachable!("it says more for as long as somebody joins"),
    }
    hub.close().await;
}

fn viewer(hub: &Hub, caller: &Caller) -> Subscriber {
    Subscriber {
        id: hub.viewer_id(),
        user: caller.user().unwrap().clone(),
        principal: caller.principal.clone(),
        egress: Arc::new(Places),
        outbox: Arc::new(Outbox::new(OutboxLimits { bytes: 1 << 20, buffers: 4096 }, Bytes::new())),
        present: false,
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
    let options = Options { synchronous: Synchronous::Off, ..Options::default() };
    let (store, reader) = sqlite::open(directory, options).unwrap();
    let bus = Unreliable { bus: LocalBus::new(8), announced: AtomicUsize::new(0), late: Mutex::default() };
    let (clock, ids) = (Arc::new(SystemClock), Arc::new(RandomIds));
    Hub::open(HubDependencies {
        store,
        reader,
        bus: Arc::new(bus),
        clock,
        ids,
        triage: Arc::new(RuleBasedTriage),
        limits: Limits::default(),
    })
    .unwrap()
}

async fn somebody_in_a_room(hub: &Hub) -> (Caller, RoomId) {
    let account = NewUser {
        username: "ada".into(),
        display_name: None,
        role: SiteRole::User,
        password_hash: "hash".into(),
    };
    let created = hub.execute(&Caller::OPERATOR, Command::CreateUser(account)).await;
    let Ok(Receipt::User(user)) = created else { panic!("{created:?}") };
    let sign_in = Command::SignIn(NewSignIn {
        user: user.id.clone(),
        verified_password_hash: "hash".into(),
        second: None,
        refresh: SecretHash([1; 32]),
        device: "test".into(),
        address: "here".into(),
        expires_at: Time(i64::MAX),
    });
    let signed_in = hub.execute(&Caller::ANONYMOUS, sign_in).await;
    let Ok(Receipt::SignedIn { sign_in, .. }) = signed_in else { panic!("{signed_in:?}") };
    let caller = Caller::person(user.id.clone(), sign_in.id.clone());
    let changes = RoomChanges { name: Some("Kitchen".into()), ..RoomChanges::default() };
    let made = hub.execute(&caller, Command::CreateRoom { changes, members: Vec::new() }).await;
    let Ok(Receipt::Room(room)) = made else { panic!("{made:?}") };
    (caller, room.id.clone())
}

/// Of every four batches it loses one, repeats one, and lets one come after its successor.
struct Unreliable {
    bus: LocalBus,
    announced: AtomicUsize,
    late: Mutex<Option<Arc<[LoggedEvent]>>>,
}

impl Bus for Unreliable {
    fn publish(&self, news: Arc<[LoggedEvent]>) {
        match self.announced.fetch_add(1, Ordering::Relaxed) % 4 {
            0 => {}
            1 => {
                self.bus.publish(news.clone());
                self.bus.publish(news);
            }
            2 => *self.late.lock().unwrap() = Some(news),
            _ => {
                self.bus.publish(news);
                let late = self.late.lock().unwrap().take();
                late.into_iter().for_each(|late| self.bus.publish(late));
            }
        }
    }

    fn next(&self) -> BusPoll {
        self.bus.next()
    }
}

/// A door that tells the place of each event and nothing else.
struct Places;

impl Egress for Places {
    fn event(&self, logged_event: &LoggedEvent, _: Epoch) -> Option<Bytes> {
        Some(logged_event.seq.0.to_le_bytes().to_vec().into())
    }

    fn room_lost(&self, _: &RoomId, _: &LoggedEvent) -> Option<Bytes> {
        None
    }

    fn delivery(&self, _: &Message, _: &Delivery) -> Option<Bytes> {
        None
    }

    fn signal(&self, _: &Signal, _: SignalStamp) -> Option<Bytes> {
        None
    }

    fn disconnect_frame(&self, _: DisconnectReason) -> Bytes {
        Bytes::new()
    }
}
