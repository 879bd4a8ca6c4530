//! The session of the real AgentIM gateway, replayed frame by frame: each answer it depended on is there.

use crate::recorded_page::usable;
use crate::scene::{PASSWORD, Scene};
use parlor_testkit::agentim::Client;
use parlor_testkit::gateway::Gateway;
use parlor_testkit::rest::{RestClient, RestResponse};
use parlor_testkit::socket::TEST_TIMEOUT;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::HashMap;

/// What the gateway sent and heard, and what a person did meanwhile, which was not recorded.
const RECORDED: &str = include_str!("../../fixtures/agentim-gateway.jsonl");

/// What the real server hands to a busy agent waits here: a gateway that is not ours does one thing after the other.
const WAITING: [&str; 2] = ["@bot second", "@bot third"];

/// What the server asks a gateway for a person, what the person said for that, what the gateway answers, and what the
/// person hears.
const RELAYED: [[&str; 4]; 5] = [
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
    person: RestClient,
    at_person: Client,
    sockets: HashMap<u64, Gateway>,
    /// As each of them authenticated.
    gateways: HashMap<u64, Value>,
    /// Words of the recording and what they are here: tokens, ids that the server gave.
    here: HashMap<String, String>,
}

impl Replay {
    async fn start() -> Self {
        let scene = Scene::start().await;
        let person = scene.person("keeper").await;
        let at_person = Client::connect(&person).await.unwrap();
        let here = [("<user>", person.user_id()), ("admin", "keeper"), ("ChangeMe123!x", PASSWORD)];
        let here = here.map(|(word, ours)| (word.to_owned(), ours.to_owned()));
        Self {
            scene,
            person,
            at_person,
            sockets: HashMap::new(),
            gateways: HashMap::new(),
            here: here.into(),
        }
    }

    fn translated(&self, recorded: &Value) -> Value {
        match recorded {
            Value::String(word) => self.here.get(word).unwrap_or(word).clone().into(),
            Value::Array(items) => items.iter().map(|item| self.translated(item)).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(key, value)| (key.clone(), self.translated(value))).collect()
            }
            other => other.clone(),
        }
    }

    fn path(&self, path: &str) -> String {
        let rooms = self.here.iter().filter(|(word, _)| word.starts_with('<'));
        rooms.fold(path.to_owned(), |path, (word, ours)| path.replace(word, ours))
    }

    async fn step(&mut self, step: &Value) {
        if let Some(call) = step.get("call").or(step.get("person")) {
            let (method, path) = call.as_str().unwrap().split_once(' ').unwrap();
            let outsider = RestClient::outsider(self.scene.url());
            let caller = if step.get("person").is_some() { &self.person } else { &outsider };
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            let mut request = caller.request(method, &self.path(path));
            if let Some(body) = step.get("body") {
                request = request.json(&self.translated(body));
            }
            let answer = RestResponse::of(request).await.unwrap();
            self.learn(step, answer).await;
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
            if let Some([.., told]) = RELAYED.iter().find(|relay| frame["type"] == relay[2]) {
                self.answered(&frame, told).await;
            }
            if frame["type"] == "gateway:message_complete" {
                // A person asks the next thing when they have read this one.
                let read = |told: &Value| {
                    told["type"] == "server:message_complete" && told["message"]["id"] == frame["messageId"]
                };
                self.at_person.wait_for(TEST_TIMEOUT, read).await.unwrap();
            }
        } else {
            self.hear(number, &step["heard"]).await;
        }
    }

    /// The person who asked hears what the gateway answered.
    async fn answered(&mut self, answer: &Value, kind: &str) {
        let told = self.at_person.wait_for_type(kind).await.unwrap();
        if kind == "server:agent_info" {
            assert_eq!(told["agent"]["id"], answer["agentId"]);
            return usable(&answer["slashCommands"], &told["agent"]["slashCommands"], "commands").unwrap();
        }
        for field in ["requestId", "agentId", "roomId", "response", "command", "success", "message"] {
            let same = answer.get(field).is_none_or(|answer| told[field] == *answer);
            assert!(same, "{field} of {told}");
        }
        for field in ["credentials", "error"] {
            assert_eq!(told[field], answer[field], "{field} of {told}");
        }
    }

    async fn learn(&mut self, step: &Value, answer: RestResponse) {
        let data = answer.body["data"].clone();
        if let Some(status) = step.get("status") {
            assert_eq!(answer.status, status.as_u64().unwrap() as u16, "{answer:?}");
            usable(&step["answer"], &answer.body, "answer").unwrap();
            for (word, field) in [("<token>", "accessToken"), ("<refresh>", "refreshToken")] {
                self.here.insert(word.to_owned(), data[field].as_str().unwrap().to_owned());
            }
        }
        assert!(answer.status.is_success(), "{step}: {answer:?}");
        if let Some(name) = step.get("names") {
            let id = data["id"].as_str().unwrap();
            self.here.insert(name.as_str().unwrap().to_owned(), id.to_owned());
            self.at_person.join(id).await.unwrap();
        }
    }

    /// Asks what made the server ask the gateway this.
    async fn ask(&mut self, gateway: &Value, asked: &Value, ask: &str) {
        let mut frame = asked.clone();
        let fields = frame.as_object_mut().unwrap();
        for of_the_server in ["type", "requestId", "userId"] {
            fields.remove(of_the_server);
        }
        if asked.get("agentId").is_none() {
            fields.insert("gatewayId".into(), gateway.clone());
        }
        match ask.strip_prefix("POST ") {
            Some(path) => {
                let answer = self.person.post(path, frame).await.unwrap();
                assert!(answer.status.is_success(), "{answer:?}");
            }
            None => {
                fields.insert("type".into(), ask.into());
                self.at_person.send(&frame).await.unwrap();
            }
        }
    }

    /// Does what made the server say this, and waits for it.
    async fn hear(&mut self, number: u64, recorded: &Value) {
        let expected = self.translated(recorded);
        let (room, agent) = (&expected["roomId"], &expected["agentId"]);
        if let Some([_, ask, ..]) = RELAYED.iter().find(|relay| expected["type"] == relay[0]) {
            let gateway = self.gateways[&number].clone();
            self.ask(&gateway, &expected, ask).await;
        }
        match expected["type"].as_str().unwrap() {
            "server:send_to_agent" if expected["senderType"] == "user" => {
                let (room, text) = (room.as_str().unwrap(), expected["content"].as_str().unwrap());
                self.person.post_message(room, text).await.unwrap();
                if WAITING.contains(&text) {
                    return;
                }
            }
            "server:stop_agent" => {
                // It comes behind what was said before it, which went another way.
                self.sockets.get_mut(&number).unwrap().settled().await.unwrap();
                let room = &self.here["<room>"];
                let stop = json!({ "type": "client:stop_generation", "roomId": room, "agentId": agent });
                self.at_person.send(&stop).await.unwrap();
            }
            _ => {}
        }
        let same = |heard: &Value| {
            let fields = ["type", "agentId", "roomId", "content", "ts", "ok"];
            let members = |frame: &Value| {
                let members = frame["context"]["members"].as_array().map(|all| all.iter());
                let mut ids: Vec<String> =
                    members.into_iter().flatten().map(|m| m["id"].to_string()).collect();
                ids.sort();
                ids
            };
            let named = |frame: &Value| frame["context"]["roomName"].clone();
            // More may be told than was.
            let agree = |field: &&str| expected.get(*field).is_none_or(|value| heard[*field] == *value);
            fields.iter().all(agree)
                && named(heard) == named(&expected)
                && members(heard) == members(&expected)
        };
        let socket = self.sockets.get_mut(&number).unwrap();
        let heard = socket.wait_for(TEST_TIMEOUT, same).await.unwrap_or_else(|e| panic!("{expected}: {e:?}"));
        usable(&expected, &heard, "frame").unwrap();
        for field in ["messageId", "conversationId", "requestId"] {
            if let (Some(word), Some(ours)) = (recorded[field].as_str(), heard[field].as_str()) {
                let before = self.here.insert(word.to_owned(), ours.to_owned());
                assert!(before.is_none_or(|before| before == ours), "{field} stays what it was");
            }
        }
        let exact = ["senderName", "senderType", "routingMode", "depth", "error"];
        let asked = ["request", "command", "args", "userId", "agentType", "name"];
        for field in exact.into_iter().chain(asked) {
            assert_eq!(heard[field], expected[field], "{field} of {heard}");
        }
        self.context(&expected["context"], &heard["context"]);
    }

    fn context(&self, expected: &Value, heard: &Value) {
        assert_eq!(
            heard["systemPrompt"], expected["systemPrompt"],
            "the prompt of the room and nothing else"
        );
        for member in expected["members"].as_array().into_iter().flatten() {
            let members = heard["members"].as_array().unwrap();
            let ours = members.iter().find(|ours| ours["id"] == member["id"]).unwrap();
            usable(member, ours, "member").unwrap();
            for field in ["name", "type", "agentType", "roleDescription"] {
                assert_eq!(ours[field], member[field], "{field} of {ours}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_real_gateway_gets_every_answer_it_depended_on() {
    let mut replay = Replay::start().await;
    for line in RECORDED.lines() {
        let step: Value = serde_json::from_str(line).unwrap();
        replay.step(&step).await;
    }
    let history = replay.person.history(&replay.here["<room>"]).await.unwrap();
    let said = |message: &Value| {
        let outcome = message["metadata"]["outcome"].as_str().unwrap_or("");
        (message["content"].as_str().unwrap().to_owned(), outcome.to_owned())
    };
    let said: Vec<_> = history.iter().map(said).collect();
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
        said, expected,
        "each reply once and whole, also the one that went on behind a lost connection"
    );
    for text in WAITING {
        let asked = history.iter().find(|message| message["content"] == text).unwrap();
        let path = format!("/api/messages/{}/deliveries", asked["id"].as_str().unwrap());
        let told = replay.person.get(&path).await.unwrap().data().unwrap();
        assert_eq!(told[0]["status"], "cancelled", "a stop clears what waits, as it did: {told}");
    }
    replay.scene.ends_well().await;
}
