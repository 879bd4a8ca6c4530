//! Files: sent, put on a message, read by those who see it, and gone with it.

use parlor_testkit::agentim::message;
use parlor_testkit::broker::Broker;
use parlor_testkit::rest::{RestClient, form};
use parlor_testkit::socket::TEST_TIMEOUT;
use reqwest::Method;
use reqwest::header::{HeaderMap, RANGE};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::scene::{Scene, assert_refused, connect, following, heard, make_key, next};

pub const PNG: &[u8] = b"\x89PNG\r\n\x1a\nnot a whole picture";
const NOTES: &str = "grüße, this goes on the message";

/// Sends a file and gives what the hub says about it.
pub async fn sent(person: &RestClient, name: &str, content: &[u8]) -> Value {
    person.upload(name, content).await.unwrap().data().unwrap()
}

/// Status, headers and content of what is at an address of the hub.
pub async fn fetched(request: reqwest::RequestBuilder) -> (u16, HeaderMap, Vec<u8>) {
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    (status, headers, response.bytes().await.unwrap().to_vec())
}

pub async fn status(person: &RestClient, url: &str) -> u16 {
    fetched(person.request(Method::GET, url)).await.0
}

pub fn url(file: &Value) -> &str {
    file["url"].as_str().unwrap()
}

/// Puts files on a message.
pub async fn share(person: &RestClient, room: &str, files: &[&Value]) -> Value {
    let ids: Vec<&Value> = files.iter().map(|file| &file["id"]).collect();
    let body = json!({ "content": "look", "attachmentIds": ids });
    person.post(&format!("/api/rooms/{room}/messages"), body).await.unwrap().data().unwrap()
}

/// A request whose file has begun, written out in chunks.
pub async fn begin(person: &RestClient) -> TcpStream {
    let start = "--between-the-parts\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\nwords";
    let head = format!(
        "POST /api/upload HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {}\r\n\
         Content-Type: multipart/form-data; boundary=between-the-parts\r\nTransfer-Encoding: chunked\r\n\
         Expect: 100-continue\r\n\r\n\
         {:x}\r\n{start}\r\n",
        person.token(),
        start.len()
    );
    let mut stream = connect(person.url()).await;
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

/// Waits until the hub begins to read the file: then it says so.
pub async fn go_on(stream: &mut TcpStream) {
    let mut told = [0; 25];
    stream.read_exact(&mut told).await.unwrap();
    assert_eq!(&told, b"HTTP/1.1 100 Continue\r\n\r\n");
}

/// Ends a request in the middle, and waits until the hub has ended it too.
pub async fn ended(mut stream: TcpStream) {
    stream.shutdown().await.unwrap();
    let mut rest = Vec::new();
    let read = tokio::time::timeout(TEST_TIMEOUT, stream.read_to_end(&mut rest)).await;
    read.expect("the connection is ended").unwrap();
}

/// What the hub keeps of files, wherever it puts them.
pub fn kept(data: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![data.join("uploads")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_on_a_message_is_told_with_it_everywhere_and_read_by_those_who_see_it() {
    let scene = Scene::start().await;
    let (ada, bob, eve) = (scene.person("ada").await, scene.person("bob").await, scene.person("eve").await);
    let room = ada.make_room("kitchen", &[&bob]).await.unwrap();
    let mut client = following(&ada, &room).await;
    let mut other = following(&bob, &room).await;
    let picture = sent(&ada, "cat.png", PNG).await;
    let notes = sent(&ada, "notes é.md", NOTES.as_bytes()).await;
    let id = notes["id"].as_str().unwrap();
    let expected = json!({
        "id": id, "filename": "notes é.md", "mimeType": "text/markdown", "size": NOTES.len(), "url": format!("/uploads/{id}"),
    });
    assert_eq!(notes, expected);
    assert_eq!(status(&bob, url(&notes)).await, 404, "nobody else's before it is on a message");
    assert_eq!(status(&ada, url(&notes)).await, 200);

    let mut frame = message(&room, "look", "k1");
    frame["attachmentIds"] = json!([notes["id"], picture["id"]]);
    client.send(&frame).await.unwrap();
    let ack = next(&mut client, "server:message_ack").await;
    let told = heard(&mut other).await;
    assert_eq!(told["attachments"], json!([notes, picture]));
    let history = bob.history(&room).await.unwrap();
    assert_eq!(history[0]["attachments"], json!([notes, picture]));
    client.send(&frame).await.unwrap();
    assert_eq!(next(&mut client, "server:message_ack").await, ack, "a retry is the same message");
    let mut again = message(&room, "look", "k2");
    again["attachmentIds"] = json!([picture["id"]]);
    client.send(&again).await.unwrap();
    let refused = next(&mut client, "server:error").await;
    assert_eq!(refused["code"], "INVALID_MESSAGE", "on one message and on no other: {refused}");
    let edited = format!("/api/messages/{}", told["id"].as_str().unwrap());
    let edited = ada.put(&edited, json!({ "content": "see" })).await.unwrap().data().unwrap();
    assert_eq!(edited["attachments"], json!([notes, picture]), "an edit is about the text");

    let (code, headers, content) = fetched(bob.request(Method::GET, url(&notes))).await;
    assert_eq!((code, content.as_slice()), (200, NOTES.as_bytes()));
    assert_eq!(headers["content-type"], "text/markdown; charset=utf-8");
    let name = "attachment; filename=\"notes _.md\"; filename*=UTF-8''notes%20%C3%A9.md";
    assert_eq!(headers["content-disposition"], name);
    let (code, headers, content) =
        fetched(bob.request(Method::GET, &format!("{}/cat.png", url(&picture)))).await;
    assert_eq!((code, content.as_slice()), (200, PNG));
    assert_eq!(headers["content-type"], "image/png");
    assert!(headers["content-disposition"].to_str().unwrap().starts_with("inline;"));
    for stranger in [&eve, &scene.admin] {
        let foreign = fetched(stranger.request(Method::GET, url(&picture))).await;
        let unknown = fetched(stranger.request(Method::GET, "/uploads/unknown")).await;
        assert_eq!((foreign.0, &foreign.2), (404, &unknown.2), "both look alike");
    }
    assert_eq!(status(&RestClient::outsider(scene.url()), url(&picture)).await, 401);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_told_of_files_too_and_its_program_reads_them_with_a_key() {
    let scene = Scene::start().await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let mut broker = Broker::connect(scene.url(), scene.admin.token()).await.unwrap();
    broker.create_agent("coder", &["room/**"]).await.unwrap();
    let body = json!({ "memberId": "coder", "memberType": "agent" });
    scene.admin.post(&format!("/api/rooms/{room}/members"), body).await.unwrap().data().unwrap();
    let file = sent(&scene.admin, "cat.png", PNG).await;
    share(&scene.admin, &room, &[&file]).await;
    let mail = broker.receive("coder").await.unwrap();
    assert_eq!(mail[0]["payload"]["attachments"], json!([file]));
    scene.admin.post_message(&room, "no file").await.unwrap();
    let mail = broker.receive("coder").await.unwrap();
    assert!(mail[0]["payload"].get("attachments").is_none(), "{mail:?}");
    let (_, key) = make_key(&scene.admin, &["read"]).await;
    assert_eq!(status(&scene.admin.with_token(&key), url(&file)).await, 200);
    let (_, key) = make_key(&scene.admin, &["write"]).await;
    assert_eq!(status(&scene.admin.with_token(&key), url(&file)).await, 403);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_passed_on_has_files_of_its_own_and_what_was_cleared_away_is_not_read() {
    let scene = Scene::start().await;
    let (ada, bob) = (scene.person("ada").await, scene.person("bob").await);
    let (here, there) =
        (ada.make_room("here", &[]).await.unwrap(), ada.make_room("there", &[&bob]).await.unwrap());
    let file = sent(&ada, "cat.png", PNG).await;
    let first = share(&ada, &here, &[&file]).await["id"].as_str().unwrap().to_owned();
    let body = json!({ "targetRoomId": there });
    let passed = ada.post(&format!("/api/messages/{first}/forward"), body).await.unwrap().data().unwrap();
    let copy = &passed["attachments"][0];
    assert_ne!(copy["id"], file["id"]);
    assert_eq!((&copy["filename"], &copy["size"]), (&file["filename"], &file["size"]));
    assert_eq!((status(&bob, url(&file)).await, status(&bob, url(copy)).await), (404, 200));
    ada.delete(&format!("/api/messages/{first}")).await.unwrap().data().unwrap();
    assert_eq!(status(&ada, url(&file)).await, 404);
    assert_eq!(status(&bob, url(copy)).await, 200, "it outlasts the first");
    bob.put(&format!("/api/rooms/{there}/clear"), json!({})).await.unwrap().data().unwrap();
    assert_eq!((status(&bob, url(copy)).await, status(&ada, url(copy)).await), (404, 200));
    assert_eq!(kept(scene.data()).len(), 1);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_a_file_can_be_read_and_its_head_alone() {
    let scene = Scene::start().await;
    let content: Vec<u8> = b"%PDF-1.7\n".iter().copied().chain((0..300_000u32).map(|n| n as u8)).collect();
    let file = sent(&scene.admin, "book.pdf", &content).await;
    let get = |range: &str| fetched(scene.admin.request(Method::GET, url(&file)).header(RANGE, range));
    for (range, part) in
        [("bytes=0-8", 0..9), ("bytes=100000-299999", 100_000..300_000), ("bytes=-5", 300_004..300_009)]
    {
        let (status, headers, bytes) = get(range).await;
        assert_eq!((status, &bytes[..]), (206, &content[part.clone()]));
        assert_eq!(headers["content-range"], format!("bytes {}-{}/300009", part.start, part.end - 1));
        assert_eq!(headers["content-length"], part.len().to_string());
    }
    let (status, headers, _) = get("bytes=300009-").await;
    assert_eq!((status, headers["content-range"].to_str().unwrap()), (416, "bytes */300009"));
    let (status, _, bytes) = get("bytes=0-1,5-6").await;
    assert_eq!((status, bytes), (200, content));
    let (status, headers, bytes) = fetched(scene.admin.request(Method::HEAD, url(&file))).await;
    assert_eq!((status, bytes.len(), headers["content-length"].to_str().unwrap()), (200, 0, "300009"));
    assert_eq!(headers["accept-ranges"], "bytes");
    assert!(headers["content-disposition"].to_str().unwrap().starts_with("attachment;"));
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_opens_one_file_for_as_long_as_its_maker_may_see_it() {
    let scene = Scene::start().await;
    let bob = scene.person("bob").await;
    let room = scene.admin.make_room("kitchen", &[&bob]).await.unwrap();
    let file = sent(&scene.admin, "cat.png", PNG).await;
    let other = sent(&scene.admin, "cat2.png", PNG).await;
    share(&scene.admin, &room, &[&file, &other]).await;
    let outsider = RestClient::outsider(scene.url());
    let make = format!("/api/upload/{}/link", file["id"].as_str().unwrap());
    assert_refused(&outsider.post(&make, json!({})).await.unwrap(), 401);
    assert_refused(&scene.person("eve").await.post(&make, json!({})).await.unwrap(), 404);
    let (_, key) = make_key(&bob, &["read"]).await;
    let mut links = Vec::new();
    for maker in [&bob, &bob.with_token(&key)] {
        let made = maker.post(&make, json!({})).await.unwrap().data().unwrap();
        assert!(made["expiresAt"].as_str().is_some(), "{made}");
        let link = made["url"].as_str().unwrap().to_owned();
        let (status, _, content) = fetched(outsider.request(Method::GET, &link)).await;
        assert_eq!((status, content.as_slice()), (200, PNG));
        let elsewhere = link.replace(url(&file), url(&other));
        assert_eq!(self::status(&outsider, &elsewhere).await, 404, "for this file only");
        assert_eq!(self::status(&outsider, &format!("{link}A")).await, 404);
        assert_eq!(self::status(&outsider, &link.replace("sig=", "token=")).await, 401, "it is no token");
        links.push(link);
    }
    let by_token = format!("{}?token={}", url(&file), bob.token());
    assert_eq!(status(&outsider, &by_token).await, 200);
    assert_eq!(
        status(&outsider, &format!("{}?token={key}", url(&file))).await,
        401,
        "keys belong in no address"
    );
    let rooms = outsider.get(&format!("/api/rooms?token={}", bob.token())).await.unwrap();
    assert_refused(&rooms, 401);

    scene
        .admin
        .delete(&format!("/api/rooms/{room}/members/{}", bob.user_id()))
        .await
        .unwrap()
        .data()
        .unwrap();
    for link in links.iter().chain([&by_token]) {
        assert_eq!(status(&outsider, link).await, 404, "who may not see it any more opens it for nobody");
    }
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_of_oneself_is_small_an_image_and_seen_by_everyone_here() {
    let scene = Scene::with(&[("PARLOR_MAX_AVATAR_SIZE", "2000")]).await;
    let (ada, bob) = (scene.person("ada").await, scene.person("bob").await);
    let send = |content: &[u8]| {
        let form = form(&[("file", "me.png", content)]);
        let ada = ada.clone();
        async move { ada.send_form("/api/upload/avatar", form).await.unwrap() }
    };
    let me = send(PNG).await.data().unwrap();
    assert_eq!((me["avatarUrl"].as_str(), &me["mimeType"]), (Some(url(&me)), &json!("image/png")));
    assert_eq!(status(&bob, url(&me)).await, 200);
    assert_eq!(status(&RestClient::outsider(scene.url()), url(&me)).await, 401);
    assert_refused(&send(b"%PDF-1.7").await, 400);
    assert_refused(&send(&[PNG, &[0; 2000]].concat()).await, 413);
    let room = ada.make_room("kitchen", &[]).await.unwrap();
    let body = json!({ "content": "me", "attachmentIds": [me["id"]] });
    let refused = ada.post(&format!("/api/rooms/{room}/messages"), body).await.unwrap();
    assert_refused(&refused, 400);
    assert_eq!(kept(scene.data()).len(), 1, "what was refused is not kept");

    let show = |url: Option<&str>| {
        let (ada, body) = (ada.clone(), json!({ "avatarUrl": url }));
        async move { ada.put("/api/users/me", body).await.unwrap().data().unwrap() }
    };
    assert_eq!(show(Some(url(&me))).await["avatarUrl"], me["url"]);
    let [unused, newest] = [send(b"GIF89a1").await, send(b"GIF89a2").await].map(|sent| sent.data().unwrap());
    let seen =
        [status(&bob, url(&me)).await, status(&bob, url(&unused)).await, status(&bob, url(&newest)).await];
    assert_eq!(seen, [200, 404, 200], "the one that is shown and the newest");
    show(Some(url(&newest))).await;
    assert_eq!((status(&bob, url(&me)).await, status(&bob, url(&newest)).await), (404, 200));
    show(None).await;
    assert_eq!(status(&bob, url(&newest)).await, 404, "taken away is gone");
    scene.ends_well().await;
}

/// The hub says so when it has removed a file.
async fn removed(scene: &mut Scene, file: &Path) {
    let name = file.file_name().unwrap().to_str().unwrap().to_owned();
    let told = |line: &str| (line.contains("removed a file") && line.contains(&name)).then_some(());
    scene.hub.logged(told).await.unwrap();
    assert!(!file.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_goes_with_the_last_message_that_has_its_content() {
    let mut scene = Scene::with(&[("PARLOR_LOG_LEVEL", "debug")]).await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let mut said = Vec::new();
    for name in ["one.png", "two.png"] {
        let file = sent(&scene.admin, name, PNG).await;
        said.push((share(&scene.admin, &room, &[&file]).await, file));
    }
    let files = kept(scene.data());
    assert_eq!(files.len(), 1, "the same content once: {files:?}");
    let delete = |message: &Value| format!("/api/messages/{}", message["id"].as_str().unwrap());
    scene.admin.delete(&delete(&said[0].0)).await.unwrap();
    assert_eq!(status(&scene.admin, url(&said[0].1)).await, 404);
    assert_eq!(status(&scene.admin, url(&said[1].1)).await, 200, "the other has it still");
    scene.admin.delete(&delete(&said[1].0)).await.unwrap();
    removed(&mut scene, &files[0]).await;

    let file = sent(&scene.admin, "three.txt", b"in a room that ends").await;
    share(&scene.admin, &room, &[&file]).await;
    let files = kept(scene.data());
    scene.admin.delete(&format!("/api/rooms/{room}")).await.unwrap();
    assert_eq!(status(&scene.admin, url(&file)).await, 404);
    removed(&mut scene, &files[0]).await;

    let bob = scene.person("bob").await;
    sent(&bob, "four.txt", b"of somebody who leaves").await;
    let files = kept(scene.data());
    scene.admin.delete(&format!("/api/users/{}", bob.user_id())).await.unwrap();
    removed(&mut scene, &files[0]).await;
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_crash_left_behind_is_gone_after_the_next_start_and_nothing_else_is() {
    let mut scene = Scene::with(&[("PARLOR_LOG_LEVEL", "debug")]).await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let file = sent(&scene.admin, "cat.png", PNG).await;
    share(&scene.admin, &room, &[&file]).await;
    let needed = kept(scene.data());
    scene.hub.crash().await.unwrap();
    // A file without a row, and one that was still coming in.
    let stray = scene.data().join("uploads/ff").join("f".repeat(64));
    std::fs::create_dir_all(stray.parent().unwrap()).unwrap();
    std::fs::write(&stray, "kept, and never acknowledged").unwrap();
    std::fs::write(scene.data().join("uploads/.incoming/7"), "half of it").unwrap();
    scene.crash_and_restart().await;
    removed(&mut scene, &stray).await;
    assert_eq!(kept(scene.data()), needed);
    let (status, _, content) = fetched(scene.admin.request(Method::GET, url(&file))).await;
    assert_eq!((status, content.as_slice()), (200, PNG));
    scene.ends_well().await;
}
