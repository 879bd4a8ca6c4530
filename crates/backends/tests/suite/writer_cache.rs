//! The writer's cache in a running hub: it saves reads, and a rolled-back batch leaves nothing in it.

use crate::fixtures::*;
use crate::stores::{Handles, StoreFixture, StoreKind, kinds};
use crate::test_hub::TestHub;
use parlor_engine::Limits;
use parlor_engine::changes::{AccountChange, Change, CredentialChange, RoomChange};
use parlor_engine::commands::Command;
use parlor_engine::effects::Effects;
use parlor_model::command::AddMember;
use parlor_model::{
    Caller, Epoch, Member, Path, Payload, Post, Refusal, RoomRole, Route, SecretHash, SignInId, SiteRole,
    Time, User,
};
use parlor_testkit::stores::{Observed, StoreWatch};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A store with Ann, who owns the room `lobby`, and Bob, who is in no room; and the site admin Cyd with the agent
/// `coder`.
struct Lobby {
    fixture: Box<dyn StoreFixture>,
    watch: RefCell<Option<Arc<StoreWatch>>>,
}

impl StoreFixture for Rc<Lobby> {
    fn open(&self) -> Handles {
        let (mut store, reader) = self.fixture.open();
        let ann = Member { role: RoomRole::Owner, ..member("lobby", person("ann"), 1) };
        let changes = vec![
            put_user("ann", 1),
            put_user("bob", 2),
            Change::Credential(CredentialChange::PutSignIn(
                Arc::new(sign_in("of ann", "ann", i64::MAX)),
                SecretHash([1; 32]),
            )),
            Change::Credential(CredentialChange::PutSignIn(
                Arc::new(sign_in("of bob", "bob", i64::MAX)),
                SecretHash([2; 32]),
            )),
            Change::Account(AccountChange::PutUser(Arc::new(User {
                role: SiteRole::Admin,
                ..user("cyd", 3)
            }))),
            Change::Credential(CredentialChange::PutSignIn(
                Arc::new(sign_in("of cyd", "cyd", i64::MAX)),
                SecretHash([3; 32]),
            )),
            put_agent("coder", "cyd"),
            put_room("lobby"),
            Change::Room(RoomChange::PutMember(Arc::new(ann))),
        ];
        let mut transaction = store.begin().unwrap();
        transaction.apply(&Effects { changes, ..Effects::default() }).unwrap();
        transaction.commit().unwrap();
        let (observed, watch) = Observed::new(store);
        *self.watch.borrow_mut() = Some(watch);
        (Box::new(observed), reader)
    }
}

/// A hub on each store. Verification is off, because it reads too and would hide a stale entry by a panic.
async fn each(limits: Limits, test: impl AsyncFn(&TestHub, &StoreWatch)) {
    on(kinds(), limits, test).await;
}

async fn on_disk(limits: Limits, test: impl AsyncFn(&TestHub, &StoreWatch)) {
    let kinds: Vec<StoreKind> = kinds().into_iter().filter(|kind| kind.name == "sqlite").collect();
    assert_eq!(kinds.len(), 1);
    on(kinds, limits, test).await;
}

async fn on(
    kinds: impl IntoIterator<Item = StoreKind>,
    limits: Limits,
    test: impl AsyncFn(&TestHub, &StoreWatch),
) {
    for kind in kinds {
        println!("store: {}", kind.name);
        let lobby = Rc::new(Lobby { fixture: (kind.make)(Epoch(0xa11ce)), watch: RefCell::new(None) });
        let limits = Limits { verify_cache: false, ..limits.clone() };
        let mut test_hub = TestHub::with_limits(Box::new(lobby.clone()), Time(1_000_000), limits);
        let watch = lobby.watch.borrow().clone().expect("the hub has opened the store");
        test(&test_hub, &watch).await;
        test_hub.close().await;
    }
}

fn caller(user: &str) -> Caller {
    Caller::person(user_id(user), SignInId::stored(format!("of {user}")))
}

fn post(key: Option<&str>) -> Post {
    Post {
        id: None,
        origin: None,
        author: None,
        room: room_id("lobby"),
        text: "hello".into(),
        mentions: Vec::new(),
        reply_to: None,
        attachments: Vec::new(),
        client_message_id: key.map(Into::into),
    }
}

/// Number of reads that the writer has made in its transactions. Only stores on disk count them.
fn reads(test_hub: &TestHub) -> u64 {
    test_hub.hub().metrics().tally.store_reads.load(Ordering::Relaxed)
}

async fn reads_of<C: Command>(test_hub: &TestHub, user: &str, command: C) -> u64 {
    let before = reads(test_hub);
    test_hub.hub().execute(&caller(user), command).await.unwrap();
    reads(test_hub) - before
}

#[tokio::test(flavor = "multi_thread")]
async fn in_the_steady_state_a_post_reads_only_its_idempotency_key() {
    on_disk(Limits::default(), async |test_hub, _| {
        assert!(reads_of(test_hub, "ann", post(Some("first"))).await > 1);
        for key in ["second", "third"] {
            assert_eq!(reads_of(test_hub, "ann", post(Some(key))).await, 1);
        }
        assert_eq!(reads_of(test_hub, "ann", post(None)).await, 0);
    })
    .await;
}

fn route(from: &str, path: &str, external_id: Option<&str>) -> Route {
    Route {
        from: from.into(),
        path: Path::parse(path).unwrap(),
        command: "say".into(),
        payload: Payload("{}".into()),
        text: None,
        source: "test".into(),
        external_id: external_id.map(Into::into),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn in_the_steady_state_a_route_of_an_agent_reads_only_its_idempotency_key() {
    on_disk(Limits::default(), async |test_hub, _| {
        let to_itself = |external_id| route("coder", "agent/coder", external_id);
        assert!(reads_of(test_hub, "cyd", to_itself(None)).await > 1);
        for (external_id, reads) in [(None, 0), (Some("first"), 1), (Some("second"), 1)] {
            assert_eq!(reads_of(test_hub, "cyd", to_itself(external_id)).await, reads, "{external_id:?}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_do_not_exist_are_read_once_for_all_routes_of_a_batch() {
    on_disk(Limits::default(), async |test_hub, watch| {
        let (hub, cyd) = (test_hub.hub(), caller("cyd"));
        hub.execute(&cyd, route("coder", "agent/coder", None)).await.unwrap();
        watch.close_gate();
        let before = hub.submit(&cyd, route("coder", "agent/coder", None)).await;
        watch.wait_for_writer();
        let mut pending = Vec::new();
        for _ in 0..3 {
            for path in ["agent/coder", "agent/nobody", "room/nowhere"] {
                pending.push(hub.submit(&cyd, route("bridge", path, None)).await);
            }
        }
        let reads_before = reads(test_hub);
        watch.open_gate();
        before.await.unwrap();
        for receipt in pending {
            receipt.await.unwrap();
        }
        // The agent `bridge`, the users of this id and of this name, the addressed agent, and the room.
        assert_eq!(reads(test_hub) - reads_before, 5);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_cache_a_post_reads_everything_again() {
    on_disk(Limits { cache_entries: 0, ..Limits::default() }, async |test_hub, _| {
        reads_of(test_hub, "ann", post(Some("first"))).await;
        // The sign-in, the account, the room, the membership, the agents of the room, the idempotency key.
        assert_eq!(reads_of(test_hub, "ann", post(Some("second"))).await, 6);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_is_rolled_back_leaves_nothing_in_the_cache() {
    each(Limits::default(), async |test_hub, watch| {
        let (hub, ann, bob) = (test_hub.hub(), caller("ann"), caller("bob"));
        watch.close_gate();
        let before = hub.submit(&ann, post(None)).await;
        watch.wait_for_writer();
        // These two share a batch: Bob's membership is read and cached after it was added, then rolled back.
        let (member, role) = (person("bob"), RoomRole::Member);
        let add = AddMember { room: room_id("lobby"), member, role, description: None };
        let added = hub.submit(&ann, add.clone()).await;
        let posted = hub.submit(&bob, post(None)).await;
        watch.fail_next_commit_of_a_member();
        watch.open_gate();
        before.await.unwrap();
        assert_eq!(added.await.unwrap_err(), Refusal::Unavailable);
        assert_eq!(posted.await.unwrap_err(), Refusal::Unavailable);

        let refused = hub.execute(&bob, post(None)).await;
        assert_eq!(refused.unwrap_err(), Refusal::NotAMember { room: room_id("lobby") });
        hub.execute(&ann, add).await.unwrap();
        hub.execute(&bob, post(None)).await.unwrap();
    })
    .await;
}
