//! `/api/messages/search`: matches, snippets, filters and paging, limited to rooms of the caller. Deleted
//! text leaves the index and the database file.

use std::path::Path;
use std::time::Instant;

use parlor_testkit::agentim::Client;
use parlor_testkit::rest::{RestClient, RestResponse};
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::{Value, json};

use crate::scene::{Scene, assert_refused, contains, contents, make_key};

async fn search(user: &RestClient, query: &[(&str, &str)]) -> RestResponse {
    let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
    user.get(&format!("/api/messages/search?{query}")).await.unwrap()
}

async fn search_contents(user: &RestClient, text: &str) -> Vec<String> {
    let answer = search(user, &[("q", text)]).await;
    assert_eq!((answer.status.as_u16(), &answer.body["partial"]), (200, &json!(false)), "{answer:?}");
    contents(answer.body["data"].as_array().unwrap())
}

/// Posts 1000 messages, which makes the hub index all earlier messages, and waits until they are indexed.
async fn wait_until_indexed(user: &RestClient, data: &Path) {
    let room = user.make_room("hay", &[]).await.unwrap();
    let mut client = Client::connect(user).await.unwrap();
    for n in 0..1000 {
        client.say(&room, &format!("hay {n}"), &format!("{room} {n}")).await.unwrap();
    }
    let last = format!("{room} 999");
    client.wait_for(TEST_TIMEOUT, |frame| frame["clientMessageId"] == last.as_str()).await.unwrap();
    let database = rusqlite::Connection::open(data.join("parlor.db")).unwrap();
    let start = Instant::now();
    let query_number = |query| database.query_row(query, [], |row| row.get::<_, i64>(0)).unwrap();
    while query_number("SELECT value FROM meta WHERE key = 'indexed'")
        < query_number("SELECT max(seq) - 999 FROM log")
    {
        assert!(start.elapsed() < TEST_TIMEOUT, "the index does not catch up");
        assert_eq!(user.health().await.unwrap(), 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn search_returns_a_snippet_with_highlights_and_applies_filters() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let answer = search(&ada, &[("q", "anything")]).await;
    assert_eq!(
        answer.body,
        json!({ "ok": true, "data": [], "partial": false }),
        "a user without rooms gets an empty result"
    );

    let room = scene.admin.make_room("a room", &[&ada]).await.unwrap();
    let message = ada.post_message(&room, "🎉 The Café opens, <b>today</b>").await.unwrap();
    scene.admin.post_message(&room, "which cafe?").await.unwrap();
    let answer = search(&ada, &[("q", "cafe today")]).await;
    let hit = &answer.body["data"][0];
    assert_eq!(
        (&hit["id"], &hit["content"], &hit["roomId"]),
        (&message["id"], &message["content"], &json!(room))
    );
    assert_eq!(hit["snippet"], "🎉 The Café opens, <b>today</b>");
    assert_eq!(hit["highlights"], json!([{ "start": 7, "end": 11 }, { "start": 22, "end": 27 }]));
    assert_eq!(answer.body["data"].as_array().unwrap().len(), 1);
    assert_eq!(search_contents(&ada, "caf").await.len(), 2);

    let (_, key) = make_key(&ada, &["read"]).await;
    assert_eq!(search_contents(&ada.with_token(&key), "\"opens today\"").await, [] as [String; 0]);
    assert_eq!(search_contents(&ada.with_token(&key), "\"b today b\"").await.len(), 1);
    let (_, write_key) = make_key(&ada, &["write"]).await;
    assert_refused(&search(&ada.with_token(&write_key), &[("q", "cafe")]).await, 403);
    assert_refused(&search(&RestClient::outsider(scene.url()), &[("q", "cafe")]).await, 401);

    let count_with_filter = async |name: &str, value: &str| {
        let answer = search(&ada, &[("q", "cafe"), (name, value)]).await;
        contents(answer.body["data"].as_array().unwrap_or_else(|| panic!("{name}={value}: {answer:?}"))).len()
    };
    assert_eq!(count_with_filter("roomId", &room).await, 2);
    assert_eq!(count_with_filter("senderId", ada.user_id()).await, 1);
    assert_eq!(
        (count_with_filter("senderType", "user").await, count_with_filter("senderType", "agent").await),
        (2, 0)
    );
    assert_eq!(
        (count_with_filter("type", "text").await, count_with_filter("type", "agent_response").await),
        (2, 0)
    );
    let at = message["createdAt"].as_str().unwrap();
    assert_eq!((count_with_filter("dateTo", at).await, count_with_filter("dateFrom", at).await), (1, 2));
    let date = &at[..10];
    assert_eq!(
        (count_with_filter("dateFrom", date).await, count_with_filter("dateFrom", "2999-01-01").await),
        (2, 0)
    );
    assert_eq!(count_with_filter("dateTo", "2999-12-31T00:00:00+02:00").await, 2);
    assert_eq!(
        (
            count_with_filter("limit", "1").await,
            count_with_filter("limit", "0").await,
            count_with_filter("limit", "9999").await
        ),
        (1, 1, 2)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_search_is_refused_with_a_readable_error() {
    let scene = Scene::start().await;
    let foreign = scene.admin.make_room("foreign", &[]).await.unwrap();
    let ada = scene.person("ada").await;
    let too_long = "x".repeat(501);
    let too_many_terms = "a b ".repeat(40);
    for text in ["", "a", "  ", "\"\"", "\"open", "-without", "!?", "*", "a* b", &too_long, &too_many_terms] {
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
    // The query language of the full-text index (FTS5) is not exposed: its operators are plain text or
    // refused.
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
async fn search_pages_continue_at_the_cursor_despite_new_messages() {
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
async fn search_never_returns_messages_of_foreign_rooms() {
    let scene = Scene::start().await;
    let (ada, bob) = (scene.person("ada").await, scene.person("bob").await);
    let common = scene.admin.make_room("common", &[&ada, &bob]).await.unwrap();
    let secret = ada.make_room("secret", &[&bob]).await.unwrap();
    let canary = "the canary sings at dawn";
    ada.post_message(&secret, canary).await.unwrap();
    ada.post_message(&common, "good morning").await.unwrap();
    for indexed in [false, true] {
        if indexed {
            wait_until_indexed(&scene.admin, scene.data()).await;
        }
        assert_eq!(
            (search_contents(&ada, "canary").await, search_contents(&bob, "cana").await),
            (vec![canary.into()], vec![canary.into()])
        );
        for text in ["canary", "can", "\"canary sings\"", "sings dawn", "morning -canary", "canary* morning"]
        {
            let answer = search(&scene.admin, &[("q", text)]).await;
            let expected: &[&str] = if text.starts_with("morning") { &["good morning"] } else { &[] };
            assert_eq!(
                contents(answer.body["data"].as_array().unwrap()),
                expected,
                "search of a site admin for {text}"
            );
            assert!(!answer.body.to_string().contains("canary"), "{answer:?}");
            assert_eq!(answer.body.get("nextCursor"), None, "{answer:?}");
        }
    }
    // A removed member finds nothing of the room at once; a new member finds its whole history.
    let members = format!("/api/rooms/{secret}/members");
    ada.delete(&format!("{members}/{}", bob.user_id())).await.unwrap().data().unwrap();
    assert_eq!(search_contents(&bob, "canary").await, [] as [String; 0]);
    assert_refused(&search(&bob, &[("q", "canary"), ("roomId", &secret)]).await, 404);
    ada.post(&members, json!({ "memberId": bob.user_id() })).await.unwrap().data().unwrap();
    assert_eq!(search_contents(&bob, "canary").await, [canary]);
}

#[tokio::test(flavor = "multi_thread")]
async fn edited_and_deleted_text_leaves_the_search_and_the_database_file_at_once() {
    let mut scene = Scene::start().await;
    let ada = scene.person("ada").await;
    let room = scene.admin.make_room("a room", &[&ada]).await.unwrap();
    let deleted_room = scene.admin.make_room("doomed", &[&ada]).await.unwrap();
    // Messages are upper case and index terms lower case, so that both are distinguishable in the database
    // file.
    for text in ["QXQABLAUT", "QXQBORSCHT", "QXQCHUTNEY"] {
        ada.post_message(&room, text).await.unwrap();
    }
    ada.post_message(&deleted_room, "QXQDAIQUIRI").await.unwrap();
    wait_until_indexed(&scene.admin, scene.data()).await;
    for text in ["QXQESCARGOT", "QXQFALAFEL"] {
        ada.post_message(&room, text).await.unwrap();
    }
    assert_eq!(search_contents(&ada, "qxq").await.len(), 6);
    let messages = ada.history(&room).await.unwrap();
    let path = |n: usize| format!("/api/messages/{}", messages[n]["id"].as_str().unwrap());
    for n in [1, 3] {
        assert_eq!(ada.delete(&path(n)).await.unwrap().status, 200);
    }
    for n in [2, 4] {
        ada.put(&path(n), json!({ "content": format!("NOW{n}QX") })).await.unwrap().data().unwrap();
    }
    assert_eq!(scene.admin.delete(&format!("/api/rooms/{deleted_room}")).await.unwrap().status, 200);
    for indexed in [false, true] {
        if indexed {
            wait_until_indexed(&scene.admin, scene.data()).await;
        }
        assert_eq!(search_contents(&ada, "qxq").await, ["QXQABLAUT"]);
        assert_eq!(search_contents(&ada, "now*").await, ["NOW4QX", "NOW2QX"]);
    }

    scene.hub.stop(TEST_TIMEOUT).await.unwrap();
    let bytes = std::fs::read(scene.data().join("parlor.db")).unwrap();
    for stored in ["QXQABLAUT", "ablaut", "now2qx", "QXQCHUTNEY"] {
        assert!(contains(&bytes, stored), "{stored} is in a row, in the index, or in the history of an edit");
    }
    for erased in ["BORSCHT", "DAIQUIRI", "ESCARGOT", "orscht", "hutney", "aiquiri", "scargot", "alafel"] {
        assert!(!contains(&bytes, erased), "{erased} is overwritten");
    }
}
