//! What agents ask people: asked once, answered once, told to everyone, and shown to who comes later.

use super::live;
use crate::gateway::scenes::Room;
use crate::scene::{Scene, assert_refused};
use parlor_testkit::gateway::Gateway;
use parlor_testkit::rest::RestClient;
use serde_json::{Value, json};

/// Two questions, of which the second takes several answers.
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

async fn answer(person: &RestClient, question: &Value, answers: Value) -> parlor_testkit::rest::RestResponse {
    let body = json!({ "question_id": question, "answers": answers });
    person.post("/api/ask-user-response", body).await.unwrap()
}

fn tea() -> Value {
    json!([{ "question_index": 0, "selected": ["Tea"] },
        { "question_index": 1, "selected": ["Tea", "Water"], "custom_text": "warm" }])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_answered_once_and_everyone_is_told() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let mut at_bob = live(&room.bob).await;
    room.say("@coder ask").await;
    let turn = gateway.turn().await.unwrap();
    ask(&mut gateway, &room.room, "q1").await;
    let asked = at_bob.wait_for_kind("ask_user").await.unwrap();
    let data = &asked["data"];
    assert_eq!(data["questions"][0]["header"], "Drink");
    assert_eq!(data["questions"][1]["multi_select"], true);
    assert_eq!(
        data["questions"][0]["options"][1],
        json!({"label": "Water", "description": "d", "preview": null})
    );
    let id = data["question_id"].clone();
    assert_eq!(asked["id"], format!("ask-user-{}", id.as_str().unwrap()));

    // Who comes later sees it, in the list and on the stream.
    let mut late = live(&room.alice).await;
    let shown = late.wait_for_kind("ask_user").await.unwrap();
    assert_eq!(shown["data"], *data);
    let listed = room.bob.get("/api/ask-user").await.unwrap().body;
    assert_eq!(listed[0]["question_id"], id, "{listed}");
    assert_eq!(listed[0]["questions"], data["questions"]);
    let stranger = room.scene.person("stranger").await;
    assert_eq!(stranger.get("/api/ask-user").await.unwrap().body, json!([]));

    // It is no question about a tool.
    let open = room.bob.get(&format!("/api/rooms/{}/approvals", room.room)).await.unwrap();
    assert_eq!(open.data().unwrap(), json!([]));
    let path = format!("/api/approvals/{}", id.as_str().unwrap());
    assert_refused(&room.bob.post(&path, json!({ "decision": "allow" })).await.unwrap(), 404);

    assert_refused(&answer(&stranger, &id, tea()).await, 404);
    assert_refused(&answer(&room.bob, &json!("nothing"), tea()).await, 404);
    for wrong in [
        json!([]),
        json!([{ "question_index": 7, "selected": ["Tea"] }]),
        json!([{ "question_index": 0, "selected": ["Beer"] }]),
        json!([{ "question_index": 0, "selected": ["Tea", "Water"] }]),
        json!([{ "question_index": 0 }]),
    ] {
        assert_refused(&answer(&room.bob, &id, wrong).await, 400);
    }
    let answered = answer(&room.bob, &id, tea()).await;
    assert_eq!((answered.status.as_u16(), &answered.body), (200, &json!({ "status": "ok" })));
    assert_refused(&answer(&room.alice, &id, tea()).await, 409);
    for stream in [&mut at_bob, &mut late] {
        let resolved = stream.wait_for_kind("ask_user").await.unwrap();
        assert_eq!((&resolved["phase"], &resolved["rev"]), (&json!("resolved"), &json!(2)));
        assert_eq!(resolved["id"], asked["id"]);
        assert_eq!((&resolved["data"]["status"], &resolved["data"]["answers"]), (&json!("answered"), &tea()));
        assert_eq!(resolved["data"]["answered_by"], room.bob.user_id());
    }
    let heard = gateway.wait_for_type("server:question_response").await.unwrap();
    assert_eq!((&heard["questionId"], &heard["status"]), (&json!("q1"), &json!("answered")));
    assert_eq!(
        heard["answers"],
        json!([{ "questionIndex": 0, "selected": ["Tea"] },
            { "questionIndex": 1, "selected": ["Tea", "Water"], "customText": "warm" }])
    );
    assert_eq!(room.bob.get("/api/ask-user").await.unwrap().body, json!([]));
    gateway.complete(&turn, "r", "thanks").await.unwrap();
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_an_answer_when_the_turn_is_over_or_the_hub_was_away() {
    let mut room = Room::start().await;
    let mut gateway = room.gateway("g1", &["coder"]).await;
    let mut stream = live(&room.bob).await;
    room.say("@coder ask").await;
    let turn = gateway.turn().await.unwrap();
    ask(&mut gateway, &room.room, "q1").await;
    let first = stream.wait_for_kind("ask_user").await.unwrap()["data"]["question_id"].clone();
    gateway.complete(&turn, "r", "never mind").await.unwrap();
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
async fn the_guide_hears_what_people_say() {
    let scene = Scene::with(&[("PARLOR_WELCOME", "on")]).await;
    let ann = scene.person("ann").await;
    let mut stream = live(&ann).await;
    ann.post_message("welcome", "@guide question").await.unwrap();
    let asked = stream.wait_for_kind("ask_user").await.unwrap();
    let answers = json!([{ "question_index": 0, "selected": ["Tea"] },
        { "question_index": 1, "selected": ["Ginger"], "custom_text": "@all of them" }]);
    assert_eq!(answer(&ann, &asked["data"]["question_id"], answers).await.status, 200);
    let said = |message: &Value| message["kind"] == "message" && message["agent_id"] == "guide";
    let reply = stream.wait_for(said).await.unwrap();
    let text = reply["text"].as_str().unwrap();
    assert!(text.ends_with("You said `Tea`, then `Ginger` and `@all of them`. It is on its way."), "{text}");
    scene.ends_well().await;
}
