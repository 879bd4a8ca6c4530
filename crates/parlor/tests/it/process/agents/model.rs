//! End-to-end tests of models as agents: hosted by a gateway, by the hub, or as a service agent.

use super::{outcome, registered};
use crate::gateway::scenes::Room;
use crate::scene::{PARLOR, PASSWORD, Scene, next};
use crate::service_agents::{CANARY, allowed, make_service_agent};
use parlor_testkit::gateway_process::GatewayLauncher;
use parlor_testkit::model_endpoint::{ModelEndpoint, RecordedRequest, ScriptedResponse};
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::{Value, json};

/// Returns the settings of the agent Sage, and writes its key to a separate file.
fn settings(endpoint: &ModelEndpoint, place: &std::path::Path) -> String {
    let key = place.join("key");
    std::fs::write(&key, CANARY).unwrap();
    format!(
        "[[agent]]\nname = 'Sage'\nkind = 'model'\nbase_url = '{}/v1'\nmodel = 'small'\nfallback = 'large'\n\
         instructions = 'You are kind.'\nkey_file = '{}'\n",
        endpoint.url,
        key.display()
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_hosted_by_a_gateway_answers() {
    let mut endpoint = ModelEndpoint::start().await.unwrap();
    let mut room = Room::start().await;
    let place = tempfile::tempdir().unwrap();
    let file = format!("user = 'alice'\n{}", settings(&endpoint, place.path()));
    let gateway_launcher = GatewayLauncher::new(PARLOR, place.path(), &file).env("PARLOR_PASSWORD", PASSWORD);
    let mut gateway = gateway_launcher.at(room.scene.url()).start().await.unwrap();
    let sage = registered(&room.alice, "Sage").await;
    room.add(&sage).await;
    walk(&mut room, &mut endpoint, &sage).await;
    assert!(gateway.terminate().await.unwrap().success());
    assert!(!gateway.output().contains(CANARY), "{}", gateway.output());
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_in_the_settings_file_of_the_hub_answers() {
    let mut endpoint = ModelEndpoint::start().await.unwrap();
    let place = tempfile::tempdir().unwrap();
    let config = place.path().join("parlor.toml");
    std::fs::write(&config, settings(&endpoint, place.path())).unwrap();
    let scene =
        Scene::process_set(&[("PARLOR_CONFIG", config.to_str().unwrap()), ("PARLOR_LOG_LEVEL", "trace")])
            .await;
    let mut room = Room::on(scene).await;
    let sage = registered(&room.scene.admin, "Sage").await;
    let share = json!({ "visibility": "all" });
    assert_eq!(room.scene.admin.put(&format!("/api/agents/{sage}"), share).await.unwrap().status, 200);
    room.add(&sage).await;
    walk(&mut room, &mut endpoint, &sage).await;
    assert_nothing_printed(&room.scene);
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_agent_answers() {
    let mut endpoint = ModelEndpoint::start().await.unwrap();
    let scene = Scene::process_set(&[allowed(&endpoint), ("PARLOR_LOG_LEVEL", "trace")]).await;
    let mut room = Room::on(scene).await;
    let config = json!({ "fallbackModel": "large", "systemPrompt": "You are kind." });
    let sage = make_service_agent(&room.scene.admin, &endpoint.url, config).await;
    let sage = sage["id"].as_str().unwrap();
    room.add(sage).await;
    walk(&mut room, &mut endpoint, sage).await;
    assert_nothing_printed(&room.scene);
    room.scene.ends_well().await;
}

fn assert_nothing_printed(scene: &Scene) {
    let printed = format!("{}{}", scene.hub.stdout(), scene.hub.log());
    assert_eq!(printed.lines().find(|line| line.contains(CANARY)), None, "in the log");
}

/// Runs every scenario of a model against a room in which the agent is named Sage.
async fn walk(room: &mut Room, endpoint: &mut ModelEndpoint, sage: &str) {
    streams(room, endpoint).await;
    is_retried(room, endpoint).await;
    falls_back(room, endpoint).await;
    fails(room, endpoint).await;
    is_stopped(room, endpoint, sage).await;
    is_frozen(room, endpoint).await;
}

async fn streams(room: &mut Room, endpoint: &mut ModelEndpoint) {
    endpoint.respond_with(ScriptedResponse::Say {
        thoughts: vec!["Hm.".into()],
        text: vec!["Hello ".into(), "there".into()],
    });
    room.say("the kettle is on").await;
    let mention = room.say("@Sage who is there?").await;
    let (chunks, reply) = next_reply(room).await;
    let joined =
        |kind: &str| -> String { chunks.iter().filter(|chunk| chunk["type"] == kind).map(text).collect() };
    assert_eq!((&*joined("thinking"), &*joined("text")), ("Hm.", "Hello there"));
    assert_eq!((&reply["content"], outcome(&reply)), (&json!("Hello there"), "complete"));
    let usage = &room.deliveries(&mention).await[0];
    assert_eq!((&usage["inputTokens"], &usage["outputTokens"]), (&json!(25), &json!(7)));

    let RecordedRequest { path, headers, body, .. } = endpoint.asked().await.unwrap();
    assert_eq!((&*path, &headers["authorization"]), ("/v1/chat/completions", &format!("Bearer {CANARY}")));
    let messages = body["messages"].as_array().unwrap();
    let system = text(&messages[0]);
    assert!(system.starts_with("You are kind.\n\n"), "{system}");
    assert!(
        system.contains("bob") && !system.contains("kettle"),
        "the system prompt lists the members, but contains no messages: {system}"
    );
    let prompt: Vec<String> = messages[1..].iter().map(text).collect();
    assert!(prompt.concat().contains("alice (person): the kettle is on"), "{prompt:?}");
    assert!(prompt.concat().contains("alice (person): @Sage who is there?"), "{prompt:?}");
}

async fn is_retried(room: &mut Room, endpoint: &mut ModelEndpoint) {
    let limited = ScriptedResponse::Status {
        status: 429,
        headers: vec![("retry-after".into(), "1".into())],
        body: "{}".into(),
    };
    endpoint.respond_with(limited).respond_with(ScriptedResponse::say("There you are."));
    room.say("@Sage and now?").await;
    let (_, reply) = next_reply(room).await;
    assert_eq!((&reply["content"], outcome(&reply)), (&json!("There you are."), "complete"));
    let body = endpoint.asked().await.unwrap().body;
    let own = json!({ "role": "assistant", "content": "Hello there" });
    assert!(
        body["messages"].as_array().unwrap().contains(&own),
        "its own reply has the role assistant: {body}"
    );
    assert_eq!(endpoint.unseen(), 1);
}

async fn falls_back(room: &mut Room, endpoint: &mut ModelEndpoint) {
    for _ in 0..3 {
        endpoint.respond_with(ScriptedResponse::status(503, "busy"));
    }
    endpoint.respond_with(ScriptedResponse::say("I stand in."));
    room.say("@Sage are you well?").await;
    let (chunks, reply) = next_reply(room).await;
    let notice = "small did not answer: the model's server is overloaded: busy. large answers instead.";
    assert_eq!(
        (&chunks[0]["type"], text(&chunks[0])),
        (&json!("error"), notice.to_owned()),
        "the notice precedes the text"
    );
    assert_eq!((&reply["content"], outcome(&reply)), (&json!("I stand in."), "complete"));
    assert_eq!(text(&reply["chunks"][0]), notice, "the stored reply contains the notice");
    for model in ["small", "small", "small", "large"] {
        assert_eq!(endpoint.asked().await.unwrap().body["model"], model);
    }
}

async fn fails(room: &mut Room, endpoint: &mut ModelEndpoint) {
    for _ in 0..2 {
        endpoint.respond_with(ScriptedResponse::status(401, &format!("no such key: {CANARY}")));
    }
    room.say("@Sage hello?").await;
    let (_, reply) = next_reply(room).await;
    assert_eq!((&reply["content"], outcome(&reply)), (&json!(""), "failed"));
    let error = text(reply["chunks"].as_array().unwrap().last().unwrap());
    assert_eq!(error, "The model's server does not accept the key: no such key: …");

    endpoint.respond_with(ScriptedResponse::BreakOff("Half a".into()));
    room.say("@Sage hello?").await;
    let (_, reply) = next_reply(room).await;
    assert_eq!(
        (&reply["content"], outcome(&reply)),
        (&json!("Half a"), "failed"),
        "the partial text is kept"
    );
    assert_eq!(endpoint.unseen(), 3, "a reply that has started is not retried");
}

async fn is_stopped(room: &mut Room, endpoint: &mut ModelEndpoint, sage: &str) {
    endpoint.respond_with(ScriptedResponse::Stall("Well, ".into()));
    room.say("@Sage tell me everything").await;
    next(&mut room.at_alice, "server:message_chunk").await;
    let stop = json!({ "type": "client:stop_generation", "roomId": room.room, "agentId": sage });
    room.at_alice.send(&stop).await.unwrap();
    let reply = room.reply().await;
    assert_eq!((&reply["content"], outcome(&reply)), (&json!("Well, "), "cancelled"));
}

async fn is_frozen(room: &mut Room, endpoint: &mut ModelEndpoint) {
    endpoint.respond_with(ScriptedResponse::Stall("Well, ".into()));
    room.say("@Sage tell me everything").await;
    next(&mut room.at_alice, "server:message_chunk").await;
    let freeze = format!("/api/rooms/{}/freeze", room.room);
    assert_eq!(room.bob.post(&freeze, json!({})).await.unwrap().status, 200);
    assert_eq!(outcome(&room.reply().await), "cancelled");
    let mention = room.say("@Sage anybody?").await;
    assert_eq!(room.deliveries(&mention).await[0]["reason"], "the room is frozen");
    assert_eq!(room.alice.delete(&freeze).await.unwrap().status, 200);
    room.say("@Sage and now?").await;
    assert_eq!(room.reply().await["content"], "Hello from small");
    assert_eq!(endpoint.unseen(), 3, "a frozen room sends no request");
}

/// Returns the chunks of the next reply, and the complete reply.
async fn next_reply(room: &mut Room) -> (Vec<Value>, Value) {
    let mut chunks = Vec::new();
    loop {
        let frame = room.at_alice.frame(TEST_TIMEOUT).await.unwrap();
        match frame["type"].as_str().unwrap() {
            "server:message_chunk" => chunks.push(frame["chunk"].clone()),
            "server:message_complete" => return (chunks, frame["message"].clone()),
            _ => {}
        }
    }
}

fn text(chunk: &Value) -> String {
    chunk["content"].as_str().unwrap().to_owned()
}
