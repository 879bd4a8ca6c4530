//! Replays a recorded session of the original AgentIM gateway frame by frame and checks that the hub sends
//! every frame that the gateway depends on.

use crate::recorded_page::usable;
use crate::scene::{PASSWORD, Scene};
use parlor_testkit::agentim::Client;
use parlor_testkit::gateway::Gateway;
use parlor_testkit::rest::{RestClient, RestResponse};
use parlor_testkit::socket::TEST_TIMEOUT;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::HashMap;

/// One step per line: frames that the gateway sent and received, plus the actions of the user, which were
/// not recorded.
const RECORDED: &str = include_str!("../../fixtures/agentim-gateway.jsonl");

/// Messages that the recorded server delivered to a busy agent. The hub queues them: an agent of a gateway
/// that is not a Parlor gateway has one run at a time.
const QUEUED_MESSAGES: [&str; 2] = ["@bot second", "@bot third"];

/// Relayed requests, each as four frame types: sent to the gateway, sent by the user's client (or a REST
/// call), answered by the gateway, and delivered to the user.
const RELAYED_REQUESTS: [[&str; 4]; 5] = [
    ["server:query_agent_info", "client:query_agent_info", "gateway:agent_info", "server:agent_info"],
    [
        "server:request_workspace",
        "client:request_workspace",
        "gateway:workspace_response",
        "server:workspace_response",
    ],
    [
        "server:agent_command",
        "client:agent_command",
        "gateway:agent_command_result",
        "server:agent_command_result",
    ],
    [
        "server:list_credentials",
        "client:list_gateway_credentials",
        "gateway:credential_list",
        "server:gateway_credential_list",
    ],
    ["server:spawn_agent", "POST /api/agents/spawn", "gateway:spawn_result", "server:spawn_result"],
];

struct Replay {
    scene: Scene,
    user: RestClient,
    user_client: Client,
    sockets: HashMap<u64, Gateway>,
    /// `gatewayId` with which each socket authenticated.
    gateways: HashMap<u64, Value>,
    /// Recorded strings and their values in this replay: tokens, and ids that the server assigned.
    substitutions: HashMap<String, String>,
}

impl Replay {
    async fn start() -> Self {
        let scene = Scene::start().await;
        let user = scene.person("keeper").await;
        let user_client = Client::connect(&user).await.unwrap();
        let substitutions = [("<user>", user.user_id()), ("admin", "keeper"), ("ChangeMe123!x", PASSWORD)];
        let substitutions = substitutions.map(|(recorded, value)| (recorded.to_owned(), value.to_owned()));
        Self {
            scene,
            user,
            user_client,
            sockets: HashMap::new(),
            gateways: HashMap::new(),
            substitutions: substitutions.into(),
        }
    }

    fn translated(&self, recorded: &Value) -> Value {
        match recorded {
            Value::String(word) => self.substitutions.get(word).unwrap_or(word).clone().into(),
            Value::Array(items) => items.iter().map(|item| self.translated(item)).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(key, value)| (key.clone(), self.translated(value))).collect()
            }
            other => other.clone(),
        }
    }

    fn path(&self, path: &str) -> String {
        let placeholders = self.substitutions.iter().filter(|(placeholder, _)| placeholder.starts_with('<'));
        placeholders.fold(path.to_owned(), |path, (placeholder, value)| path.replace(placeholder, value))
    }

    async fn step(&mut self, step: &Value) {
        if let Some(call) = step.get("call").or(step.get("person")) {
            let (method, path) = call.as_str().unwrap().split_once(' ').unwrap();
            let anonymous = RestClient::outsider(self.scene.url());
            let caller = if step.get("person").is_some() { &self.user } else { &anonymous };
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            let mut request = caller.request(method, &self.path(path));
            if let Some(body) = step.get("body") {
                request = request.json(&self.translated(body));
            }
            let answer = RestResponse::of(request).await.unwrap();
            self.check_response(step, answer).await;
            return;
        }
        let number = step["on"].as_u64().unwrap();
        if step.get("opened").is_some() {
            self.sockets.insert(number, Gateway::open(self.scene.url()).await.unwrap());
        } else if let Some(code) = step.get("closed") {
            let mut socket = self.sockets.remove(&number).unwrap();
            socket.settled().await.unwrap();
            if code == 1005 {
                let close = tokio_tungstenite::tungstenite::Message::Close(None);
                socket.send_message(close).await.unwrap();
                assert_eq!(socket.closed(TEST_TIMEOUT).await.unwrap(), 1005);
            }
        } else if let Some(frame) = step.get("sent") {
            let frame = self.translated(frame);
            self.sockets.get_mut(&number).unwrap().send(&frame).await.unwrap();
            if frame["type"] == "gateway:auth" {
                self.gateways.insert(number, frame["gatewayId"].clone());
            }
            if let Some([.., delivered_type]) =
                RELAYED_REQUESTS.iter().find(|relay| frame["type"] == relay[2])
            {
                self.check_relayed_answer(&frame, delivered_type).await;
            }
            if frame["type"] == "gateway:message_complete" {
                // The recorded user sent the next message only after receiving this reply.
                let read = |received: &Value| {
                    received["type"] == "server:message_complete"
                        && received["message"]["id"] == frame["messageId"]
                };
                self.user_client.wait_for(TEST_TIMEOUT, read).await.unwrap();
            }
        } else {
            self.receive(number, &step["heard"]).await;
        }
    }

    /// Checks that the requesting user receives the gateway's answer, as a frame of type `kind`.
    async fn check_relayed_answer(&mut self, answer: &Value, kind: &str) {
        let delivered = self.user_client.wait_for_type(kind).await.unwrap();
        if kind == "server:agent_info" {
            assert_eq!(delivered["agent"]["id"], answer["agentId"]);
            return usable(&answer["slashCommands"], &delivered["agent"]["slashCommands"], "commands")
                .unwrap();
        }
        for field in ["requestId", "agentId", "roomId", "response", "command", "success", "message"] {
            let same = answer.get(field).is_none_or(|answer| delivered[field] == *answer);
            assert!(same, "{field} of {delivered}");
        }
        for field in ["credentials", "error"] {
            assert_eq!(delivered[field], answer[field], "{field} of {delivered}");
        }
    }

    /// Checks a REST response against its recording and stores the tokens and ids that it assigns.
    async fn check_response(&mut self, step: &Value, response: RestResponse) {
        let data = response.body["data"].clone();
        if let Some(status) = step.get("status") {
            assert_eq!(response.status, status.as_u64().unwrap() as u16, "{response:?}");
            usable(&step["answer"], &response.body, "answer").unwrap();
            for (placeholder, field) in [("<token>", "accessToken"), ("<refresh>", "refreshToken")] {
                self.substitutions.insert(placeholder.to_owned(), data[field].as_str().unwrap().to_owned());
            }
        }
        assert!(response.status.is_success(), "{step}: {response:?}");
        if let Some(name) = step.get("names") {
            let id = data["id"].as_str().unwrap();
            self.substitutions.insert(name.as_str().unwrap().to_owned(), id.to_owned());
            self.user_client.join(id).await.unwrap();
        }
    }

    /// Sends the user's request that makes the hub send `relayed` to the gateway.
    async fn send_request(&mut self, gateway: &Value, relayed: &Value, request: &str) {
        let mut frame = relayed.clone();
        let fields = frame.as_object_mut().unwrap();
        for server_field in ["type", "requestId", "userId"] {
            fields.remove(server_field);
        }
        if relayed.get("agentId").is_none() {
            fields.insert("gatewayId".into(), gateway.clone());
        }
        match request.strip_prefix("POST ") {
            Some(path) => {
                let answer = self.user.post(path, frame).await.unwrap();
                assert!(answer.status.is_success(), "{answer:?}");
            }
            None => {
                fields.insert("type".into(), request.into());
                self.user_client.send(&frame).await.unwrap();
            }
        }
    }

    /// Performs the user's action that causes the recorded frame, then waits for the frame and compares it.
    async fn receive(&mut self, number: u64, recorded: &Value) {
        let expected = self.translated(recorded);
        let (room, agent) = (&expected["roomId"], &expected["agentId"]);
        if let Some([_, request, ..]) = RELAYED_REQUESTS.iter().find(|relay| expected["type"] == relay[0]) {
            let gateway = self.gateways[&number].clone();
            self.send_request(&gateway, &expected, request).await;
        }
        match expected["type"].as_str().unwrap() {
            "server:send_to_agent" if expected["senderType"] == "user" => {
                let (room, text) = (room.as_str().unwrap(), expected["content"].as_str().unwrap());
                self.user.post_message(room, text).await.unwrap();
                if QUEUED_MESSAGES.contains(&text) {
                    return;
                }
            }
            "server:stop_agent" => {
                // The stop must arrive after the gateway's earlier frames, which use another connection.
                self.sockets.get_mut(&number).unwrap().settled().await.unwrap();
                let room = &self.substitutions["<room>"];
                let stop = json!({ "type": "client:stop_generation", "roomId": room, "agentId": agent });
                self.user_client.send(&stop).await.unwrap();
            }
            _ => {}
        }
        let same = |received: &Value| {
            let fields = ["type", "agentId", "roomId", "content", "ts", "ok"];
            let members = |frame: &Value| {
                let members = frame["context"]["members"].as_array().map(|all| all.iter());
                let mut ids: Vec<String> =
                    members.into_iter().flatten().map(|m| m["id"].to_string()).collect();
                ids.sort();
                ids
            };
            let room_name = |frame: &Value| frame["context"]["roomName"].clone();
            // The hub may send additional fields.
            let agree = |field: &&str| expected.get(*field).is_none_or(|value| received[*field] == *value);
            fields.iter().all(agree)
                && room_name(received) == room_name(&expected)
                && members(received) == members(&expected)
        };
        let socket = self.sockets.get_mut(&number).unwrap();
        let received =
            socket.wait_for(TEST_TIMEOUT, same).await.unwrap_or_else(|e| panic!("{expected}: {e:?}"));
        usable(&expected, &received, "frame").unwrap();
        for field in ["messageId", "conversationId", "requestId"] {
            if let (Some(recorded_id), Some(id)) = (recorded[field].as_str(), received[field].as_str()) {
                let before = self.substitutions.insert(recorded_id.to_owned(), id.to_owned());
                assert!(before.is_none_or(|before| before == id), "{field} keeps its value");
            }
        }
        let exact = ["senderName", "senderType", "routingMode", "depth", "error"];
        let request_fields = ["request", "command", "args", "userId", "agentType", "name"];
        for field in exact.into_iter().chain(request_fields) {
            assert_eq!(received[field], expected[field], "{field} of {received}");
        }
        self.context(&expected["context"], &received["context"]);
    }

    fn context(&self, expected: &Value, received: &Value) {
        assert_eq!(
            received["systemPrompt"], expected["systemPrompt"],
            "the system prompt is exactly the one of the room"
        );
        for member in expected["members"].as_array().into_iter().flatten() {
            let members = received["members"].as_array().unwrap();
            let actual = members.iter().find(|actual| actual["id"] == member["id"]).unwrap();
            usable(member, actual, "member").unwrap();
            for field in ["name", "type", "agentType", "roleDescription"] {
                assert_eq!(actual[field], member[field], "{field} of {actual}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_recorded_gateway_receives_every_frame_it_depends_on() {
    let mut replay = Replay::start().await;
    for line in RECORDED.lines() {
        let step: Value = serde_json::from_str(line).unwrap();
        replay.step(&step).await;
    }
    let history = replay.user.history(&replay.substitutions["<room>"]).await.unwrap();
    let content_and_outcome = |message: &Value| {
        let outcome = message["metadata"]["outcome"].as_str().unwrap_or("");
        (message["content"].as_str().unwrap().to_owned(), outcome.to_owned())
    };
    let messages: Vec<_> = history.iter().map(content_and_outcome).collect();
    let ticks = |last: u32| (1..=last).map(|tick| format!("tick{tick} ")).collect::<String>();
    let (short, long) = (format!("part1 part2 {}", ticks(6)), format!("part1 part2 {}", ticks(46)));
    let chain = "part1 part2 handing over to @bot2 pleasedone:";
    let prompt = "[System: Be brief.]\n\n[From: admin]\n[Important: Reply in the same language as the user's message.]\n\n";
    let expected = [
        ("hello nobody", ""),
        ("@bot hello agent PROMPT", ""),
        (
            &format!("part1 part2 PROMPT<<<{prompt}@bot hello agent PROMPT>>>done:@bot hello agent PROMPT"),
            "complete",
        ),
        ("@bot please CHAIN", ""),
        (&format!("{chain}@bot please CHAIN"), "complete"),
        (&format!("{chain}{chain}@bot please CHAIN"), "complete"),
        ("@bot STDERR", ""),
        ("part1 part2 done:@bot STDERR", "complete"),
        ("@bot FAIL", ""),
        ("Error: Process exited with code 3", "complete"),
        ("@bot SLOW one", ""),
        ("@bot second", ""),
        ("@bot third", ""),
        (&short, "cancelled"),
        ("@bot SLOW again", ""),
        (&long, "cancelled"),
    ]
    .map(|(text, outcome)| (text.to_owned(), outcome.to_owned()));
    assert_eq!(
        messages, expected,
        "each reply is stored once and complete, also the one whose connection was lost"
    );
    for text in QUEUED_MESSAGES {
        let message = history.iter().find(|message| message["content"] == text).unwrap();
        let path = format!("/api/messages/{}/deliveries", message["id"].as_str().unwrap());
        let deliveries = replay.user.get(&path).await.unwrap().data().unwrap();
        assert_eq!(
            deliveries[0]["status"], "cancelled",
            "a stop clears the backlog, as in the recording: {deliveries}"
        );
    }
    replay.scene.ends_well().await;
}
