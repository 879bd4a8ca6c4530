//! Tests of `run/sync`: a change of visible state is published to every client that can see it.
//!
//! Live and resuming clients receive it; clients that cannot see the changed state do not.

use super::{live, resumed};
use crate::gateway::scenes::Room;
use crate::scene::{PASSWORD, Scene};
use parlor_testkit::events::EventReader;
use parlor_testkit::rest::{RestClient, RestResponse};
use serde_json::{Value, json};

fn ok(answer: RestResponse) -> Value {
    assert!(answer.status.is_success(), "{answer:?}");
    answer.body
}

/// A user with a live stream. A marker message in a room of their own delimits the events published so far.
struct SyncReader {
    user: RestClient,
    room: String,
    stream: EventReader,
    marks: u32,
}

impl SyncReader {
    async fn new(user: &RestClient) -> Self {
        let room = user.make_room("own", &[]).await.unwrap();
        let mut reader = Self { user: user.clone(), room, stream: live(user).await, marks: 0 };
        // Discard syncs of events from before the stream was opened.
        reader.syncs().await;
        reader
    }

    /// Resumes from a position; returns the syncs up to and including the first hub sync.
    async fn resume(&mut self, position: &str) -> Vec<(Option<String>, Option<String>)> {
        self.stream = resumed(&self.user, position).await;
        let is_hub_sync = |event: &Value| syncs(std::slice::from_ref(event)) == [HUB_SYNC];
        syncs(&self.stream.until(is_hub_sync).await.unwrap())
    }

    /// Returns the syncs published so far, as (agent, room).
    async fn syncs(&mut self) -> Vec<(Option<String>, Option<String>)> {
        self.marks += 1;
        let mark = format!("mark {}", self.marks);
        self.user.post_message(&self.room, &mark).await.unwrap();
        syncs(&self.stream.until(|message| message["text"] == *mark).await.unwrap())
    }
}

/// Extracts (agent, room) of every `run/sync`.
fn syncs(events: &[Value]) -> Vec<(Option<String>, Option<String>)> {
    let owned_text = |value: &Value| value.as_str().map(str::to_owned);
    let sync = events.iter().filter(|message| message["kind"] == "run" && message["phase"] == "sync");
    sync.map(|message| (owned_text(&message["agent_id"]), owned_text(&message["session_id"]))).collect()
}

fn of_agent(agent: &str) -> (Option<String>, Option<String>) {
    (Some(agent.to_owned()), None)
}

/// A sync of the whole hub: names neither an agent nor a room.
const HUB_SYNC: (Option<String>, Option<String>) = (None, None);

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_change_is_published_only_to_users_who_can_see_the_agent() {
    let room = Room::start().await;
    let _gateway = room.gateway("g1", &["coder"]).await;
    let carol = room.scene.person("carol").await;
    let (mut at_alice, mut at_bob) = (SyncReader::new(&room.alice).await, SyncReader::new(&room.bob).await);
    let mut at_carol = SyncReader::new(&carol).await;

    ok(room.alice.put("/api/agents/coder", json!({ "description": "writes" })).await.unwrap());
    assert_eq!(at_alice.syncs().await, [of_agent("coder")], "Alice owns the agent");
    assert_eq!(at_bob.syncs().await, [of_agent("coder")], "Bob shares a room with the agent");
    assert_eq!(at_carol.syncs().await, [], "Carol cannot see the agent");

    ok(room.alice.put("/api/agents/coder", json!({ "visibility": "all" })).await.unwrap());
    assert_eq!(at_carol.syncs().await, [of_agent("coder")], "Carol can see the agent now");
    let list = json!({ "visibilityList": [room.bob.user_id()] });
    ok(room.alice.put("/api/agents/coder", list).await.unwrap());
    assert_eq!(
        at_carol.syncs().await,
        [of_agent("coder")],
        "Carol is notified that the agent is hidden again"
    );
    ok(room.alice.put("/api/agents/coder", json!({ "description": "reads" })).await.unwrap());
    assert_eq!(at_carol.syncs().await, []);
    assert_eq!(at_bob.syncs().await.len(), 3);

    let list = json!({ "visibilityList": [carol.user_id()] });
    ok(room.alice.put("/api/agents/coder", list).await.unwrap());
    let position = at_carol.stream.position.clone().unwrap();
    at_carol.syncs().await;
    at_alice.syncs().await;
    at_bob.syncs().await;
    ok(room.alice.delete("/api/agents/coder").await.unwrap());
    let left = (None, Some(room.room.clone()));
    assert_eq!(at_alice.syncs().await, [left.clone(), HUB_SYNC]);
    assert_eq!(at_bob.syncs().await, [left], "the room publishes that the agent left");
    assert_eq!(at_carol.syncs().await, [HUB_SYNC]);

    // A resuming client receives a hub sync without the agent's id, which it may not see any more.
    assert_eq!(at_carol.resume(&position).await, [HUB_SYNC]);
    assert_eq!(at_carol.syncs().await, [], "the sync is delivered once");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resuming_client_receives_a_hub_sync_for_a_lost_room_and_no_id_of_a_hidden_agent() {
    let room = Room::start().await;
    let _gateway = room.gateway("g1", &["coder"]).await;
    let deleted_room = room.alice.make_room("gone", &[&room.bob]).await.unwrap();
    let (mut at_alice, mut at_bob) = (SyncReader::new(&room.alice).await, SyncReader::new(&room.bob).await);
    for path in [
        format!("/api/rooms/{}/members/{}", room.room, room.bob.user_id()),
        format!("/api/rooms/{deleted_room}"),
    ] {
        let position = at_bob.stream.position.clone().unwrap();
        ok(room.alice.delete(&path).await.unwrap());
        // Wait until the change is published, so that Bob's resume replays it instead of delivering it live.
        at_alice.syncs().await;
        assert_eq!(at_bob.resume(&position).await, [HUB_SYNC], "{path}");
        assert_eq!(at_bob.syncs().await, [], "the sync is delivered once");
    }

    let position = at_bob.stream.position.clone().unwrap();
    for visibility in ["all", "private"] {
        ok(room.alice.put("/api/agents/coder", json!({ "visibility": visibility })).await.unwrap());
    }
    let carol = room.scene.person("carol").await;
    let mut at_carol = SyncReader::new(&carol).await;
    let received = at_carol.resume(&position).await;
    assert!(!received.contains(&of_agent("coder")), "{received:?}");
    assert_eq!(at_carol.syncs().await, []);
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_settings_and_names_are_published_to_users_who_see_them_also_after_a_restart() {
    let mut scene = Scene::start().await;
    let (alice, bob) = (scene.person("alice").await, scene.person("bob").await);
    let carol = scene.person("carol").await;
    alice.make_room("kitchen", &[&bob]).await.unwrap();
    let (mut at_bob, mut at_carol) = (SyncReader::new(&bob).await, SyncReader::new(&carol).await);
    let position = at_bob.stream.position.clone().unwrap();

    ok(scene.admin.post("/api/settings", json!({ "hubName": "The parlour" })).await.unwrap());
    assert_eq!(at_bob.syncs().await, [HUB_SYNC]);
    assert_eq!(at_carol.syncs().await, [HUB_SYNC]);
    ok(alice.put("/api/users/me", json!({ "displayName": "Alice the Second" })).await.unwrap());
    assert_eq!(at_bob.syncs().await, [HUB_SYNC], "Bob shares a room with Alice");
    assert_eq!(at_carol.syncs().await, []);
    let same = json!({ "currentPassword": PASSWORD, "newPassword": "Plain-sailing-10" });
    ok(alice.put("/api/users/me/password", same).await.unwrap());
    assert_eq!(at_bob.syncs().await, [], "a password change is not published");

    assert_eq!(at_bob.resume(&position).await, [HUB_SYNC]);
    assert_eq!(at_bob.syncs().await, [], "several changes are replayed as one sync");
    // After a restart the replay buffer is empty: the changes are read from the store.
    scene.crash_and_restart().await;
    at_bob.user = bob.at(scene.url());
    at_bob.resume(&position).await;
    scene.ends_well().await;
}
