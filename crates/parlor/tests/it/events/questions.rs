//! Tests of question sets of agents: published to the room and to late joiners, answered once, withdrawn with
//! the run.

use super::live;
use crate::gateway::scenes::Room;
use crate::scene::{Scene, assert_refused};
use parlor_testkit::gateway::Gateway;
use parlor_testkit::rest::RestClient;
use serde_json::{Value, json};

/// Sends a question set with two questions; the second accepts several answers.
async fn ask(gateway: &mut Gateway, room: &str, id: &str) {
    let option = |label: &str| json!({ "label": label, "description": "d" });
    let question = |header: &str, several: bool| {
        json!({ "question": "Which?", "header": header, "multiSelect": several,
            "options": [option("Tea"), option("Water")] })
    };
    let event = json!({ "kind": "question", "questionId": id,
        "questions": [question("Drink", false), question("More", true)] });
    let frame = json!({ "type": "gateway:run_event", "agentId": "coder", "roomId": room, "event": event });
    gateway.send(&frame).await.unwrap();
}

async fn answer(user: &RestClient, question: &Value, answers: Value) -> parlor_testkit::rest::RestResponse {
    let body = json!({ "question_id": question, "answers": answers });
    user.post("/api/ask-user-response", body).await.unwrap()
}

fn tea() -> Value {
    json!([{ "question_index": 0, "selected": ["Tea"] },
        { "question_index": 1, "selected": ["Tea", "Water"], "custom_text": "warm" }])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_set_is_answered_once_and_the_answer_is_published() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let mut at_bob = live(&room.bob).await;
    room.say("@coder ask").await;
    let run = gateway.turn().await.unwrap();
    ask(&mut gateway, &room.room, "q1").await;
    let question = at_bob.wait_for_kind("ask_user").await.unwrap();
    let data = &question["data"];
    assert_eq!(data["questions"][0]["header"], "Drink");
    assert_eq!(data["questions"][1]["multi_select"], true);
    assert_eq!(
        data["questions"][0]["options"][1],
        json!({"label": "Water", "description": "d", "preview": null})
    );
    let id = data["question_id"].clone();
    assert_eq!(question["id"], format!("ask-user-{}", id.as_str().unwrap()));

    // A late joiner receives the open question on the stream and in the list.
    let mut late_joiner = live(&room.alice).await;
    let shown = late_joiner.wait_for_kind("ask_user").await.unwrap();
    assert_eq!(shown["data"], *data);
    let listed = room.bob.get("/api/ask-user").await.unwrap().body;
    assert_eq!(listed[0]["question_id"], id, "{listed}");
    assert_eq!(listed[0]["questions"], data["questions"]);
    let outsider = room.scene.person("stranger").await;
    assert_eq!(outsider.get("/api/ask-user").await.unwrap().body, json!([]));

    // A question set is not listed among permission requests and cannot be decided like one.
    let open = room.bob.get(&format!("/api/rooms/{}/approvals", room.room)).await.unwrap();
    assert_eq!(open.data().unwrap(), json!([]));
    let path = format!("/api/approvals/{}", id.as_str().unwrap());
    assert_refused(&room.bob.post(&path, json!({ "decision": "allow" })).await.unwrap(), 404);

    assert_refused(&answer(&outsider, &id, tea()).await, 404);
    assert_refused(&answer(&room.bob, &json!("nothing"), tea()).await, 404);
    for invalid in [
        json!([]),
        json!([{ "question_index": 7, "selected": ["Tea"] }]),
        json!([{ "question_index": 0, "selected": ["Beer"] }]),
        json!([{ "question_index": 0, "selected": ["Tea", "Water"] }]),
        json!([{ "question_index": 0 }]),
    ] {
        assert_refused(&answer(&room.bob, &id, invalid).await, 400);
    }
    let answered = answer(&room.bob, &id, tea()).await;
    assert_eq!((answered.status.as_u16(), &answered.body), (200, &json!({ "status": "ok" })));
    assert_refused(&answer(&room.alice, &id, tea()).await, 409);
    for stream in [&mut at_bob, &mut late_joiner] {
        let resolved = stream.wait_for_kind("ask_user").await.unwrap();
        assert_eq!((&resolved["phase"], &resolved["rev"]), (&json!("resolved"), &json!(2)));
        assert_eq!(resolved["id"], question["id"]);
        assert_eq!((&resolved["data"]["status"], &resolved["data"]["answers"]), (&json!("answered"), &tea()));
        assert_eq!(resolved["data"]["answered_by"], room.bob.user_id());
    }
    let response = gateway.wait_for_type("server:question_response").await.unwrap();
    assert_eq!((&response["questionId"], &response["status"]), (&json!("q1"), &json!("answered")));
    assert_eq!(
        response["answers"],
        json!([{ "questionIndex": 0, "selected": ["Tea"] },
            { "questionIndex": 1, "selected": ["Tea", "Water"], "customText": "warm" }])
    );
    assert_eq!(room.bob.get("/api/ask-user").await.unwrap().body, json!([]));
    gateway.complete(&run, "r", "thanks").await.unwrap();
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_question_set_is_withdrawn_when_its_run_ends_or_the_hub_restarts() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let mut stream = live(&room.bob).await;
    room.say("@coder ask").await;
    let run = gateway.turn().await.unwrap();
    ask(&mut gateway, &room.room, "q1").await;
    let first = stream.wait_for_kind("ask_user").await.unwrap()["data"]["question_id"].clone();
    gateway.complete(&run, "r", "never mind").await.unwrap();
    let resolved = stream.wait_for_kind("ask_user").await.unwrap();
    assert_eq!(
        resolved["data"],
        json!({ "question_id": first, "run_id": resolved["data"]["run_id"],
        "status": "withdrawn" })
    );
    assert_refused(&answer(&room.bob, &first, tea()).await, 410);

    room.say("@coder ask again").await;
    gateway.turn().await.unwrap();
    ask(&mut gateway, &room.room, "q2").await;
    let second = stream.wait_for_kind("ask_user").await.unwrap()["data"]["question_id"].clone();
    drop(gateway);
    room.scene.crash_and_restart().await;
    let bob = room.bob.at(room.scene.url());
    assert_refused(&answer(&bob, &second, tea()).await, 410);
    assert_eq!(bob.get("/api/ask-user").await.unwrap().body, json!([]));
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guide_agent_receives_the_answers_to_its_questions() {
    let scene = Scene::with(&[("PARLOR_WELCOME", "on")]).await;
    let ann = scene.person("ann").await;
    let mut stream = live(&ann).await;
    ann.post_message("welcome", "@guide question").await.unwrap();
    let question = stream.wait_for_kind("ask_user").await.unwrap();
    let answers = json!([{ "question_index": 0, "selected": ["Tea"] },
        { "question_index": 1, "selected": ["Ginger"], "custom_text": "@all of them" }]);
    assert_eq!(answer(&ann, &question["data"]["question_id"], answers).await.status, 200);
    let from_guide = |message: &Value| message["kind"] == "message" && message["agent_id"] == "guide";
    let reply = stream.wait_for(from_guide).await.unwrap();
    let text = reply["text"].as_str().unwrap();
    assert!(text.ends_with("You said `Tea`, then `Ginger` and `@all of them`. It is on its way."), "{text}");
    scene.ends_well().await;
}
