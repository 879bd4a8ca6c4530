//! The writer's cache in a running hub: it saves reads, and a rolled-back batch leaves nothing in it.

use crate::fixtures::*;
use crate::stores::{Handles, StoreFixture, kinds};
use crate::test_hub::TestHub;
use parlor_engine::Limits;
use parlor_engine::decide::Change;
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
            Change::PutSignIn(Arc::new(sign_in("of ann", "ann", i64::MAX)), SecretHash([1; 32])),
            Change::PutSignIn(Arc::new(sign_in("of bob", "bob", i64::MAX)), SecretHash([2; 32])),
            Change::PutUser(Arc::new(User { role: SiteRole::Admin, ..user("cyd", 3) })),
            Change::PutSignIn(Arc::new(sign_in("of cyd", "cyd", i64::MAX)), SecretHash([3; 32])),
            put_agent("coder", "cyd"),
            put_room("lobby"),
            Change::PutMember(Arc::new(ann)),
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
    for kind in kinds() {
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
        room: room_id("lobby"),
        text: "hello".into(),
        mentions: Vec::new(),
        reply_to: None,
        attachments: Vec::new(),
        client_message_id: key.map(Into::into),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn in_the_steady_state_a_post_reads_only_its_idempotency_key() {
    each(Limits::default(), async |test_hub, watch| {
        let ann = caller("ann");
        test_hub.hub().execute(&ann, post(Some("first"))).await.unwrap();
        watch.take_reads();
        for key in ["second", "third"] {
            test_hub.hub().execute(&ann, post(Some(key))).await.unwrap();
            assert_eq!(watch.take_reads(), 1);
        }
        test_hub.hub().execute(&ann, post(None)).await.unwrap();
        assert_eq!(watch.take_reads(), 0);
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
    each(Limits::default(), async |test_hub, watch| {
        let (hub, cyd) = (test_hub.hub(), caller("cyd"));
        let posted = hub.execute(&cyd, route("coder", "agent/coder", None)).await.unwrap();
        assert_eq!(posted.deliveries.len(), 1);
        watch.take_reads();
        for (external_id, reads) in [(None, 0), (Some("first"), 1), (Some("second"), 1)] {
            hub.execute(&cyd, route("coder", "agent/coder", external_id)).await.unwrap();
            assert_eq!(watch.take_reads(), reads, "{external_id:?}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_do_not_exist_are_read_once_for_all_routes_of_a_batch() {
    each(Limits::default(), async |test_hub, watch| {
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
        watch.take_reads();
        watch.open_gate();
        before.await.unwrap();
        for receipt in pending {
            receipt.await.unwrap();
        }
        // The agent `bridge`, the users of this id and of this name, the addressed agent, and the room.
        assert_eq!(watch.take_reads(), 5);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_cache_a_post_reads_everything_again() {
    each(Limits { cache_entries: 0, ..Limits::default() }, async |test_hub, watch| {
        let ann = caller("ann");
        test_hub.hub().execute(&ann, post(Some("first"))).await.unwrap();
        watch.take_reads();
        test_hub.hub().execute(&ann, post(Some("second"))).await.unwrap();
        // The sign-in, the account, the room, the membership, the agents of the room, the idempotency key.
        assert_eq!(watch.take_reads(), 6);
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
