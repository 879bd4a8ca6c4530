//! Finding what was said, and nothing that one may not see.

use std::path::Path;
use std::time::Instant;

use parlor_testkit::agentim::Client;
use parlor_testkit::rest::{RestClient, RestResponse};
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::{Value, json};

use crate::scene::{Scene, assert_refused, contains, contents, make_key};

async fn search(person: &RestClient, query: &[(&str, &str)]) -> RestResponse {
    let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
    person.get(&format!("/api/messages/search?{query}")).await.unwrap()
}

async fn found(person: &RestClient, text: &str) -> Vec<String> {
    let answer = search(person, &[("q", text)]).await;
    assert_eq!((answer.status.as_u16(), &answer.body["partial"]), (200, &json!(false)), "{answer:?}");
    contents(answer.body["data"].as_array().unwrap())
}

/// Says so much besides that what was said so far comes into the index, and waits until it is there.
async fn has_indexed(person: &RestClient, data: &Path) {
    let room = person.make_room("hay", &[]).await.unwrap();
    let mut client = Client::connect(person).await.unwrap();
    for n in 0..1000 {
        client.say(&room, &format!("hay {n}"), &format!("{room} {n}")).await.unwrap();
    }
    let last = format!("{room} 999");
    client.wait_for(TEST_TIMEOUT, |frame| frame["clientMessageId"] == last.as_str()).await.unwrap();
    let database = rusqlite::Connection::open(data.join("parlor.db")).unwrap();
    let began = Instant::now();
    let number = |query| database.query_row(query, [], |row| row.get::<_, i64>(0)).unwrap();
    while number("SELECT value FROM meta WHERE key = 'indexed'") < number("SELECT max(seq) - 999 FROM log") {
        assert!(began.elapsed() < TEST_TIMEOUT, "the index stays behind");
        assert_eq!(person.health().await.unwrap(), 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_is_found_with_a_snippet_and_where_to_mark_it() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let answer = search(&ada, &[("q", "anything")]).await;
    assert_eq!(answer.body, json!({ "ok": true, "data": [], "partial": false }), "without any room too");

    let room = scene.admin.make_room("a room", &[&ada]).await.unwrap();
    let said = ada.post_message(&room, "🎉 The Café opens, <b>today</b>").await.unwrap();
    scene.admin.post_message(&room, "which cafe?").await.unwrap();
    let answer = search(&ada, &[("q", "cafe today")]).await;
    let hit = &answer.body["data"][0];
    assert_eq!((&hit["id"], &hit["content"], &hit["roomId"]), (&said["id"], &said["content"], &json!(room)));
    assert_eq!(hit["snippet"], "🎉 The Café opens, <b>today</b>");
    assert_eq!(hit["highlights"], json!([{ "start": 7, "end": 11 }, { "start": 22, "end": 27 }]));
    assert_eq!(answer.body["data"].as_array().unwrap().len(), 1);
    assert_eq!(found(&ada, "caf").await.len(), 2);

    let (_, key) = make_key(&ada, &["read"]).await;
    assert_eq!(found(&ada.with_token(&key), "\"opens today\"").await, [] as [String; 0]);
    assert_eq!(found(&ada.with_token(&key), "\"b today b\"").await.len(), 1);
    let (_, blind) = make_key(&ada, &["write"]).await;
    assert_refused(&search(&ada.with_token(&blind), &[("q", "cafe")]).await, 403);
    assert_refused(&search(&RestClient::outsider(scene.url()), &[("q", "cafe")]).await, 401);

    let narrow = async |name: &str, value: &str| {
        let answer = search(&ada, &[("q", "cafe"), (name, value)]).await;
        contents(answer.body["data"].as_array().unwrap_or_else(|| panic!("{name}={value}: {answer:?}"))).len()
    };
    assert_eq!(narrow("roomId", &room).await, 2);
    assert_eq!(narrow("senderId", ada.user_id()).await, 1);
    assert_eq!((narrow("senderType", "user").await, narrow("senderType", "agent").await), (2, 0));
    assert_eq!((narrow("type", "text").await, narrow("type", "agent_response").await), (2, 0));
    let at = said["createdAt"].as_str().unwrap();
    assert_eq!((narrow("dateTo", at).await, narrow("dateFrom", at).await), (1, 2));
    let day = &at[..10];
    assert_eq!((narrow("dateFrom", day).await, narrow("dateFrom", "2999-01-01").await), (2, 0));
    assert_eq!(narrow("dateTo", "2999-12-31T00:00:00+02:00").await, 2);
    assert_eq!(
        (narrow("limit", "1").await, narrow("limit", "0").await, narrow("limit", "9999").await),
        (1, 1, 2)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_search_is_refused_in_a_sentence() {
    let scene = Scene::start().await;
    let foreign = scene.admin.make_room("foreign", &[]).await.unwrap();
    let ada = scene.person("ada").await;
    let long = "x".repeat(501);
    let many = "a b ".repeat(40);
    for text in ["", "a", "  ", "\"\"", "\"open", "-without", "!?", "*", "a* b", &long, &many] {
        let answer = search(&ada, &[("q", text)]).await;
        assert_refused(&answer, 400);
        assert_eq!(answer.body["fields"][0]["field"], "q", "{text:?}: {answer:?}");
    }
    assert_refused(&search(&ada, &[]).await, 400);
    let cases = [
        ("dateFrom", "yesterday", 400),
        ("dateTo", "2026-13-01", 400),
        ("dateTo", "", 400),
        ("senderType", "robot", 400),
        ("type", "song", 400),
        ("limit", "-1", 400),
        ("limit", "many", 400),
        ("cursor", "x", 400),
        ("cursor", "5.-1", 400),
        ("cursor", "00000000-5.0", 410),
        ("roomId", "../..", 400),
        ("roomId", "nowhere", 404),
        ("roomId", &foreign, 404),
    ];
    for (name, value, status) in cases {
        let answer = search(&ada, &[("q", "words"), (name, value)]).await;
        assert_refused(&answer, status);
        assert!(!answer.body["error"].as_str().unwrap().is_empty(), "{name}={value}");
    }
    // The index has a language of its own, which nobody speaks from outside.
    for text in [
        "about:r*",
        "words : x",
        "NEAR(a b)",
        "a AND b OR NOT c",
        "^a",
        "{words}: \"x\"",
        "a' OR 1=1 --",
        "%%",
    ] {
        let answer = search(&ada, &[("q", text)]).await;
        assert!([200, 400].contains(&answer.status.as_u16()), "{text}: {answer:?}");
    }
    scene.assert_never_panicked();
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_go_on_where_the_last_one_ended() {
    let scene = Scene::start().await;
    let room = scene.admin.make_room("a room", &[]).await.unwrap();
    for n in 0..7 {
        scene.admin.post_message(&room, &format!("needle {n}")).await.unwrap();
    }
    let mut all: Vec<Value> = Vec::new();
    let mut cursor = None::<String>;
    for page in 0..3 {
        let mut query = vec![("q", "needle"), ("limit", "3")];
        query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let answer = search(&scene.admin, &query).await;
        all.extend(answer.body["data"].as_array().unwrap().iter().cloned());
        cursor = answer.body["nextCursor"].as_str().map(Into::into);
        assert_eq!(cursor.is_some(), page < 2, "{answer:?}");
        scene.admin.post_message(&room, "a needle that came later").await.unwrap();
    }
    assert_eq!(contents(&all), [6, 5, 4, 3, 2, 1, 0].map(|n| format!("needle {n}")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_word_of_a_foreign_room_is_never_found() {
    let scene = Scene::start().await;
    let (ada, bob) = (scene.person("ada").await, scene.person("bob").await);
    let common = scene.admin.make_room("common", &[&ada, &bob]).await.unwrap();
    let secret = ada.make_room("secret", &[&bob]).await.unwrap();
    let canary = "the canary sings at dawn";
    ada.post_message(&secret, canary).await.unwrap();
    ada.post_message(&common, "good morning").await.unwrap();
    for indexed in [false, true] {
        if indexed {
            has_indexed(&scene.admin, scene.data()).await;
        }
        assert_eq!(
            (found(&ada, "canary").await, found(&bob, "cana").await),
            (vec![canary.into()], vec![canary.into()])
        );
        for text in ["canary", "can", "\"canary sings\"", "sings dawn", "morning -canary", "canary* morning"]
        {
            let answer = search(&scene.admin, &[("q", text)]).await;
            let expected: &[&str] = if text.starts_with("morning") { &["good morning"] } else { &[] };
            assert_eq!(contents(answer.body["data"].as_array().unwrap()), expected, "a site admin, {text}");
            assert!(!answer.body.to_string().contains("canary"), "{answer:?}");
            assert_eq!(answer.body.get("nextCursor"), None, "{answer:?}");
        }
    }
    // Whoever is removed finds nothing of it from that moment on, and whoever comes finds all of it.
    let members = format!("/api/rooms/{secret}/members");
    ada.delete(&format!("{members}/{}", bob.user_id())).await.unwrap().data().unwrap();
    assert_eq!(found(&bob, "canary").await, [] as [String; 0]);
    assert_refused(&search(&bob, &[("q", "canary"), ("roomId", &secret)]).await, 404);
    ada.post(&members, json!({ "memberId": bob.user_id() })).await.unwrap().data().unwrap();
    assert_eq!(found(&bob, "canary").await, [canary]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_changed_or_deleted_leaves_the_search_and_the_file_at_once() {
    let mut scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let room = scene.admin.make_room("a room", &[&ada]).await.unwrap();
    let doomed = scene.admin.make_room("doomed", &[&ada]).await.unwrap();
    // Written in capitals, and in the index without: what lies in the file in small letters is the index.
    for text in ["QXQABLAUT", "QXQBORSCHT", "QXQCHUTNEY"] {
        ada.post_message(&room, text).await.unwrap();
    }
    ada.post_message(&doomed, "QXQDAIQUIRI").await.unwrap();
    has_indexed(&scene.admin, scene.data()).await;
    for text in ["QXQESCARGOT", "QXQFALAFEL"] {
        ada.post_message(&room, text).await.unwrap();
    }
    assert_eq!(found(&ada, "qxq").await.len(), 6);
    let said = ada.history(&room).await.unwrap();
    let path = |n: usize| format!("/api/messages/{}", said[n]["id"].as_str().unwrap());
    for n in [1, 3] {
        assert_eq!(ada.delete(&path(n)).await.unwrap().status, 200);
    }
    for n in [2, 4] {
        ada.put(&path(n), json!({ "content": format!("NOW{n}QX") })).await.unwrap().data().unwrap();
    }
    assert_eq!(scene.admin.delete(&format!("/api/rooms/{doomed}")).await.unwrap().status, 200);
    for indexed in [false, true] {
        if indexed {
            has_indexed(&scene.admin, scene.data()).await;
        }
        assert_eq!(found(&ada, "qxq").await, ["QXQABLAUT"]);
        assert_eq!(found(&ada, "now*").await, ["NOW4QX", "NOW2QX"]);
    }

    scene.hub.stop(TEST_TIMEOUT).await.unwrap();
    let bytes = std::fs::read(scene.data().join("parlor.db")).unwrap();
    for kept in ["QXQABLAUT", "ablaut", "now2qx", "QXQCHUTNEY"] {
        assert!(contains(&bytes, kept), "{kept} is in a row, in the index, or in the history of an edit");
    }
    for gone in ["BORSCHT", "DAIQUIRI", "ESCARGOT", "orscht", "hutney", "aiquiri", "scargot", "alafel"] {
        assert!(!contains(&bytes, gone), "{gone} is overwritten");
    }
}
