//! The REST API of the Ably protocol, as the client library uses it.

use parlor_testkit::ably::{Ably, text_of};
use parlor_testkit::broker::Broker;
use parlor_testkit::rest::http_client;
use parlor_wire::ably::frames::{Format, Message, PresenceMessage};
use parlor_wire::ably::presence::PresenceAction;
use reqwest::header::{CONTENT_TYPE, HeaderMap, LINK};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{chat, key, project, with_key};
use crate::scene::Scene;

const MSGPACK: &str = "application/x-msgpack";

/// A client of the REST API with a key.
struct Rest {
    http: reqwest::Client,
    url: String,
    key: String,
}

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Answer {
    fn json(&self) -> Value {
        assert_eq!(self.headers[CONTENT_TYPE], "application/json");
        serde_json::from_slice(&self.body).unwrap()
    }

    fn msgpack<T: DeserializeOwned>(&self) -> T {
        assert_eq!(self.headers[CONTENT_TYPE], MSGPACK);
        Format::Msgpack.decode(&self.body).unwrap()
    }

    /// Status, code in the body, and code in the header of an error.
    fn error(&self) -> (u16, u64) {
        let code = self.json()["error"]["code"].as_u64().unwrap();
        assert_eq!(self.headers["x-ably-errorcode"].to_str().unwrap(), code.to_string());
        assert!(self.headers.contains_key("x-ably-errormessage"));
        (self.status.as_u16(), code)
    }

    /// Query of the link to the next page, as the client library parses it.
    fn next(&self) -> Option<String> {
        let links = self.headers[LINK].to_str().unwrap();
        let link = links.split(',').find(|link| link.ends_with("rel=\"next\""))?;
        let (url, _) = link.strip_prefix("<./").unwrap().split_once('>').unwrap();
        Some(url.split_once('?').unwrap().1.to_owned())
    }
}

impl Rest {
    fn new(scene: &Scene, key: &str) -> Self {
        Self { http: http_client().build().unwrap(), url: scene.url().into(), key: key.into() }
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let (name, secret) = self.key.split_once(':').unwrap();
        let request = self.http.request(method, format!("{}{path}", self.url));
        request.basic_auth(name, Some(secret)).header("X-Ably-Version", "6")
    }

    async fn get(&self, path: &str) -> Answer {
        answer(self.request(Method::GET, path)).await
    }

    async fn post(&self, path: &str, body: &Value) -> Answer {
        answer(self.request(Method::POST, path).json(body)).await
    }

    /// Names of the messages on a page of the history.
    async fn names(&self, path: &str) -> (String, Option<String>) {
        let page = self.get(path).await;
        assert_eq!(page.status, 200, "{:?}", page.json());
        let messages = page.json();
        let names = messages.as_array().unwrap().iter().map(|message| message["name"].as_str().unwrap());
        (names.collect::<Vec<_>>().join(" "), page.next())
    }
}

async fn answer(request: RequestBuilder) -> Answer {
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status(), response.headers().clone());
    Answer { status, headers, body: response.bytes().await.unwrap().into() }
}

#[tokio::test(flavor = "multi_thread")]
async fn published_messages_are_delivered_and_listed_in_both_encodings() {
    let scene = Scene::start().await;
    let key = key(&scene.admin, json!({ "*": ["*"] })).await;
    let rest = Rest::new(&scene, &key);
    let mut client = with_key(scene.url(), &key, Format::Json).await;
    let attached = client.attach("a/b").await.unwrap();

    let one = rest.post("/channels/a%2Fb/messages", &json!({ "name": "one", "data": "x" })).await;
    assert_eq!(one.status, 201);
    assert_eq!((&one.json()["channel"], one.json()["serials"].as_array().unwrap().len()), (&json!("a/b"), 1));
    let binary = Message {
        name: Some("bytes".into()),
        data: Some(parlor_wire::ably::data::Data::Bytes(vec![0, 255].into())),
        ..Message::default()
    };
    let body = Format::Msgpack.encode(&[binary.clone(), binary]);
    let request = rest.request(Method::POST, "/channels/a%2Fb/messages");
    let many = answer(request.header(CONTENT_TYPE, MSGPACK).header("accept", MSGPACK).body(body)).await;
    assert_eq!(many.status, 201);
    let published: Value = many.msgpack();
    assert_eq!(published["serials"].as_array().unwrap().len(), 2);

    let delivered = client.messages("a/b", 3).await.unwrap();
    assert_eq!(text_of(&delivered[0]), "x");
    assert_eq!(delivered[0].serial.as_deref(), one.json()["serials"][0].as_str());
    assert_eq!(delivered[2].data, Some(parlor_wire::ably::data::Data::Bytes(vec![0, 255].into())));

    let listed = rest.get("/channels/a%2Fb/messages").await.json();
    assert_eq!((&listed[0]["data"], &listed[0]["encoding"]), (&json!("AP8="), &json!("base64")));
    assert_eq!(listed[2]["id"], *delivered[0].id.as_deref().unwrap());
    let request = rest.request(Method::GET, "/channels/a%2Fb/messages?limit=1").header("accept", MSGPACK);
    let page: Vec<Message<'static>> = answer(request).await.msgpack();
    assert_eq!(page[0].data, delivered[2].data);

    // History until the attachment is empty: all messages are newer.
    let until = attached.channel_serial.as_deref().unwrap().to_owned();
    assert_eq!(rest.names(&format!("/channels/a%2Fb/messages?from_serial={until}")).await.0, "");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn history_is_paged_by_links_in_both_directions() {
    let scene = Scene::start().await;
    let rest = Rest::new(&scene, &key(&scene.admin, json!({ "*": ["*"] })).await);
    let messages: Vec<Value> = (0..5).map(|n| json!({ "name": n.to_string(), "data": "x" })).collect();
    assert_eq!(rest.post("/channels/c/messages", &json!(messages)).await.status, 201);

    let (newest, next) = rest.names("/channels/c/messages?limit=2").await;
    let (older, next) = rest.names(&format!("/channels/c/messages?{}", next.unwrap())).await;
    let (oldest, end) = rest.names(&format!("/channels/c/messages?{}", next.unwrap())).await;
    assert_eq!((&*newest, &*older, &*oldest, end), ("4 3", "2 1", "0", None));
    let (oldest, next) = rest.names("/channels/c/messages?limit=3&direction=forwards").await;
    let (newest, end) = rest.names(&format!("/channels/c/messages?{}", next.unwrap())).await;
    assert_eq!((&*oldest, &*newest, end), ("0 1 2", "3 4", None));

    let all = rest.get("/channels/c/messages").await.json();
    let serial = all[2]["serial"].as_str().unwrap().split_once(':').unwrap().0.to_owned();
    let (until, _) = rest.names(&format!("/channels/c/messages?from_serial={serial}")).await;
    assert_eq!(until, "2 1 0");
    let time = all[0]["timestamp"].as_i64().unwrap();
    assert_eq!(rest.names(&format!("/channels/c/messages?start={}", time + 1)).await.0, "");
    assert_eq!(rest.names(&format!("/channels/c/messages?end={time}")).await.0, "4 3 2 1 0");
    for bad in ["limit=0", "direction=up", "start=x", "from_serial=x", "from_serial=00000000-1"] {
        let answer = rest.get(&format!("/channels/c/messages?{bad}")).await;
        assert_eq!(answer.error(), (400, 40003), "{bad}");
    }
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_with_the_same_id_is_published_once() {
    let scene = Scene::start().await;
    let rest = Rest::new(&scene, &key(&scene.admin, json!({ "*": ["*"] })).await);
    let messages = json!([{ "name": "a", "id": "base:0" }, { "name": "b", "id": "base:1" }]);
    let first = rest.post("/channels/c/messages", &messages).await.json();
    let again = rest.post("/channels/c/messages", &messages).await.json();
    assert_eq!((&first["messageId"], &first), (&json!("base"), &again));
    assert_eq!(rest.names("/channels/c/messages").await.0, "b a");
    assert_eq!(rest.post("/channels/d/messages", &messages).await.status, 201);
    assert_eq!(rest.names("/channels/d/messages").await.0, "b a", "ids belong to a channel");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_key_publishes_on_behalf_of_the_connection() {
    let scene = Scene::start().await;
    let admin_key = key(&scene.admin, json!({ "*": ["*"] })).await;
    let rest = Rest::new(&scene, &admin_key);
    let client = with_key(scene.url(), &admin_key, Format::Json).await;
    let with = |connection: &str| json!({ "name": "a", "connectionKey": connection });
    assert_eq!(rest.post("/channels/c/messages", &with(&client.connection_key)).await.status, 201);
    let stored = rest.get("/channels/c/messages").await.json();
    assert_eq!(stored[0]["connectionId"], *client.connection_id);
    assert_eq!(stored[0].get("connectionKey"), None);
    let forged = rest.post("/channels/c/messages", &with("x!1.AAAAAAAAAAAAAAAAAAAAAA")).await;
    assert_eq!(forged.error().1, 80018);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_reports_each_channel() {
    let scene = Scene::start().await;
    let rest = Rest::new(&scene, &key(&scene.admin, json!({ "open": ["publish", "history"] })).await);
    let spec = json!({ "channels": ["open", "closed"], "messages": { "name": "a", "data": "x" } });
    let single = rest.post("/messages", &spec).await;
    assert_eq!(single.status, 201);
    let single = single.json();
    assert_eq!((&single["successCount"], &single["failureCount"]), (&json!(1), &json!(1)));
    assert_eq!(single["results"][0]["channel"], "open");
    assert_eq!(single["results"][1]["error"]["code"], 40160);
    let many = rest.post("/messages", &json!([spec, spec])).await.json();
    assert_eq!(many.as_array().unwrap().len(), 2);
    let (name, secret) = rest.key.split_once(':').unwrap();
    let old = rest.http.post(format!("{}/messages", rest.url)).basic_auth(name, Some(secret));
    let flat = answer(old.header("X-Ably-Version", "2").json(&spec)).await.json();
    assert_eq!((&flat[0]["channel"], &flat[1]["error"]["code"]), (&json!("open"), &json!(40160)));
    assert_eq!(rest.names("/channels/open/messages").await.0, "a a a a");
    assert_eq!(rest.post("/messages", &json!([])).await.error(), (400, 40000));
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn presence_lists_members_and_their_recent_changes() {
    let scene = Scene::start().await;
    let key = key(&scene.admin, json!({ "*": ["*"] })).await;
    let rest = Rest::new(&scene, &key);
    let mut clients = Vec::new();
    for name in ["ann", "ben", "cam"] {
        let query = [("key", &*key), ("clientId", name)];
        let mut client = Ably::connect(scene.url(), Format::Json, &query).await.unwrap();
        client.attach("c").await.unwrap();
        client.present("c", PresenceAction::Enter, None, Some("hello")).await.unwrap();
        clients.push(client);
    }
    let all = rest.get("/channels/c/presence").await;
    assert_eq!(all.next(), None);
    let all = all.json();
    assert_eq!(
        (all.as_array().unwrap().len(), &all[0]["action"], &all[0]["data"]),
        (3, &json!(1), &json!("hello"))
    );
    let filtered = rest.get("/channels/c/presence?clientId=ben").await.json();
    assert_eq!((filtered.as_array().unwrap().len(), &filtered[0]["clientId"]), (1, &json!("ben")));
    let connection = format!("/channels/c/presence?connectionId={}", clients[2].connection_id);
    assert_eq!(rest.get(&connection).await.json()[0]["clientId"], "cam");
    let mut paged = Vec::new();
    let mut query = Some("limit=2".to_owned());
    while let Some(parameters) = query {
        let page = rest.get(&format!("/channels/c/presence?{parameters}")).await;
        paged.extend(page.json().as_array().unwrap().clone());
        query = page.next();
    }
    assert_eq!(json!(paged), all);

    clients[0].present("c", PresenceAction::Leave, None, Some("bye")).await.unwrap();
    let history = rest.get("/channels/c/presence/history?limit=3").await;
    let changes = |page: &Answer| -> Vec<String> {
        let list = page.json().as_array().unwrap().clone();
        list.iter()
            .map(|change| format!("{} {}", change["clientId"].as_str().unwrap(), change["action"]))
            .collect()
    };
    assert_eq!(changes(&history), ["ann 3", "cam 2", "ben 2"]);
    let rest_of_it = rest.get(&format!("/channels/c/presence/history?{}", history.next().unwrap())).await;
    assert_eq!((changes(&rest_of_it), rest_of_it.next()), (vec!["ann 2".into()], None));

    let batch = rest.get("/presence?channels=c,empty,:bad").await.json();
    assert_eq!((&batch["successCount"], &batch["failureCount"]), (&json!(2), &json!(1)));
    assert_eq!(batch["results"][0]["presence"].as_array().unwrap().len(), 2);
    assert_eq!(batch["results"][1], json!({ "channel": "empty", "presence": [] }));
    assert_eq!(batch["results"][2]["error"]["code"], 40010);

    let status = rest.get("/channels/c").await.json();
    let metrics = &status["status"]["occupancy"]["metrics"];
    assert_eq!((&status["channelId"], &status["status"]["isActive"]), (&json!("c"), &json!(true)));
    assert_eq!((&metrics["subscribers"], &metrics["presenceMembers"]), (&json!(3), &json!(2)), "{status}");
    let msgpack = rest.request(Method::GET, "/channels/c/presence").header("accept", MSGPACK);
    let members: Vec<PresenceMessage<'static>> = answer(msgpack).await.msgpack();
    assert_eq!(members.len(), 2);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_have_the_form_that_clients_parse() {
    let scene = Scene::start().await;
    let limited = key(&scene.admin, json!({ "open": ["subscribe"] })).await;
    let rest = Rest::new(&scene, &limited);
    assert_eq!(rest.get("/channels/open/messages").await.error(), (401, 40160));
    assert_eq!(rest.get("/channels/other/presence").await.error(), (401, 40160));
    assert_eq!(rest.get("/channels/open").await.error(), (401, 40160));
    assert_eq!(rest.post("/channels/open/messages", &json!({ "data": "x" })).await.error(), (401, 40160));
    assert_eq!(rest.get("/channels/%3Abad/messages").await.error(), (400, 40010));
    assert_eq!(rest.get("/channels/%FF/messages").await.error(), (400, 40010));
    for path in ["/channels", "/channels/", "/channels/a/b", "/keys/x", "/time/x", "/messages/x", "/stats/x"]
    {
        assert_eq!(rest.get(path).await.error(), (404, 40400), "{path}");
    }
    assert_eq!(rest.get("/messages").await.error(), (405, 40500));
    assert_eq!(rest.post("/time", &json!({})).await.error(), (405, 40500));
    let wrong = Rest { key: format!("{}x", rest.key), ..Rest::new(&scene, &limited) };
    assert_eq!(wrong.get("/channels/open/messages").await.error().0, 401);
    let none = answer(rest.http.get(format!("{}/channels/open/presence", rest.url))).await;
    assert_eq!(none.error().0, 401);
    let msgpack = rest.request(Method::GET, "/channels/open/messages").header("accept", MSGPACK);
    let error: Value = answer(msgpack).await.msgpack();
    assert_eq!(error["error"]["code"], 40160);
    let everything = Rest::new(&scene, &key(&scene.admin, json!({ "*": ["*"] })).await);
    for body in [json!({ "data": 1 }), json!([]), json!({ "data": "x", "action": 1 })] {
        assert_eq!(everything.post("/channels/c/messages", &body).await.error(), (400, 40000), "{body}");
    }
    let long = json!({ "data": "x".repeat(3_000_000) });
    assert_eq!(everything.post("/channels/c/messages", &long).await.error(), (400, 40009));
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn browsers_of_any_origin_may_use_the_api() {
    let scene = Scene::start().await;
    let rest = Rest::new(&scene, &key(&scene.admin, json!({ "*": ["*"] })).await);
    for path in ["/channels/c/messages", "/time", "/messages", "/keys/a.b/requestToken", "/channels/x/y/z"] {
        let preflight = rest.http.request(Method::OPTIONS, format!("{}{path}", rest.url));
        let preflight = preflight.header("Origin", "https://page.example");
        let preflight = answer(preflight.header("Access-Control-Request-Method", "POST")).await;
        assert_eq!(
            (
                preflight.status.as_u16(),
                &*preflight.headers["access-control-allow-origin"].as_bytes().to_vec()
            ),
            (204, &b"*"[..]),
            "{path}"
        );
        assert!(
            preflight.headers["access-control-allow-headers"].to_str().unwrap().contains("X-Ably-Version")
        );
    }
    rest.post("/channels/c/messages", &json!([{ "name": "a" }, { "name": "b" }])).await;
    let page = rest.get("/channels/c/messages?limit=1&envelope=json&format=msgpack").await;
    assert_eq!(page.headers["access-control-allow-origin"], "*");
    let page = page.json();
    assert_eq!((&page["statusCode"], &page["response"][0]["name"]), (&json!(200), &json!("b")));
    let links = page["headers"]["link"].as_str().unwrap();
    assert!(links.contains("rel=\"next\"") && !links.contains("envelope"), "{links}");
    let failed = rest.get("/channels/%3Abad/messages?envelope=json").await;
    assert_eq!(failed.status, 200);
    let failed = failed.json();
    assert_eq!((&failed["statusCode"], &failed["response"]["error"]["code"]), (&json!(400), &json!(40010)));
    let time = answer(rest.http.get(format!("{}/time", rest.url))).await.json();
    assert!(time[0].as_i64().unwrap() > 1_600_000_000_000);
    assert_eq!(rest.get("/stats").await.json(), json!([]));
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_posts_and_reads_in_a_project_channel() {
    let scene = Scene::start().await;
    let ann = scene.person("ann").await;
    let (own, other) = (scene.admin.make_room("own", &[]).await, ann.make_room("other", &[]).await);
    let (own, other) = (own.unwrap(), other.unwrap());
    let rest = Rest::new(&scene, &key(&scene.admin, json!({ "jaibber:*": ["*"] })).await);
    let path = |room: &str| format!("/channels/{}/messages", project(room).replace(':', "%3A"));
    let message = |from: &_, room: &str, text: &str, id: &str| {
        let data = chat(from, "root", room, text, id);
        json!({ "name": "message", "data": data.to_string(), "encoding": "json" })
    };
    let posted = rest.post(&path(&own), &message(&scene.admin, &own, "hello", "m1")).await;
    assert_eq!(posted.status, 201, "{}", posted.json());
    let again = rest.post(&path(&own), &message(&scene.admin, &own, "hello", "m1")).await;
    assert_eq!(posted.json()["serials"], again.json()["serials"]);
    scene.admin.post_message(&own, "from the page").await.unwrap();
    let listed = rest.get(&path(&own)).await.json();
    let text = |message: &Value| -> Value {
        let data: Value = serde_json::from_str(message["data"].as_str().unwrap()).unwrap();
        data["text"].clone()
    };
    let texts: Vec<Value> = listed.as_array().unwrap().iter().map(text).collect();
    assert_eq!(texts, ["from the page", "hello"]);
    assert_eq!(rest.get(&path(&other)).await.error(), (401, 40160));
    let foreign = rest.post(&path(&other), &message(&scene.admin, &other, "hi", "m2")).await;
    assert_eq!(foreign.error(), (401, 40160));
    let forged = rest.post(&path(&own), &message(&ann, &own, "forged", "m3")).await;
    assert_eq!(forged.error().1, 40012);
    let elsewhere = rest.post(&path(&own), &message(&scene.admin, &other, "x", "m4")).await;
    assert_eq!(elsewhere.error(), (401, 40160));
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_that_may_receive_the_source_get_copies_and_others_do_not() {
    let scene = Scene::start().await;
    let rest = Rest::new(&scene, &key(&scene.admin, json!({ "*": ["*"] })).await);
    let (hearer, other) = (scene.hearer("ann", &["ably/**"]).await, scene.person("ben").await);
    let mut brokers = Vec::new();
    for (user, agent) in [(&hearer, "ann-1"), (&other, "ben-1")] {
        let mut broker = Broker::connect(scene.url(), user.token()).await.unwrap();
        broker.create_agent(agent, &["ably/**"]).await.unwrap();
        broker.listen(agent).await.unwrap();
        brokers.push(broker);
    }
    rest.post("/channels/news/messages", &json!({ "name": "a", "data": "x" })).await;
    let pushed = brokers[0].pushed().await.unwrap();
    assert_eq!((&pushed["path"], &pushed["command"]), (&json!("ably/news"), &json!("a")), "{pushed}");
    assert_eq!((&pushed["from"], &pushed["source"]), (&json!("ably"), &json!("ably")));
    assert_eq!(pushed["payload"]["data"], "x");
    assert!(brokers[1].receive("ben-1").await.unwrap().is_empty());
    // A message on a path without subscribers is no dead letter.
    let mut admin = Broker::connect(scene.url(), scene.admin.token()).await.unwrap();
    let letters = admin.ok(json!({ "type": "msg.unmatched" })).await.unwrap();
    assert_eq!(letters["messages"], json!([]));
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_with_much_data_are_listed_in_several_pages() {
    let scene = Scene::with(&[("PARLOR_MAX_PRESENCE_MEMBER_SIZE", "1048576")]).await;
    let key = key(&scene.admin, json!({ "*": ["*"] })).await;
    let rest = Rest::new(&scene, &key);
    let mut client = with_key(scene.url(), &key, Format::Msgpack).await;
    let data = "x".repeat(900_000);
    for member in 0..6 {
        let name = format!("member-{member}");
        client.present("c", PresenceAction::Enter, Some(&name), Some(&data)).await.unwrap();
    }
    let (mut pages, mut listed, mut query) = (0, Vec::new(), Some("limit=100".to_owned()));
    while let Some(parameters) = query {
        let page = rest.get(&format!("/channels/c/presence?{parameters}")).await;
        let members = page.json().as_array().unwrap().clone();
        listed.extend(members.iter().map(|member| member["clientId"].as_str().unwrap().to_owned()));
        (pages, query) = (pages + 1, page.next());
    }
    assert_eq!(listed, (0..6).map(|member| format!("member-{member}")).collect::<Vec<_>>());
    assert_eq!(pages, 2);
    let batch = rest.get("/presence?channels=c,empty").await.json();
    assert_eq!((&batch["results"][0]["error"]["code"], &batch["successCount"]), (&json!(40009), &json!(1)));
    scene.ends_well().await;
}
