//! Feeds of paths in the fan-out: live delivery, order, replay, kinds and revocation.

use super::*;
use parlor_model::{KeyId, SiteRole, User};

struct Test {
    fanout: Fanout,
    outbox: Arc<Outbox>,
    id: SubscriberId,
}

impl Test {
    fn new(order: Order) -> Self {
        let fanout = Fanout::new(Epoch(1), Seq(0), &Limits::default(), clock());
        let outbox = Arc::new(Outbox::new(OutboxLimits { bytes: 10_000, buffers: 100 }));
        let principal = Principal::Program { user: UserId::stored("ann"), key: KeyId::stored("key") };
        let subscriber = Subscriber { order, principal, ..subscriber(&fanout, &outbox) };
        let id = subscriber.id;
        connect(&fanout, subscriber, "");
        Self { fanout, outbox, id }
    }

    fn open(&self, path: &str, since: Option<u64>) -> Subscribed {
        self.open_with(path, since, Kinds::ALL, false)
    }

    fn open_with(&self, path: &str, since: Option<u64>, kinds: Kinds, by_role: bool) -> Subscribed {
        let reservation = self.fanout.reserve(&UserId::stored("ann"), None);
        let topics = Topics::Path { path: &Path::stored(path), by_role };
        let opened: OpenedFrame = Arc::new(|_| Bytes::new());
        let new = Subscription {
            since: since.map(Seq),
            kinds,
            opened: Some(&opened),
            live: Some(&live_frame()),
            ..subscription(self.id, topics)
        };
        self.fanout.subscribe(&reservation, &new)
    }

    /// The queued items: groups of sequence numbers, and the positions of the marks.
    async fn take(&self) -> Vec<String> {
        let mut entries = Vec::new();
        // An item makes sure that the queue is never empty.
        self.outbox.push(Bytes::from_static(b"."));
        self.outbox.take(&mut entries, 99).await;
        let words = entries.iter().filter_map(|entry| match &entry.item {
            Item::Events(events) => {
                let seqs = events.value.iter().map(|event| event.seq.to_string());
                Some(seqs.collect::<Vec<_>>().join("+"))
            }
            Item::Opened { opened, .. } => {
                Some(format!("opened {}{}", opened.from.seq, if opened.missed { " missed" } else { "" }))
            }
            Item::Live { live, .. } => Some(format!("live {}", live.at.seq)),
            _ => None,
        });
        words.collect()
    }
}

#[tokio::test]
async fn a_feed_of_a_path_has_the_messages_of_exactly_that_path_grouped_per_batch() {
    let test = Test::new(Order::PerRoom);
    assert!(matches!(test.open("x/a", None), Subscribed::Live));
    assert_eq!(test.take().await, ["opened 0", "live 0"]);
    let lobby = posted(3, 1);
    test.fanout.publish(&[published(1, "x/a"), published(2, "x/b"), lobby, published(4, "x/a")]);
    test.fanout.publish(&[published(5, "x/a/b"), published(6, "x/a")]);
    assert_eq!(test.take().await, ["1+4", "6"]);
    test.fanout.leave(test.id, &Destination::Path(Path::stored("x/a")));
    test.fanout.publish(&[published(7, "x/a")]);
    assert_eq!(test.take().await, [""; 0]);
}

#[tokio::test]
async fn in_log_order_messages_of_paths_and_rooms_are_not_reordered() {
    let test = Test::new(Order::Log);
    test.open("x/a", None);
    join(&test.fanout, test.id, &RoomId::stored("lobby"), None, None);
    test.take().await;
    let batch = [published(1, "x/a"), published(2, "x/a"), posted(3, 1), published(4, "x/b")];
    test.fanout.publish(&batch);
    test.fanout.publish(&[posted(5, 1), published(6, "x/a")]);
    assert_eq!(test.take().await, ["1+2", "3", "5", "6"]);
}

#[tokio::test]
async fn a_resumed_feed_begins_with_the_missed_messages_of_its_path() {
    let test = Test::new(Order::PerRoom);
    test.fanout.publish(&[published(1, "x/a"), published(2, "x/b"), published(3, "x/a"), posted(4, 1)]);
    assert!(matches!(test.open("x/a", Some(1)), Subscribed::Live));
    assert_eq!(test.take().await, ["opened 1 missed", "3", "live 4"]);
    assert!(matches!(test.open("x/c", Some(0)), Subscribed::Live));
    assert_eq!(test.take().await, ["opened 0", "live 4"], "nothing was missed on that path");
}

#[tokio::test]
async fn messages_that_left_the_replay_buffer_are_read_from_the_store() {
    let limits = Limits { recent_events: 2, ..Limits::default() };
    let test = Test { fanout: Fanout::new(Epoch(1), Seq(0), &limits, clock()), ..Test::new(Order::PerRoom) };
    connect(&test.fanout, Subscriber { id: test.id, ..subscriber(&test.fanout, &test.outbox) }, "");
    test.fanout.publish(&[published(1, "x/a"), published(2, "x/a"), published(3, "x/b")]);
    assert!(matches!(test.open("x/a", Some(0)), Subscribed::NeedsReplay));
    assert!(matches!(test.open("x/a", Some(1)), Subscribed::Live));
    assert_eq!(test.take().await, ["opened 1 missed", "2", "live 3"]);
}

#[tokio::test]
async fn kinds_apply_per_topic_and_are_replaced_when_it_is_opened_again() {
    let test = Test::new(Order::PerRoom);
    test.open_with("x/a", None, Kinds::SIGNALS, false);
    test.open("x/b", None);
    test.take().await;
    test.fanout.publish(&[published(1, "x/a"), published(2, "x/b")]);
    assert_eq!(test.take().await, ["2"]);
    test.open("x/a", None);
    test.fanout.publish(&[published(3, "x/a")]);
    assert_eq!(test.take().await, ["opened 2", "live 2", "3"]);
    test.open_with("x/a", Some(0), Kinds::SIGNALS, false);
    assert_eq!(test.take().await, ["opened 0", "live 3"], "no message is replayed without its kind");
}

#[tokio::test]
async fn a_revoked_key_loses_its_feeds_of_paths() {
    let test = Test::new(Order::PerRoom);
    test.open("x/a", None);
    let revoked = Event::KeyRevoked { user: UserId::stored("ann"), key: KeyId::stored("key") };
    test.fanout.publish(&[published(1, "x/a"), logged(2, revoked), published(3, "x/a")]);
    let mut entries = Vec::new();
    assert_eq!(test.outbox.take(&mut entries, 9).await, Drained::Last(Some(DisconnectReason::Revoked)));
    let seqs = entries.iter().filter_map(|entry| match &entry.item {
        Item::Events(events) => Some(events.value[0].seq),
        _ => None,
    });
    assert_eq!(seqs.collect::<Vec<_>>(), [Seq(1)]);
    assert!(!test.fanout.is_in(test.id, &Destination::Path(Path::stored("x/a"))));
}

#[test]
fn a_former_site_admin_loses_the_feeds_that_its_role_permitted() {
    for (by_role, role, ends) in
        [(true, SiteRole::User, true), (true, SiteRole::Admin, false), (false, SiteRole::User, false)]
    {
        let test = Test::new(Order::PerRoom);
        test.open_with("x/a", None, Kinds::ALL, by_role);
        let user = User { role, ..crate::commands::test_fixtures::user("ann") };
        let changed = Event::UserChanged { user: Arc::new(user), audience: Arc::default() };
        test.fanout.publish(&[logged(1, changed)]);
        assert_eq!(test.outbox.is_closed(), ends, "{by_role} {role:?}");
    }
}

#[test]
fn a_key_that_needs_a_site_admin_ends_with_the_role_of_its_owner() {
    for (is_admin_key, role, ends) in
        [(true, SiteRole::User, true), (true, SiteRole::Admin, false), (false, SiteRole::User, false)]
    {
        let test = Test::new(Order::PerRoom);
        if is_admin_key {
            test.fanout.add_admin_key(KeyId::stored("key"));
        }
        let user = User { role, ..crate::commands::test_fixtures::user("ann") };
        let changed = Event::UserChanged { user: Arc::new(user), audience: Arc::default() };
        test.fanout.publish(&[logged(1, changed)]);
        assert_eq!(test.outbox.is_closed(), ends, "{is_admin_key} {role:?}");
    }
}
