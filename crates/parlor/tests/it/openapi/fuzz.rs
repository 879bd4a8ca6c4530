//! Asks for everything that the document offers, in every way that it allows and some that it does not: no 5xx,
//! no status that is not documented, no answer of another form.

use parlor_testkit::seed::{cases, seed};
use std::collections::{BTreeMap, BTreeSet};

use parlor_testkit::rest::{RestClient, RestResponse};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::strategy::{Union, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::Value;

use super::document::{Document, Operation};
use super::forms::{Harm, KNOWN, harmed, harms, texts, values};
use crate::scene::{PASSWORD, Scene, make_key};

/// Each on a hub of its own: what a call does to the callers themselves lasts no longer than a round.
const ROUNDS: u32 = 2;
const CALLS: usize = 250;

#[derive(Debug, Clone)]
struct Call {
    operation: usize,
    /// Two are enough for the longest path.
    ids: [Id; 2],
    query: Vec<(String, Option<String>)>,
    body: Option<(Value, Harm)>,
    caller: Index,
    header: Option<(&'static str, &'static str)>,
}

#[derive(Debug, Clone)]
enum Id {
    Known(usize),
    Text(String),
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_asked_the_answer_is_documented() {
    let seed = seed();
    let (mut succeeded, mut documented) = (BTreeSet::new(), 0);
    for round in 0..cases(ROUNDS) {
        let scene = Scene::start().await;
        let document = Document::of(scene.url()).await;
        documented = document.operations.len();
        let mut asking = Asking::begin(&scene).await;
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&u64::to_le_bytes(seed));
        bytes[8] = round as u8;
        let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let mut runner = TestRunner::new_with_rng(Config::default(), random);
        let calls = Union::new(document.operations.iter().enumerate().map(|(at, it)| calls(at, it)));
        for _ in 0..CALLS {
            let call = calls.new_tree(&mut runner).unwrap().current();
            let operation = &document.operations[call.operation];
            let answer = asking.ask(operation, &call).await;
            assert!(!answer.status.is_server_error(), "{} {call:?} {answer:?}", operation.name);
            operation.check(&answer, &format!("{call:?}"));
            if answer.status.is_success() {
                succeeded.insert(operation.name.clone());
                asking.learn(operation, &answer.body);
            }
        }
        scene.ends_well().await;
    }
    // Nonsense alone would prove nothing. What needs an agent that runs is walked through elsewhere.
    assert!(succeeded.len() * 5 > documented, "only {} succeeded at all: {succeeded:?}", succeeded.len());
}

fn calls(at: usize, operation: &Operation) -> BoxedStrategy<Call> {
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
        Some(form) => prop::option::weighted(0.95, (values(form, ""), harms())).boxed(),
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
            operation: at,
            ids: [first, second],
            query,
            body,
            caller,
            header,
        })
        .boxed()
}

struct Asking {
    /// Under the names that they can sign in with again.
    callers: Vec<(Option<(&'static str, &'static str)>, RestClient)>,
    /// What the hub has called things so far, by the last word of the path that told: `rooms`, `messages`, ….
    ids: BTreeMap<String, Vec<String>>,
}

impl Asking {
    async fn begin(scene: &Scene) -> Self {
        let (ada, bob) = (scene.person("ada").await, scene.person("bob").await);
        let (_, key) = make_key(&scene.admin, &["read", "write", "admin"]).await;
        let program = scene.admin.with_token(&key);
        let room = scene.admin.make_room("a room", &[&ada, &bob]).await.unwrap();
        let people = [&scene.admin, &ada, &bob].map(|person| person.user_id().to_owned());
        let admin = (parlor_testkit::hub::ADMIN, parlor_testkit::hub::PASSWORD);
        let callers = vec![
            (Some(admin), scene.admin.clone()),
            (Some(("ada", PASSWORD)), ada),
            (Some(("bob", PASSWORD)), bob),
            (None, program),
            (None, RestClient::outsider(scene.url())),
        ];
        let ids = [("users".to_owned(), people.to_vec()), ("rooms".to_owned(), vec![room])];
        Self { callers, ids: ids.into() }
    }

    async fn ask(&mut self, operation: &Operation, call: &Call) -> RestResponse {
        let kinds = kinds(&operation.path);
        let id = |(kind, id): (&&str, &Id)| match id {
            Id::Known(number) => encoded(&self.known(kind, *number)),
            Id::Text(text) => encoded(text),
        };
        let ids: Vec<String> = kinds.iter().zip(&call.ids).map(id).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let session = |name: &str, value: &str| match name {
            // A number says which.
            "session_id" => value.parse().map_or_else(|_| value.into(), |number| self.known("rooms", number)),
            _ => value.to_owned(),
        };
        let query = call
            .query
            .iter()
            .filter_map(|(name, value)| Some((name, encoded(&session(name, value.as_ref()?)))));
        let query: Vec<String> = query.map(|(name, value)| format!("{name}={value}")).collect();
        let path = format!("{}?{}", operation.path_with(&ids), query.join("&"));
        let (again, who) = &self.callers[call.caller.index(self.callers.len())];
        let mut request = who.request(operation.method.clone(), &path);
        if let Some((name, value)) = call.header {
            request = request.header(name, value);
        }
        if let Some((body, harm)) = &call.body {
            request = request.body(harmed(self.with_known(body.clone()), harm));
        }
        let answer = RestResponse::of(request).await.unwrap();
        if let (401, Some((name, password))) = (answer.status.as_u16(), *again)
            && let Ok(signed) = RestClient::sign_in(who.url(), name, password).await
        {
            let place = call.caller.index(self.callers.len());
            self.callers[place].1 = signed;
        }
        answer
    }

    /// An id for what a path or a field calls so; any at all where nothing is known of that.
    fn known(&self, name: &str, number: usize) -> String {
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

    /// Puts ids in the places of those that were meant.
    fn with_known(&self, value: Value) -> Value {
        match value {
            Value::String(text) => match text.strip_prefix(KNOWN).and_then(|rest| rest.split_once(':')) {
                Some((name, number)) => self.known(name, number.parse().unwrap()).into(),
                None => text.into(),
            },
            Value::Array(values) => values.into_iter().map(|value| self.with_known(value)).collect(),
            Value::Object(fields) => {
                fields.into_iter().map(|(name, value)| (name, self.with_known(value))).collect()
            }
            other => other,
        }
    }

    /// Remembers the ids that a list or something new has: the rest tells of what is known.
    fn learn(&mut self, operation: &Operation, body: &Value) {
        let kind = operation.path.rsplit('/').next().filter(|word| !word.starts_with('{'));
        let Some(kind) = kind else { return };
        let things = body["data"].as_array().cloned().unwrap_or_else(|| vec![body["data"].clone()]);
        for id in things.iter().filter_map(|thing| thing["id"].as_str()) {
            let known = self.ids.entry(kind.to_owned()).or_default();
            if !known.iter().any(|other| other == id) {
                known.push(id.to_owned());
            }
        }
    }
}

/// What the ids in a path are of: the words before them.
fn kinds(path: &str) -> Vec<&str> {
    let words: Vec<&str> = path.split('/').collect();
    words.windows(2).filter(|pair| pair[1].starts_with('{')).map(|pair| pair[0]).collect()
}

fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).into() } else { format!("%{byte:02X}") })
        .collect()
}
