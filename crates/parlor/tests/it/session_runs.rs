//! Runs in sessions: who receives them and their approvals, how they are stopped, and what remains of their text.

use parlor_testkit::agentim::Client;
use parlor_testkit::broker::Broker;
use parlor_testkit::events::EventReader;
use parlor_testkit::gateway::Gateway;
use parlor_testkit::rest::RestClient;
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::{Value, json};

use crate::broker_sessions::{Host, Studio, connect};
use crate::scene::{Scene, assert_refused, make_key, next, refused, so_far};

/// A connection that follows all rooms of its user, as the web app does.
async fn follower(user: &RestClient) -> Client {
    let mut page = Client::connect(user).await.unwrap();
    page.send(&json!({ "type": "client:follow" })).await.unwrap();
    next(&mut page, "server:following").await;
    page
}

/// All connections of a user that receive events without asking for a room.
struct Listener {
    user: RestClient,
    /// A room of the user alone.
    room: String,
    stream: EventReader,
    page: Client,
    events: Client,
    broker: Broker,
}

impl Listener {
    async fn open(user: RestClient) -> Self {
        let room = user.make_room("own", &[]).await.unwrap();
        let mut events = Client::connect(&user).await.unwrap();
        events.send(&json!({ "type": "client:subscribe_events" })).await.unwrap();
        next(&mut events, "server:events_subscribed").await;
        let stream = EventReader::live(&user, "").await.unwrap();
        let (page, broker) = (follower(&user).await, connect(&user).await);
        Self { user, room, stream, page, events, broker }
    }

    /// Asserts that none of the connections has received a frame that names the agent `coder` or its run.
    async fn has_received_nothing(&mut self, run: &str) {
        self.user.post_message(&self.room, "the end").await.unwrap();
        let mut frames = self.stream.until(|event| event["text"] == "the end").await.unwrap();
        frames.extend(so_far(&mut self.page).await);
        frames.extend(so_far(&mut self.events).await);
        self.broker.send(&json!({ "type": "ping" })).await.unwrap();
        assert_eq!(self.broker.frame(TEST_TIMEOUT).await.unwrap(), json!({ "type": "pong" }));
        for frame in frames {
            let text = frame.to_string();
            assert!(!text.contains("coder") && !text.contains(run), "{text}");
        }
    }
}

/// Asserts that an object names the session `s1` in this field and no room.
#[track_caller]
fn assert_without_room(object: &Value, session: &str) {
    assert_eq!(object[session], "s1", "{object}");
    for room in ["roomId", "session_id", "project_root"] {
        assert!(object.get(room).is_none(), "{object}");
    }
}

fn response(approval: &Value, decision: &str) -> Value {
    json!({ "type": "client:permission_response", "requestId": approval["requestId"], "decision": decision })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_a_room_reaches_the_connections_of_the_owner_only() {
    let mut studio = Studio::open().await;
    let (eve, admin) = (studio.scene.person("eve").await, studio.scene.admin.at(studio.scene.url()));
    let mut others = [Listener::open(eve).await, Listener::open(admin).await];
    let mut owner = Listener::open(studio.ada.at(studio.scene.url())).await;
    let run = studio.begin().await;
    let id = run["runId"].as_str().unwrap().to_owned();
    studio.host.say_hello(&run).await;
    assert_without_room(&next(&mut owner.page, "server:message_chunk").await, "sessionId");
    studio.host.request_permission(&run, "p1", 60_000).await;
    let approval = next(&mut owner.page, "server:permission_request").await;
    assert_without_room(&approval, "sessionId");
    studio.host.ask(&run, "q1", "Deploy?", &["yes", "no"]).await;
    let question = owner.broker.wait_for_type("ask-user").await.unwrap()["questionId"].clone();

    // Every list of the owner has them, without a room.
    let runs = owner.user.get("/api/agent-runs").await.unwrap().body;
    assert_eq!(runs[0]["run_id"], id, "{runs}");
    assert_without_room(&runs[0], "agent_session_id");
    let questions = owner.user.get("/api/ask-user").await.unwrap().body;
    assert_eq!(questions[0]["question_id"], question, "{questions}");
    assert_without_room(&questions[0], "agent_session_id");
    let of_agent = owner.user.get("/api/agents/coder/runs").await.unwrap().data().unwrap();
    assert_without_room(&of_agent[0], "sessionId");

    // Ids are not found by other accounts.
    let answers = json!([{ "question_index": 0, "selected": ["yes"] }]);
    let respond = json!({ "question_id": question, "answers": answers });
    let decide = format!("/api/approvals/{}", approval["requestId"].as_str().unwrap());
    for other in &mut others {
        let user = &other.user;
        for path in ["/api/agent-runs", "/api/ask-user"] {
            assert_eq!(user.get(path).await.unwrap().body, json!([]), "{path}");
        }
        for path in ["/api/agent-children", "/api/agent-context"] {
            assert_refused(&user.get(&format!("{path}?run_id={id}")).await.unwrap(), 404);
        }
        assert_refused(&user.get("/api/agents/coder/sessions").await.unwrap(), 404);
        assert_refused(&user.post("/api/ask-user-response", respond.clone()).await.unwrap(), 404);
        assert_refused(&user.post(&decide, json!({ "decision": "allow" })).await.unwrap(), 404);
        let found = user.get("/api/messages/search?q=Hello").await.unwrap().body.to_string();
        assert!(!found.contains("coder"), "{found}");
        refused(&mut other.page, response(&approval, "allow"), "INVALID_REQUEST").await;
    }
    let eve = &others[0].user;
    assert_refused(&eve.post("/api/agent-cancel", json!({ "run_id": id })).await.unwrap(), 404);
    assert_refused(&eve.get("/api/audit").await.unwrap(), 403);

    owner.page.send(&response(&approval, "allow")).await.unwrap();
    assert_eq!(studio.host.decision("p1").await["decision"], "allow");
    assert_without_room(&next(&mut owner.page, "server:permission_resolved").await, "sessionId");
    assert_eq!(owner.user.post("/api/ask-user-response", respond).await.unwrap().status, 200);
    studio.host.end(&run, "complete", "Hello").await;
    assert_eq!(studio.ended().await, "done");

    // The owner has received each kind of event, without a room.
    let over = |event: &Value| event["kind"] == "turn_complete";
    let streamed = owner.stream.until(over).await.unwrap();
    let mut followed = Vec::new();
    while !followed.last().is_some_and(over) {
        let frame = next(&mut owner.events, "server:event").await;
        followed.push(frame["event"].clone());
    }
    for events in [streamed, followed] {
        let events: Vec<Value> =
            events.into_iter().filter(|event| event.get("agent_session_id").is_some()).collect();
        for kind in ["token", "content_block", "approval", "ask_user", "run", "turn_complete"] {
            assert!(events.iter().any(|event| event["kind"] == kind), "no {kind} in {events:?}");
        }
        events.iter().for_each(|event| assert_without_room(event, "agent_session_id"));
    }
    for other in &mut others {
        other.has_received_nothing(&id).await;
    }

    // The audit log of the hub names the decision and the tool, but not its input.
    let audit = studio.scene.admin.get("/api/audit?action=approval_allowed").await.unwrap().data().unwrap();
    assert_eq!(audit["items"][0]["subject"]["id"], "coder", "{audit}");
    assert!(!audit.to_string().contains("secret"), "{audit}");
    studio.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owner_alone_decides_on_the_tools_of_a_session() {
    let mut studio = Studio::open().await;
    let mut page = follower(&studio.ada).await;
    let (_, key) = make_key(&studio.ada, &["read", "write", "agents"]).await;
    let program = studio.ada.with_token(&key);
    let run = studio.begin().await;
    studio.host.request_permission(&run, "1", 60_000).await;
    let approval = next(&mut page, "server:permission_request").await;
    // A new connection receives the open request.
    let mut later = follower(&studio.ada).await;
    assert_eq!(next(&mut later, "server:permission_request").await, approval);
    let path = format!("/api/approvals/{}", approval["requestId"].as_str().unwrap());
    let denied = json!({ "decision": "deny", "denyReason": "not today" });
    assert_refused(&program.post(&path, denied.clone()).await.unwrap(), 403);

    // A permanent rule belongs to a room. The approval stays open.
    let always = json!({ "decision": "allow", "allowAlways": true });
    let answer = studio.ada.post(&path, always).await.unwrap();
    assert_refused(&answer, 400);
    assert!(answer.body["fields"][0]["field"] == "allowAlways", "{answer:?}");
    let mut always = response(&approval, "allow");
    always["allowAlways"] = json!(true);
    refused(&mut page, always, "INVALID_MESSAGE").await;

    let decided = studio.ada.post(&path, denied).await.unwrap().data().unwrap();
    assert_without_room(&decided, "sessionId");
    let decision = studio.host.decision("1").await;
    assert_eq!((&decision["decision"], &decision["denyReason"]), (&json!("deny"), &json!("not today")));
    refused(&mut page, response(&approval, "allow"), "INVALID_REQUEST").await;

    // Without a decision, the tool is not allowed.
    studio.host.request_permission(&run, "2", 30).await;
    let approval = next(&mut page, "server:permission_request").await;
    assert_eq!(studio.host.decision("2").await["decision"], "timeout");
    let expired = next(&mut page, "server:permission_request_expired").await;
    assert_eq!(expired["requestId"], approval["requestId"]);
    refused(&mut page, response(&approval, "allow"), "INVALID_REQUEST").await;
    studio.host.request_permission(&run, "3", 60_000).await;
    next(&mut page, "server:permission_request").await;
    studio.host.end(&run, "complete", "I did without").await;
    assert_eq!(studio.host.decision("3").await["decision"], "deny");
    studio.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owner_and_a_site_admin_stop_a_run_without_a_room_and_later_output_is_dropped() {
    let mut studio = Studio::open().await;
    let mut page = follower(&studio.ada).await;
    for stopper in [studio.ada.at(studio.scene.url()), studio.scene.admin.at(studio.scene.url())] {
        let run = studio.begin().await;
        studio.host.chunk(&run, "text", "so far", Value::Null).await;
        studio.broker.wait_for_type("session.text").await.unwrap();
        studio.host.request_permission(&run, run["runId"].as_str().unwrap(), 60_000).await;
        let cancelled = stopper.post("/api/agent-cancel", json!({ "run_id": run["runId"] })).await.unwrap();
        assert_eq!(cancelled.body, json!({ "cancelled_run_ids": [run["runId"]] }));
        let stop = studio.host.stopped().await;
        assert_eq!((&stop["sessionId"], stop.get("roomId")), (&json!("s1"), None));
        assert_eq!(studio.host.decision(run["runId"].as_str().unwrap()).await["decision"], "deny");
        studio.host.chunk(&run, "text", "LOUD", Value::Null).await;
        studio.host.end(&run, "complete", "so far LOUD").await;
        assert_eq!(studio.ended().await, "aborted_by_user");
        studio.host.chunk(&run, "text", "LOUD", Value::Null).await;
        studio.host.end(&run, "complete", "LOUD").await;
        studio.host.0.settled().await.unwrap();
    }
    let entry = |kind: &str, text: &str| (kind.to_owned(), text.to_owned());
    let once = [entry("prompt", "go"), entry("result", "so far"), entry("error", "cancelled")];
    assert_eq!(studio.log().await, [once.clone(), once].concat());
    for frame in so_far(&mut page).await {
        assert!(!frame.to_string().contains("LOUD"), "{frame}");
    }
    studio.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_room_of_a_session_ends_its_runs_by_a_freeze_a_removal_and_a_stop() {
    let mut studio = Studio::open().await;
    let room = studio.ada.make_room("kitchen", &[]).await.unwrap();
    let mut page = follower(&studio.ada).await;
    let members = format!("/api/rooms/{room}/members");
    let freeze = format!("/api/rooms/{room}/freeze");
    let add = json!({ "memberId": "coder", "memberType": "agent" });
    studio.ada.post(&members, add.clone()).await.unwrap().data().unwrap();
    let session = json!({ "roomId": room });
    studio.ada.put("/api/agents/coder/sessions/s1", session).await.unwrap().data().unwrap();
    for end in ["freeze", "removal", "stop"] {
        let run = studio.begin().await;
        let runs = studio.ada.get("/api/agent-runs").await.unwrap().body;
        let place = (&runs[0]["session_id"], &runs[0]["agent_session_id"]);
        assert_eq!(place, (&json!(room), &json!("s1")), "{end}");
        studio.host.chunk(&run, "text", "so far", Value::Null).await;
        studio.host.0.settled().await.unwrap();
        match end {
            "freeze" => assert_eq!(studio.ada.post(&freeze, json!({})).await.unwrap().status, 200),
            "removal" => {
                assert_eq!(studio.ada.delete(&format!("{members}/coder")).await.unwrap().status, 200);
            }
            _ => {
                let stop = json!({ "type": "client:stop_generation", "roomId": room, "agentId": "coder" });
                page.send(&stop).await.unwrap();
            }
        }
        studio.host.stopped().await;
        studio.host.end(&run, "complete", "so far LOUD").await;
        studio.host.0.settled().await.unwrap();
        match end {
            "freeze" => assert_eq!(studio.ada.delete(&freeze).await.unwrap().status, 200),
            "removal" => drop(studio.ada.post(&members, add.clone()).await.unwrap().data().unwrap()),
            _ => {}
        }
        assert_eq!(studio.ended().await, "aborted_by_user", "{end}");
    }
    let history = studio.ada.history(&room).await.unwrap();
    assert!(!format!("{history:?}").contains("LOUD"), "{history:?}");
    let log = studio.log().await;
    let texts: Vec<&str> =
        log.iter().filter(|(kind, _)| kind == "result").map(|(_, text)| text.as_str()).collect();
    assert_eq!(texts, ["so far"; 3], "{log:?}");
    studio.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn text_streamed_before_an_interruption_is_in_the_conversation_log() {
    let mut studio = Studio::on(Scene::with(&[("PARLOR_GATEWAY_GRACE", "1")]).await).await;
    let run = studio.begin().await;
    studio.host.chunk(&run, "text", "To be contin", Value::Null).await;
    studio.host.0.settled().await.unwrap();
    // The gateway is lost, and does not reconnect within the grace period.
    studio.host = Host(Gateway::open(studio.scene.url()).await.unwrap());
    assert_eq!(studio.ended().await, "interrupted");
    let expected = [("prompt", "go"), ("result", "To be contin"), ("error", "interrupted")];
    let log = studio.log().await;
    assert_eq!(log.iter().map(|(kind, text)| (&**kind, &**text)).collect::<Vec<_>>(), expected);
    studio.scene.ends_well().await;
}
