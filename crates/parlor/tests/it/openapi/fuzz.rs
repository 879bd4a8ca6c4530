//! Fuzzes every documented operation with valid and mutated requests. No response may be a 5xx, have an
//! undocumented status, or violate its schema.

use parlor_testkit::seed::{cases, seed};
use std::collections::{BTreeMap, BTreeSet};

use parlor_testkit::rest::{RestClient, RestResponse};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::strategy::{Union, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::Value;

use super::document::{Document, Operation};
use super::forms::{KNOWN_ID_PREFIX, Mutation, mutated, mutations, texts, values};
use crate::scene::{PASSWORD, Scene, make_key};

/// Number of rounds. Each uses a new hub, so that calls that damage the callers themselves (sign-out,
/// deletion) affect one round only.
const ROUNDS: u32 = 2;
/// Number of calls per round.
const CALLS: usize = 250;

#[derive(Debug, Clone)]
struct Call {
    operation: usize,
    /// Path ids; no documented path has more than two.
    ids: [Id; 2],
    query: Vec<(String, Option<String>)>,
    body: Option<(Value, Mutation)>,
    caller: Index,
    header: Option<(&'static str, &'static str)>,
}

#[derive(Debug, Clone)]
enum Id {
    Known(usize),
    Text(String),
}

#[tokio::test(flavor = "multi_thread")]
async fn every_response_to_random_requests_is_documented() {
    let seed = seed();
    let (mut succeeded, mut documented) = (BTreeSet::new(), 0);
    for round in 0..cases(ROUNDS) {
        let scene = Scene::start().await;
        let document = Document::of(scene.url()).await;
        documented = document.operations.len();
        let mut fuzzer = Fuzzer::start(&scene).await;
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&u64::to_le_bytes(seed));
        bytes[8] = round as u8;
        let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let mut runner = TestRunner::new_with_rng(Config::default(), random);
        let calls = Union::new(
            document.operations.iter().enumerate().map(|(index, operation)| calls(index, operation)),
        );
        for _ in 0..CALLS {
            let call = calls.new_tree(&mut runner).unwrap().current();
            let operation = &document.operations[call.operation];
            let answer = fuzzer.send(operation, &call).await;
            assert!(!answer.status.is_server_error(), "{} {call:?} {answer:?}", operation.name);
            operation.check(&answer, &format!("{call:?}"));
            if answer.status.is_success() {
                succeeded.insert(operation.name.clone());
                fuzzer.remember_ids(operation, &answer.body);
            }
        }
        scene.ends_well().await;
    }
    // Refusals alone would prove nothing. Operations that need a running agent cannot succeed here and are
    // covered by `successes`.
    assert!(succeeded.len() * 5 > documented, "only {} succeeded at all: {succeeded:?}", succeeded.len());
}

fn calls(index: usize, operation: &Operation) -> BoxedStrategy<Call> {
    let id = || {
        prop_oneof![
            8 => (0..200usize).prop_map(Id::Known),
            1 => "[A-Za-z0-9_-]{1,70}".prop_map(Id::Text),
            1 => "\\PC{1,70}".prop_map(Id::Text),
        ]
    };
    let parameter = |parameter: &&Value| {
        let number = prop_oneof!["[0-9]{1,3}", "[0-9]{18,22}", "-?[0-9.]{1,5}"];
        let text = prop_oneof![3 => number, 1 => texts("")];
        (Just(parameter["name"].as_str().unwrap().to_owned()), prop::option::of(text)).boxed()
    };
    let query: Vec<_> = operation.parameters("query").iter().map(parameter).collect();
    let body = match &operation.body {
        None => Just(None).boxed(),
        Some(schema) => prop::option::weighted(0.95, (values(schema, ""), mutations())).boxed(),
    };
    let header = select(vec![
        ("origin", "http://elsewhere.example"),
        ("cookie", "parlor_rt=plr_guess; other"),
        ("content-encoding", "gzip"),
        ("content-type", "text/plain"),
        ("authorization", "Basic eDp5"),
        ("x-http-method-override", "DELETE"),
    ]);
    let header = prop::option::weighted(0.1, header);
    (id(), id(), query, body, any::<Index>(), header)
        .prop_map(move |(first, second, query, body, caller, header)| Call {
            operation: index,
            ids: [first, second],
            query,
            body,
            caller,
            header,
        })
        .boxed()
}

struct Fuzzer {
    /// Clients, with the username and password to sign in again after a 401; `None` for an API key and
    /// anonymous.
    callers: Vec<(Option<(&'static str, &'static str)>, RestClient)>,
    /// Ids that the hub has returned so far, by the last segment of the path that returned them: `rooms`,
    /// `messages`, ….
    ids: BTreeMap<String, Vec<String>>,
}

impl Fuzzer {
    async fn start(scene: &Scene) -> Self {
        let (ada, bob) = (scene.person("ada").await, scene.person("bob").await);
        let (_, key) = make_key(&scene.admin, &["read", "write", "admin"]).await;
        let key_client = scene.admin.with_token(&key);
        let room = scene.admin.make_room("a room", &[&ada, &bob]).await.unwrap();
        let user_ids = [&scene.admin, &ada, &bob].map(|user| user.user_id().to_owned());
        let admin = (parlor_testkit::hub::ADMIN, parlor_testkit::hub::PASSWORD);
        let callers = vec![
            (Some(admin), scene.admin.clone()),
            (Some(("ada", PASSWORD)), ada),
            (Some(("bob", PASSWORD)), bob),
            (None, key_client),
            (None, RestClient::outsider(scene.url())),
        ];
        let ids = [("users".to_owned(), user_ids.to_vec()), ("rooms".to_owned(), vec![room])];
        Self { callers, ids: ids.into() }
    }

    async fn send(&mut self, operation: &Operation, call: &Call) -> RestResponse {
        let kinds = kinds(&operation.path);
        let id = |(kind, id): (&&str, &Id)| match id {
            Id::Known(number) => encoded(&self.known_id(kind, *number)),
            Id::Text(text) => encoded(text),
        };
        let ids: Vec<String> = kinds.iter().zip(&call.ids).map(id).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let replace_session = |name: &str, value: &str| match name {
            // A generated number selects a known room.
            "session_id" => {
                value.parse().map_or_else(|_| value.into(), |number| self.known_id("rooms", number))
            }
            _ => value.to_owned(),
        };
        let query = call
            .query
            .iter()
            .filter_map(|(name, value)| Some((name, encoded(&replace_session(name, value.as_ref()?)))));
        let query: Vec<String> = query.map(|(name, value)| format!("{name}={value}")).collect();
        let path = format!("{}?{}", operation.path_with(&ids), query.join("&"));
        let (credentials, client) = &self.callers[call.caller.index(self.callers.len())];
        let mut request = client.request(operation.method.clone(), &path);
        if let Some((name, value)) = call.header {
            request = request.header(name, value);
        }
        if let Some((body, mutation)) = &call.body {
            request = request.body(mutated(self.with_known_ids(body.clone()), mutation));
        }
        let answer = RestResponse::of(request).await.unwrap();
        if let (401, Some((name, password))) = (answer.status.as_u16(), *credentials)
            && let Ok(signed_in) = RestClient::sign_in(client.url(), name, password).await
        {
            let index = call.caller.index(self.callers.len());
            self.callers[index].1 = signed_in;
        }
        answer
    }

    /// Returns a known id that suits this path segment or field name, or else a known id of any kind.
    fn known_id(&self, name: &str, number: usize) -> String {
        let kind = match name {
            "members" | "memberId" | "memberIds" => "users",
            "replyToId" => "messages",
            other => other,
        };
        let pick = |ids: Vec<&String>| ids[number % ids.len()].clone();
        match self.ids.get(kind) {
            Some(ids) => pick(ids.iter().collect()),
            None => pick(self.ids.values().flatten().collect()),
        }
    }

    /// Replaces the placeholders in a body (`known:…`) by known ids.
    fn with_known_ids(&self, value: Value) -> Value {
        match value {
            Value::String(text) => {
                match text.strip_prefix(KNOWN_ID_PREFIX).and_then(|rest| rest.split_once(':')) {
                    Some((name, number)) => self.known_id(name, number.parse().unwrap()).into(),
                    None => text.into(),
                }
            }
            Value::Array(values) => values.into_iter().map(|value| self.with_known_ids(value)).collect(),
            Value::Object(fields) => {
                fields.into_iter().map(|(name, value)| (name, self.with_known_ids(value))).collect()
            }
            other => other,
        }
    }

    /// Stores the ids in the response of a list or create operation. Other responses contain only known ids.
    fn remember_ids(&mut self, operation: &Operation, body: &Value) {
        let kind = operation.path.rsplit('/').next().filter(|word| !word.starts_with('{'));
        let Some(kind) = kind else { return };
        let items = body["data"].as_array().cloned().unwrap_or_else(|| vec![body["data"].clone()]);
        for id in items.iter().filter_map(|item| item["id"].as_str()) {
            let ids = self.ids.entry(kind.to_owned()).or_default();
            if !ids.iter().any(|other| other == id) {
                ids.push(id.to_owned());
            }
        }
    }
}

/// The kind of each id in a path: the segment before its placeholder.
fn kinds(path: &str) -> Vec<&str> {
    let segments: Vec<&str> = path.split('/').collect();
    segments.windows(2).filter(|pair| pair[1].starts_with('{')).map(|pair| pair[0]).collect()
}

fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).into() } else { format!("%{byte:02X}") })
        .collect()
}
