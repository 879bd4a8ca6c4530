//! Paging of `/api/messages/rooms/{id}`: backwards by `cursor` and forwards by `after`, without gaps or
//! duplicates while other users post.

use parlor_testkit::agentim::Client;
use parlor_testkit::rest::RestClient;
use serde_json::{Value, json};

use crate::scene::{Scene, assert_refused};

/// Creates a room with `count` messages: "0", "1", ….
async fn room_with_messages(scene: &Scene, count: usize) -> String {
    let room = scene.admin.make_room("a room", &[]).await.unwrap();
    let mut client = Client::connect(&scene.admin).await.unwrap();
    for n in 0..count {
        client.say(&room, &n.to_string(), &format!("c{n}")).await.unwrap();
    }
    let last = format!("c{}", count - 1);
    let acked =
        |frame: &Value| frame["type"] == "server:message_ack" && frame["clientMessageId"] == last.as_str();
    client.wait_for(parlor_testkit::socket::TEST_TIMEOUT, acked).await.unwrap();
    room
}

async fn page(user: &RestClient, room: &str, query: &str) -> Value {
    user.get(&format!("/api/messages/rooms/{room}?{query}")).await.unwrap().data().unwrap()
}

fn texts(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|item| item["content"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn paging_backwards_returns_every_message_once_while_others_post() {
    let scene = Scene::start().await;
    let room = room_with_messages(&scene, 53).await;
    let (mut seen, mut query) = (Vec::new(), "limit=10".to_owned());
    loop {
        let page = page(&scene.admin, &room, &query).await;
        seen.extend(texts(&page).into_iter().map(str::to_owned));
        scene.admin.post_message(&room, "posted while paging").await.unwrap();
        if page["hasMore"] == false {
            assert!(page.get("nextCursor").is_none(), "the oldest page has no cursor: {page}");
            break;
        }
        assert_eq!(texts(&page).len(), 10);
        query = format!("limit=10&cursor={}", page["nextCursor"].as_str().unwrap());
    }
    let expected: Vec<String> = (0..53).rev().map(|n| n.to_string()).collect();
    assert_eq!(seen, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn paging_forwards_has_no_gaps_while_others_post() {
    let scene = Scene::start().await;
    let room = room_with_messages(&scene, 120).await;
    let (url, admin, busy_room) = (scene.url().to_owned(), scene.admin.clone(), room.clone());
    let posting = tokio::spawn(async move {
        let writer = admin.at(&url);
        for n in 120..170 {
            writer.post_message(&busy_room, &n.to_string()).await.unwrap();
        }
    });
    let (mut seen, mut after) = (Vec::new(), "0".to_owned());
    while seen.len() < 170 {
        let page = page(&scene.admin, &room, &format!("limit=7&after={after}")).await;
        seen.extend(texts(&page).into_iter().map(str::to_owned));
        assert!(
            page["hasMore"] == false || texts(&page).len() == 7,
            "a page before the last is full: {page}"
        );
        if let Some(next) = page["nextCursor"].as_str() {
            after = next.to_owned();
        }
    }
    posting.await.unwrap();
    let expected: Vec<String> = (0..170).map(|n| n.to_string()).collect();
    assert_eq!(seen, expected);
    let end = page(&scene.admin, &room, &format!("after={after}")).await;
    assert_eq!((texts(&end).len(), &end["hasMore"]), (0, &json!(false)));
    let items = scene.admin.history(&room).await.unwrap();
    let seqs: Vec<u64> = items.iter().map(|item| item["seq"].as_u64().unwrap()).collect();
    assert!(seqs.windows(2).all(|pair| pair[0] < pair[1]), "{seqs:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_timestamp_returns_all_later_messages() {
    let scene = Scene::start().await;
    let room = room_with_messages(&scene, 9).await;
    let items = scene.admin.history(&room).await.unwrap();
    for (index, item) in items.iter().enumerate() {
        let at = item["createdAt"].as_str().unwrap();
        // `after` is exclusive: messages with the same timestamp are left out.
        let expected: Vec<&str> = items[index..]
            .iter()
            .filter(|later| later["createdAt"].as_str().unwrap() > at)
            .map(|later| later["content"].as_str().unwrap())
            .collect();
        let page = page(&scene.admin, &room, &format!("after={at}")).await;
        assert_eq!(texts(&page), expected, "after {at}");
    }
    let all = page(&scene.admin, &room, "after=2020-01-01T00:00:00%2B02:00&limit=4").await;
    assert_eq!((texts(&all), &all["hasMore"]), (vec!["0", "1", "2", "3"], &json!(true)));
    let rest = page(&scene.admin, &room, &format!("after={}", all["nextCursor"].as_str().unwrap())).await;
    assert_eq!(texts(&rest), ["4", "5", "6", "7", "8"], "the next cursor is a position");
    assert_eq!(texts(&page(&scene.admin, &room, "after=2999-01-01T00:00:00Z").await).len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_position_of_another_epoch_requires_a_resync_and_a_malformed_one_is_refused() {
    let scene = Scene::start().await;
    let room = room_with_messages(&scene, 3).await;
    let path = format!("/api/messages/rooms/{room}");
    let first = page(&scene.admin, &room, "after=0&limit=1").await;
    let (epoch, _) = first["nextCursor"].as_str().unwrap().split_once('-').unwrap();
    let other = format!("{:08x}", u32::from_str_radix(epoch, 16).unwrap() ^ 1);
    for name in ["after", "cursor"] {
        let answer = scene.admin.get(&format!("{path}?{name}={other}-1")).await.unwrap();
        assert_refused(&answer, 410);
        assert_eq!(answer.body["code"], "RESYNC");
        assert!(answer.body["position"].as_str().unwrap().starts_with(epoch), "{answer:?}");
    }
    for query in [
        "after=x",
        "cursor=x",
        "after=",
        "after=-1",
        "cursor=2020-01-01T00:00:00Z",
        "after=0&cursor=0",
        "limit=x",
    ] {
        assert_refused(&scene.admin.get(&format!("{path}?{query}")).await.unwrap(), 400);
    }
    for query in
        ["after=18446744073709551615", "cursor=18446744073709551615", "limit=18446744073709551615", "limit=0"]
    {
        assert_eq!(scene.admin.get(&format!("{path}?{query}")).await.unwrap().status, 200, "{query}");
    }
    assert_eq!(texts(&page(&scene.admin, &room, "cursor=18446744073709551615").await), ["2", "1", "0"]);
    assert_eq!(texts(&page(&scene.admin, &room, "limit=100000").await).len(), 3);
}
