//! The writer's cache in a running hub: it saves reads, and a rolled-back batch leaves nothing in it.

use crate::fixtures::*;
use crate::stores::{Handles, StoreFixture, kinds};
use crate::test_hub::TestHub;
use parlor_engine::Limits;
use parlor_engine::decide::Change;
use parlor_engine::effects::Effects;
use parlor_model::command::AddMember;
use parlor_model::{Caller, Epoch, Member, Post, Refusal, RoomRole, SecretHash, SignInId, Time};
use parlor_testkit::stores::{Observed, StoreWatch};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// A store with Ann, who owns the room `lobby`, and Bob, who is in no room.
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
