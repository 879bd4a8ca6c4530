//! `run/sync`: whatever one can see and that changed is told, live and to who comes back; nothing else is.

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

/// Somebody who reads, and who says in a room of their own when to look.
struct Reader {
    person: RestClient,
    room: String,
    stream: EventReader,
    marks: u32,
}

impl Reader {
    async fn new(person: &RestClient) -> Self {
        let room = person.make_room("own", &[]).await.unwrap();
        let mut reader = Self { person: person.clone(), room, stream: live(person).await, marks: 0 };
        // What came before may be told only now.
        reader.syncs().await;
        reader
    }

    /// Comes back to a position; gives the syncs up to the one that is of no room and no agent.
    async fn come_back(&mut self, position: &str) -> Vec<(Option<String>, Option<String>)> {
        self.stream = resumed(&self.person, position).await;
        let of_the_house = |told: &Value| syncs(std::slice::from_ref(told)) == [OF_THE_HOUSE];
        syncs(&self.stream.until(of_the_house).await.unwrap())
    }

    /// The syncs that were told until now, by their agent or room.
    async fn syncs(&mut self) -> Vec<(Option<String>, Option<String>)> {
        self.marks += 1;
        let mark = format!("mark {}", self.marks);
        self.person.post_message(&self.room, &mark).await.unwrap();
        syncs(&self.stream.until(|message| message["text"] == *mark).await.unwrap())
    }
}

fn syncs(told: &[Value]) -> Vec<(Option<String>, Option<String>)> {
    let word = |value: &Value| value.as_str().map(str::to_owned);
    let sync = told.iter().filter(|message| message["kind"] == "run" && message["phase"] == "sync");
    sync.map(|message| (word(&message["agent_id"]), word(&message["session_id"]))).collect()
}

fn of_agent(agent: &str) -> (Option<String>, Option<String>) {
    (Some(agent.to_owned()), None)
}

const OF_THE_HOUSE: (Option<String>, Option<String>) = (None, None);

#[tokio::test(flavor = "multi_thread")]
async fn that_an_agent_changed_hears_who_can_see_it_and_nobody_else() {
    let room = Room::start().await;
    let _gateway = room.gateway("g1", &["coder"]).await;
    let carol = room.scene.person("carol").await;
    let (mut at_alice, mut at_bob) = (Reader::new(&room.alice).await, Reader::new(&room.bob).await);
    let mut at_carol = Reader::new(&carol).await;

    ok(room.alice.put("/api/agents/coder", json!({ "description": "writes" })).await.unwrap());
    assert_eq!(at_alice.syncs().await, [of_agent("coder")], "it is hers");
    assert_eq!(at_bob.syncs().await, [of_agent("coder")], "he is in a room with it");
    assert_eq!(at_carol.syncs().await, [], "she does not know of it");

    ok(room.alice.put("/api/agents/coder", json!({ "visibility": "all" })).await.unwrap());
    assert_eq!(at_carol.syncs().await, [of_agent("coder")], "now she does");
    let list = json!({ "visibilityList": [room.bob.user_id()] });
    ok(room.alice.put("/api/agents/coder", list).await.unwrap());
    assert_eq!(at_carol.syncs().await, [of_agent("coder")], "she hears that she does no longer");
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
    assert_eq!(at_alice.syncs().await, [left.clone(), OF_THE_HOUSE]);
    assert_eq!(at_bob.syncs().await, [left], "the room tells that it left");
    assert_eq!(at_carol.syncs().await, [OF_THE_HOUSE]);

    // Who was away is told to look again, and no name: it may not be for them any more.
    assert_eq!(at_carol.come_back(&position).await, [OF_THE_HOUSE]);
    assert_eq!(at_carol.syncs().await, [], "once");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_back_looks_again_where_a_room_was_lost_and_hears_no_name_of_what_they_cannot_see() {
    let room = Room::start().await;
    let _gateway = room.gateway("g1", &["coder"]).await;
    let gone = room.alice.make_room("gone", &[&room.bob]).await.unwrap();
    let (mut at_alice, mut at_bob) = (Reader::new(&room.alice).await, Reader::new(&room.bob).await);
    for lost in
        [format!("/api/rooms/{}/members/{}", room.room, room.bob.user_id()), format!("/api/rooms/{gone}")]
    {
        let position = at_bob.stream.position.clone().unwrap();
        ok(room.alice.delete(&lost).await.unwrap());
        // Who is there before it was told is told it as it happens.
        at_alice.syncs().await;
        assert_eq!(at_bob.come_back(&position).await, [OF_THE_HOUSE], "{lost}");
        assert_eq!(at_bob.syncs().await, [], "once");
    }

    let position = at_bob.stream.position.clone().unwrap();
    for visibility in ["all", "private"] {
        ok(room.alice.put("/api/agents/coder", json!({ "visibility": visibility })).await.unwrap());
    }
    let carol = room.scene.person("carol").await;
    let mut at_carol = Reader::new(&carol).await;
    let told = at_carol.come_back(&position).await;
    assert!(!told.contains(&of_agent("coder")), "{told:?}");
    assert_eq!(at_carol.syncs().await, []);
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn that_settings_or_a_name_changed_hears_who_can_see_it_also_after_a_restart() {
    let mut scene = Scene::start().await;
    let (alice, bob) = (scene.person("alice").await, scene.person("bob").await);
    let carol = scene.person("carol").await;
    alice.make_room("kitchen", &[&bob]).await.unwrap();
    let (mut at_bob, mut at_carol) = (Reader::new(&bob).await, Reader::new(&carol).await);
    let position = at_bob.stream.position.clone().unwrap();

    ok(scene.admin.post("/api/settings", json!({ "hubName": "The parlour" })).await.unwrap());
    assert_eq!(at_bob.syncs().await, [OF_THE_HOUSE]);
    assert_eq!(at_carol.syncs().await, [OF_THE_HOUSE]);
    ok(alice.put("/api/users/me", json!({ "displayName": "Alice the Second" })).await.unwrap());
    assert_eq!(at_bob.syncs().await, [OF_THE_HOUSE], "he is in a room with her");
    assert_eq!(at_carol.syncs().await, []);
    let same = json!({ "currentPassword": PASSWORD, "newPassword": "Plain-sailing-10" });
    ok(alice.put("/api/users/me/password", same).await.unwrap());
    assert_eq!(at_bob.syncs().await, [], "that is hers alone");

    assert_eq!(at_bob.come_back(&position).await, [OF_THE_HOUSE]);
    assert_eq!(at_bob.syncs().await, [], "all of it at once");
    // What a hub that starts anew does not have in mind is told as well.
    scene.crash_and_restart().await;
    at_bob.person = bob.at(scene.url());
    at_bob.come_back(&position).await;
    scene.ends_well().await;
}
