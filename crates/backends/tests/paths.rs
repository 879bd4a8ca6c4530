//! Feeds and history of paths outside rooms on a SQLite store: live delivery, resume, rewind and permissions.

use bytes::Bytes;
use parlor_backends::sqlite::{self, Options, Synchronous};
use parlor_engine::feed::{
    Codec, Encoding, Interest, Item, Kinds, LiveFrame, NewSession, Open, OpenedFrame, Order, Outbox,
    OutboxLimits, Session, Since,
};
use parlor_engine::hub::HubDependencies;
use parlor_engine::local::{LocalBus, RandomIds};
use parlor_engine::ports::Clock;
use parlor_engine::runs::RuleBasedTriage;
use parlor_engine::{Hub, Limits};
use parlor_model::command::{
    ChangeUser, CreateRoom, CreateSignIn, CreateUser, NewUser, PathMessage, Publish, Published, RoomChanges,
    SignedIn, UserChanges,
};
use parlor_model::query::ListDestinationHistory;
use parlor_model::{
    Caller, Destination, Epoch, Event, Grant, GrantEntry, Operation, Operations, Path, Payload, Position,
    Post, Refusal, Resource, RoomId, SecretHash, Seq, SiteRole, Time,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// More messages than the replay buffer holds and a page of the store contains.
const MANY: usize = 500;

struct Test {
    hub: Hub,
    clock: Arc<SetClock>,
    _directory: tempfile::TempDir,
}

struct SetClock(AtomicI64);

impl Clock for SetClock {
    fn now(&self) -> Time {
        Time(self.0.load(Ordering::Relaxed))
    }
}

impl Test {
    fn open() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let options = Options { synchronous: Synchronous::Off, ..Options::default() };
        let (store, reader) = sqlite::open(directory.path(), options).unwrap();
        let clock = Arc::new(SetClock(AtomicI64::new(1_000)));
        let limits = Limits { recent_events: 10, ..Limits::default() };
        let hub = Hub::open(HubDependencies {
            store,
            reader,
            bus: Arc::new(LocalBus::new(64)),
            clock: clock.clone(),
            ids: Arc::new(RandomIds),
            triage: Arc::new(RuleBasedTriage),
            limits,
        });
        Self { hub: hub.unwrap(), clock, _directory: directory }
    }

    async fn user(&self, username: &str, role: SiteRole) -> Caller {
        let account =
            NewUser { username: username.into(), display_name: None, role, password_hash: "hash".into() };
        let user = self.hub.execute(&Caller::OPERATOR, CreateUser { account }).await.unwrap();
        let sign_in = CreateSignIn {
            user: user.id.clone(),
            verified_password_hash: "hash".into(),
            second: None,
            refresh: SecretHash([username.as_bytes()[0]; 32]),
            device: "test".into(),
            address: "here".into(),
            expires_at: Time(i64::MAX),
        };
        let SignedIn { sign_in, .. } = self.hub.execute(&Caller::ANONYMOUS, sign_in).await.unwrap();
        Caller::person(user.id.clone(), sign_in.id.clone())
    }

    async fn admin(&self) -> Caller {
        self.user("root", SiteRole::Admin).await
    }

    async fn publish(&self, caller: &Caller, path: &str, names: &[String]) -> Result<Published, Refusal> {
        let message = |name: &String| PathMessage {
            name: (&**name).into(),
            payload: Payload("{}".into()),
            external_id: (&**name).into(),
            connection: None,
        };
        let messages = names.iter().map(message).collect();
        let (path, sender_name, source) = (Path::parse(path).unwrap(), "ada".into(), "test".into());
        self.hub.execute(caller, Publish { path, sender_name, source, messages }).await
    }

    /// Publishes messages named by these numbers, in commands of a few, and returns their positions.
    async fn publish_many(
        &self,
        caller: &Caller,
        path: &str,
        numbers: std::ops::Range<usize>,
    ) -> Vec<Position> {
        let names: Vec<String> = numbers.map(|n| n.to_string()).collect();
        let mut positions = Vec::new();
        for some in names.chunks(7) {
            let published = self.publish(caller, path, some).await.unwrap();
            positions.extend(published.messages.into_iter().map(|(_, position)| position));
        }
        self.hub.reached(positions.last().unwrap().seq).await.unwrap();
        positions
    }
}

fn limited(caller: &Caller, path: &str, operations: &[Operation]) -> Caller {
    let resource = Resource::Exactly(Path::parse(path).unwrap());
    let operations: Operations = operations.iter().copied().collect();
    let grant = Grant::new([GrantEntry { resource, operations }]);
    Caller { grant: Some(Arc::new(grant)), ..caller.clone() }
}

const ENCODING: Encoding = Encoding { codec: Codec::new(0), kinds: Kinds::ALL, order: Order::PerRoom };

struct Subscriber {
    session: Session,
    outbox: Arc<Outbox>,
}

impl Subscriber {
    async fn connect(hub: &Hub, caller: &Caller) -> Self {
        let outbox = Arc::new(Outbox::new(OutboxLimits { bytes: 1 << 20, buffers: 4096 }));
        let new = NewSession {
            outbox: outbox.clone(),
            encoding: ENCODING,
            present: false,
            enters_places: false,
            greeting: Bytes::new(),
        };
        let (session, ..) = hub.session(caller, new, |_| Ok(())).await.unwrap();
        Self { session, outbox }
    }

    async fn open(&self, interest: Interest, since: Since) -> Result<(), Refusal> {
        let opened: OpenedFrame = Arc::new(|_| Bytes::new());
        let live: LiveFrame = Arc::new(|_| Bytes::new());
        self.session
            .open(Open { interest, since, encoding: ENCODING, opened: Some(opened), live: Some(live) })
            .await
    }

    async fn follow(&self, path: &str, since: Since) -> Result<(), Refusal> {
        self.open(Interest::Path(Path::parse(path).unwrap()), since).await
    }

    /// Takes items until the message with this name, or text in a room: the names, and the marks of the feed.
    async fn take_until(&self, last: &str) -> Vec<String> {
        let mut words = Vec::new();
        while words.last().map(String::as_str) != Some(last) {
            let mut entries = Vec::new();
            self.outbox.take(&mut entries, 99).await;
            for entry in entries {
                match entry.item {
                    Item::Opened { opened, .. } => words.push(format!(
                        "opened {}{}{}",
                        opened.from.seq,
                        if opened.missed { " missed" } else { "" },
                        if opened.resync.is_some() { " resync" } else { "" }
                    )),
                    Item::Live { .. } => words.push("live".into()),
                    Item::Events(events) => {
                        words.extend(events.value.iter().filter_map(|event| match &event.event {
                            Event::MessagePosted { message, .. } => {
                                Some(message.command.as_deref().unwrap_or(&message.text).to_owned())
                            }
                            _ => None,
                        }));
                    }
                    _ => {}
                }
            }
        }
        words
    }
}

fn numbers(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|n| n.to_string()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_resumes_from_the_store_without_gap_or_duplicate() {
    let test = Test::open();
    let admin = test.admin().await;
    let positions = test.publish_many(&admin, "x/a", 0..MANY).await;
    test.publish_many(&admin, "x/b", 0..20).await;
    for from in [0, 200, 201, MANY - 5, MANY - 1] {
        let subscriber = Subscriber::connect(&test.hub, &admin).await;
        let opening = subscriber.follow("x/a", Since::After(positions[from]));
        let (opened, words) = tokio::join!(opening, subscriber.take_until("live"));
        opened.unwrap();
        let missed = if from == MANY - 1 { 0 } else { MANY - 1 - from };
        assert!(words[0].starts_with(&format!("opened {}", positions[from].seq)), "{from}: {words:?}");
        assert_eq!(words[1..=missed], numbers(from + 1..MANY), "{from}");
        assert_eq!(words.len(), missed + 2, "{from}");
    }
    test.hub.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_that_is_opened_while_messages_are_published_misses_and_repeats_none() {
    let test = Test::open();
    let admin = test.admin().await;
    let first = test.publish_many(&admin, "x/a", 0..50).await[0];
    let subscriber = Subscriber::connect(&test.hub, &admin).await;
    let last = (MANY - 1).to_string();
    let (positions, opened, words) = tokio::join!(
        test.publish_many(&admin, "x/a", 50..MANY),
        subscriber.follow("x/a", Since::After(first)),
        subscriber.take_until(&last)
    );
    opened.unwrap();
    assert_eq!(positions.len(), MANY - 50);
    let messages: Vec<_> = words.into_iter().filter(|word| word.parse::<usize>().is_ok()).collect();
    assert_eq!(messages, numbers(1..MANY));
    test.hub.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_begins_with_the_newest_messages_or_those_since_a_time() {
    let test = Test::open();
    let admin = test.admin().await;
    let early = test.publish_many(&admin, "x/a", 0..30).await;
    test.clock.0.store(5_000, Ordering::Relaxed);
    let late = test.publish_many(&admin, "x/a", 30..33).await;
    let begin = async |since| {
        let subscriber = Subscriber::connect(&test.hub, &admin).await;
        subscriber.follow("x/a", since).await.unwrap();
        subscriber.take_until("live").await
    };
    let opened = |first: Position| format!("opened {} missed", first.seq.0 - 1);
    assert_eq!(begin(Since::Newest(2)).await, [opened(late[1]), "31".into(), "32".into(), "live".into()]);
    assert_eq!(begin(Since::Newest(99)).await.len(), 35);
    assert_eq!(begin(Since::Newest(99)).await[0], opened(early[0]));
    assert_eq!(begin(Since::From(Time(5_000))).await[..2], [opened(late[0]), "30".into()]);
    assert_eq!(begin(Since::From(Time(4_000))).await[..2], [opened(late[0]), "30".into()]);
    let now = format!("opened {}", late[2].seq);
    assert_eq!(begin(Since::From(Time(9_000))).await, [&*now, "live"]);
    assert_eq!(begin(Since::Newest(0)).await, [&*now, "live"]);
    test.hub.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_position_opens_the_feed_with_a_resync_and_live() {
    let test = Test::open();
    let admin = test.admin().await;
    let position = *test.publish_many(&admin, "x/a", 0..3).await.last().unwrap();
    let unknown = [
        Position { epoch: Epoch(position.epoch.0 ^ 1), ..position },
        Position { seq: Seq(position.seq.0 + 1), ..position },
    ];
    for since in unknown {
        let subscriber = Subscriber::connect(&test.hub, &admin).await;
        subscriber.follow("x/a", Since::After(since)).await.unwrap();
        let words = subscriber.take_until("live").await;
        assert_eq!(words, [format!("opened {} resync", position.seq), "live".into()]);
    }
    test.hub.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rewind_of_a_room_does_not_reach_behind_its_messages() {
    let test = Test::open();
    let ada = test.user("ada", SiteRole::User).await;
    let changes = RoomChanges { name: Some("Kitchen".into()), ..RoomChanges::default() };
    let room = test.hub.execute(&ada, CreateRoom { changes, members: Vec::new() }).await.unwrap().id.clone();
    for n in 0..40 {
        test.hub.execute(&ada, post(&room, n)).await.unwrap();
    }
    let subscriber = Subscriber::connect(&test.hub, &ada).await;
    subscriber.open(Interest::Room(room.clone()), Since::Newest(30)).await.unwrap();
    assert_eq!(subscriber.take_until("live").await[1..31], numbers(10..40));
    let ben = test.user("ben", SiteRole::User).await;
    let other = Subscriber::connect(&test.hub, &ben).await;
    let refused = other.open(Interest::Room(room.clone()), Since::Newest(3)).await;
    assert_eq!(refused, Err(Refusal::NotAMember { room }));
    test.hub.close().await;
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

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_permits_each_operation_on_its_path_alone() {
    let test = Test::open();
    let ada = test.user("ada", SiteRole::User).await;
    let name = ["n".to_owned()];
    assert_eq!(test.publish(&ada, "x/a", &name).await.err(), Some(Refusal::Forbidden));
    for granted in [Operation::Publish, Operation::Subscribe, Operation::History] {
        let caller = limited(&ada, "x/a", &[granted]);
        let allows = |operation| if granted == operation { Ok(()) } else { Err(Refusal::Forbidden) };
        assert_eq!(test.publish(&caller, "x/a", &name).await.map(drop), allows(Operation::Publish));
        assert_eq!(test.publish(&caller, "x/b", &name).await.err(), Some(Refusal::Forbidden));
        let subscriber = Subscriber::connect(&test.hub, &caller).await;
        assert_eq!(subscriber.follow("x/a", Since::Now).await, allows(Operation::Subscribe));
        assert_eq!(subscriber.follow("x/b", Since::Now).await, Err(Refusal::Forbidden));
        let history = test.hub.read(&caller, history_of("x/a")).await.map(drop);
        assert_eq!(history, allows(Operation::History));
        assert_eq!(test.hub.read(&caller, history_of("x/b")).await.err(), Some(Refusal::Forbidden));
    }
    test.hub.close().await;
}

fn history_of(path: &str) -> ListDestinationHistory {
    let destination = Destination::Path(Path::parse(path).unwrap());
    let (start, end, until, cursor) = (None, None, None, None);
    ListDestinationHistory { destination, forwards: false, start, end, until, cursor, limit: 3 }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_history_of_a_path_is_paged_in_both_directions_up_to_a_position() {
    let test = Test::open();
    let admin = test.admin().await;
    let positions = test.publish_many(&admin, "x/a", 0..10).await;
    let page = async |query: ListDestinationHistory| {
        let page = test.hub.read(&admin, query).await.unwrap();
        let names = page.messages.iter().map(|message| message.command.as_deref().unwrap().to_owned());
        (names.collect::<Vec<_>>().join(" "), page.more)
    };
    let backwards = history_of("x/a");
    assert_eq!(page(backwards.clone()).await, ("9 8 7".into(), true));
    let cursor = |n: usize| Some(positions[n].seq);
    let older = ListDestinationHistory { cursor: cursor(2), ..backwards.clone() };
    assert_eq!(page(older).await, ("1 0".into(), false));
    let until = ListDestinationHistory { until: cursor(4), ..backwards.clone() };
    assert_eq!(page(until.clone()).await, ("4 3 2".into(), true));
    let both = ListDestinationHistory { cursor: cursor(3), ..until };
    assert_eq!(page(both).await, ("2 1 0".into(), false));
    let forwards = ListDestinationHistory { forwards: true, ..backwards };
    assert_eq!(page(forwards.clone()).await, ("0 1 2".into(), true));
    let newer = ListDestinationHistory { cursor: cursor(6), until: cursor(8), ..forwards };
    assert_eq!(page(newer).await, ("7 8".into(), false));
    test.hub.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_publication_is_published_once() {
    let test = Test::open();
    let admin = test.admin().await;
    let names = numbers(0..3);
    let first = test.publish(&admin, "x/a", &names).await.unwrap();
    let again = test.publish(&admin, "x/a", &names).await.unwrap();
    assert_eq!((again.messages.clone(), first.repeated, again.repeated), (first.messages, false, true));
    let stored = test.hub.read(&admin, history_of("x/a")).await.unwrap();
    let ids: Vec<_> = stored.messages.iter().rev().map(|message| message.id.clone()).collect();
    let expected: Vec<_> = again.messages.into_iter().map(|(id, _)| id).collect();
    assert_eq!((ids, stored.more), (expected, false));
    test.publish(&admin, "x/b", &names).await.unwrap();
    let other = test.publish(&admin, "x/a", &["0".into(), "different".into()]).await;
    assert!(matches!(other, Err(Refusal::Conflict { .. })), "{other:?}");
    test.hub.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_former_admin_loses_its_feeds_of_paths() {
    let test = Test::open();
    let (admin, _other) = (test.admin().await, test.user("ada", SiteRole::Admin).await);
    let subscriber = Subscriber::connect(&test.hub, &admin).await;
    subscriber.follow("x/a", Since::Now).await.unwrap();
    subscriber.take_until("live").await;
    let changes = UserChanges { role: Some(SiteRole::User), ..UserChanges::default() };
    let user = admin.user().unwrap().clone();
    test.hub.execute(&Caller::OPERATOR, ChangeUser { user, changes }).await.unwrap();
    let mut entries = Vec::new();
    use parlor_engine::feed::{DisconnectReason, Drained};
    while subscriber.outbox.take(&mut entries, 9).await == Drained::More {}
    assert_eq!(subscriber.outbox.take(&mut entries, 9).await, Drained::Last(Some(DisconnectReason::Revoked)));
    test.hub.close().await;
}
