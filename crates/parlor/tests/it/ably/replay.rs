//! Replay of the requests and frames that the Jaibber SDK sent to another hub: a project, an agent that streams,
//! two agents that answer each other until the chain stops, and a task from created to completed.

use std::collections::BTreeMap;

use parlor_testkit::ably::{Ably, completed, object_of};
use parlor_testkit::rest::{RestClient, RestResponse};
use parlor_wire::ably::frames::{Action, Format, Frame};
use reqwest::Method;
use serde_json::{Value, json};

use crate::scene::{PASSWORD, Scene};

/// One recorded request with its answer, opened connection or sent frame per line. Ids, passwords and tokens are
/// placeholders.
pub const RECORDED: &str = include_str!("jaibber-sdk.jsonl");

struct Replay {
    people: BTreeMap<String, Person>,
    /// Placeholders and their values.
    values: Vec<(&'static str, String)>,
    /// Data of the messages that the person in the room received.
    received: Vec<(Option<String>, Option<String>, Value)>,
}

struct Person {
    rest: RestClient,
    token: String,
    ably: Option<Ably>,
}

#[tokio::test(flavor = "multi_thread")]
async fn the_recorded_sdk_works_with_the_hub() {
    let scene = Scene::start().await;
    let mut replay = Replay::new(&scene).await;
    for line in RECORDED.lines() {
        let line = replay.substituted(line);
        let step: Value = serde_json::from_str(&line).unwrap();
        replay.perform(&step).await;
    }

    let conversation: Vec<(&str, &str)> = replay
        .received
        .iter()
        .filter(|(name, _, data)| name.as_deref() == Some("message") && data["type"] != "chunk")
        .map(|(_, _, data)| (data["type"].as_str().unwrap(), data["text"].as_str().unwrap()))
        .collect();
    let answer = "tested; depth was 1 chain coder @Coder again?";
    let expected = [
        ("message", "@coder please help"),
        ("typing", ""),
        ("response", "Hello human cc @Tester"),
        ("typing", ""),
        ("response", answer),
        ("message", "Picking up task: **T1**"),
        ("response", "working on T1"),
        ("response", "done!"),
    ];
    assert_eq!(conversation, expected);
    replay.assert_stream_and_chain();
    replay.assert_task_events();
    let stored = replay.people["human"].rest.history(&replay.value("project")).await.unwrap();
    let texts: Vec<&str> = stored.iter().map(|message| message["content"].as_str().unwrap()).collect();
    let posted: Vec<&str> = expected.iter().map(|(_, text)| *text).filter(|text| !text.is_empty()).collect();
    assert_eq!(texts, posted, "a message that is also posted with REST is stored once");
    scene.ends_well().await;
}

impl Replay {
    async fn new(scene: &Scene) -> Self {
        let mut values = vec![("password", PASSWORD.to_owned())];
        let mut people = BTreeMap::new();
        for name in ["human", "bot", "bot2"] {
            let rest = scene.person(name).await;
            values.push((name, rest.user_id().to_owned()));
            people.insert(name.to_owned(), Person { rest, token: String::new(), ably: None });
        }
        Self { people, values, received: Vec::new() }
    }

    fn substituted(&self, line: &str) -> String {
        self.values
            .iter()
            .fold(line.to_owned(), |line, (name, value)| line.replace(&format!("${{{name}}}"), value))
    }

    fn value(&self, name: &str) -> String {
        self.values.iter().find(|(known, _)| *known == name).unwrap().1.clone()
    }

    async fn perform(&mut self, step: &Value) {
        let who = step["who"].as_str().unwrap();
        if let Some(path) = step["path"].as_str() {
            self.request(who, path, step).await;
        } else if step["open"].is_string() {
            self.open(who).await;
        } else {
            self.send(who, &step["frame"]).await;
        }
    }

    async fn request(&mut self, who: &str, path: &str, step: &Value) {
        let person = self.people.get_mut(who).unwrap();
        let method: Method = step["method"].as_str().unwrap().parse().unwrap();
        let body = step["body"].as_str().unwrap();
        let kind = match body.starts_with('{') || body.is_empty() {
            true => "application/json",
            false => "application/x-www-form-urlencoded",
        };
        let request = person.rest.request(method, path).header("content-type", kind).body(body.to_owned());
        let answer = RestResponse::of(request).await.unwrap();
        assert_eq!(answer.status.as_u16(), step["status"], "{path} {body}: {}", answer.body);
        match path {
            "/api/ably/token" => {
                for field in ["token", "issued", "expires", "capability", "clientId"] {
                    assert!(!answer.body[field].is_null(), "no {field} in {}", answer.body);
                }
                person.token = answer.body["token"].as_str().unwrap().to_owned();
            }
            "/api/auth/token" => {
                assert_shape(path, &step["answer"], &answer.body);
                person.rest = person.rest.with_token(answer.body["token"].as_str().unwrap());
            }
            _ => assert_shape(path, &step["answer"], &answer.body),
        }
        if path == "/api/projects" && body.contains("P1") {
            let project = answer.body["project"]["id"].as_str().unwrap().to_owned();
            self.add_bots(&project).await;
            self.values.push(("project", project));
        }
        if path.ends_with("/tasks") && !body.is_empty() {
            self.values.push(("task", answer.body["data"]["id"].as_str().unwrap().to_owned()));
        }
    }

    /// The recorded hub had no members; here the creator adds them, and as admins they may add their agents.
    async fn add_bots(&self, project: &str) {
        for name in ["bot", "bot2"] {
            let body = json!({ "username": name, "role": "admin" });
            let path = format!("/api/projects/{project}/members");
            let added = self.people["human"].rest.post(&path, body).await.unwrap();
            assert!(added.status.is_success(), "{added:?}");
        }
    }

    async fn open(&mut self, who: &str) {
        let person = self.people.get_mut(who).unwrap();
        let query = [("access_token", &*person.token), ("clientId", person.rest.user_id()), ("v", "5")];
        person.ably = Some(Ably::connect(person.rest.url(), Format::Msgpack, &query).await.unwrap());
    }

    async fn send(&mut self, who: &str, frame: &Value) {
        let frame = Frame::decode(frame.to_string().as_bytes(), Format::Json).unwrap();
        let person = self.people.get_mut(who).unwrap();
        let ably = person.ably.as_mut().unwrap();
        let channel = frame.channel.clone().unwrap_or_default();
        match frame.action {
            Action::Attach => {
                ably.attach_with(frame).await.unwrap();
            }
            Action::Close if who == "human" => {
                let frames = ably.so_far().await.unwrap().into_iter();
                let messages = frames.filter(|frame| frame.action == Action::Message).flat_map(completed);
                self.received = messages
                    .map(|message| {
                        let data = object_of(&message);
                        (message.name.map(Into::into), message.connection_id.map(Into::into), data)
                    })
                    .collect();
                person.ably.take().unwrap().close().await.unwrap();
            }
            Action::Close => person.ably.take().unwrap().close().await.unwrap(),
            _ => {
                let serial = frame.msg_serial.unwrap();
                ably.send(&frame).await.unwrap();
                let outcome = ably.outcome(serial).await.unwrap();
                outcome.unwrap_or_else(|error| panic!("{who} on {channel}: {error:?}"));
            }
        }
    }

    fn assert_stream_and_chain(&self) {
        let of = |kind: &'static str| self.received.iter().filter(move |(_, _, data)| data["type"] == kind);
        let reply = "90e34f96-d971-48b6-87f1-4902e9fecec1";
        let streamed: String = of("chunk")
            .inspect(|(_, _, data)| {
                assert_eq!((&data["messageId"], &data["agentName"]), (&json!(reply), &json!("Coder")))
            })
            .map(|(_, _, data)| data["text"].as_str().unwrap())
            .collect();
        assert_eq!(streamed, "Hello human cc @Tester");
        let responses: Vec<&Value> = of("response").map(|(_, _, data)| data).collect();
        assert_eq!(responses[0]["messageId"], reply);
        for (response, depth, chain) in
            [(responses[0], 1, json!(["coder"])), (responses[1], 2, json!(["coder", "tester"]))]
        {
            assert_eq!((&response["responseDepth"], &response["respondingChain"]), (&json!(depth), &chain));
            assert_eq!(response["isAgentMessage"], true);
        }
        let senders: Vec<_> = of("response").map(|(_, connection, _)| connection.as_deref()).collect();
        assert!(senders.iter().all(Option::is_some), "messages have the connection of their agent");
        assert!(senders[0] != senders[1] && senders[0] == senders[2], "{senders:?}");
    }

    fn assert_task_events(&self) {
        let events: Vec<(&str, &str)> = self
            .received
            .iter()
            .filter(|(name, _, _)| name.as_deref() == Some("task"))
            .map(|(_, _, data)| (data["type"].as_str().unwrap(), data["task"]["status"].as_str().unwrap()))
            .collect();
        let expected =
            [("task-created", "submitted"), ("task-updated", "working"), ("task-updated", "completed")];
        assert_eq!(events, expected);
    }
}

/// Asserts that an answer has every field of the recorded one, with a value of the same type. Lists are compared by
/// their first elements, and a recorded `null` matches any value.
#[track_caller]
pub fn assert_shape(path: &str, recorded: &Value, answer: &Value) {
    match (recorded, answer) {
        (Value::Null, _) => {}
        (Value::Object(fields), Value::Object(_)) => {
            for (name, value) in fields {
                assert!(answer.get(name).is_some(), "{path}: no {name} in {answer}");
                assert_shape(&format!("{path} {name}"), value, &answer[name]);
            }
        }
        (Value::Array(recorded), Value::Array(items)) => {
            if let Some(recorded) = recorded.first() {
                assert_shape(path, recorded, items.first().unwrap_or(&Value::Null));
            }
        }
        _ => assert_eq!(
            std::mem::discriminant(recorded),
            std::mem::discriminant(answer),
            "{path}: {answer} instead of {recorded}"
        ),
    }
}
