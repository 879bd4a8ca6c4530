//! Uploaded files: upload, attachment to a message, download permissions, ranges, signed links, avatars, and
//! deletion with the last message that uses the content.

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

/// Uploads a file and returns its description.
pub async fn sent(user: &RestClient, name: &str, content: &[u8]) -> Value {
    user.upload(name, content).await.unwrap().data().unwrap()
}

/// Sends a request and returns status, headers and body.
pub async fn fetched(request: reqwest::RequestBuilder) -> (u16, HeaderMap, Vec<u8>) {
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    (status, headers, response.bytes().await.unwrap().to_vec())
}

pub async fn status(user: &RestClient, url: &str) -> u16 {
    fetched(user.request(Method::GET, url)).await.0
}

pub fn url(file: &Value) -> &str {
    file["url"].as_str().unwrap()
}

/// Posts a message with these files as attachments.
pub async fn share(user: &RestClient, room: &str, files: &[&Value]) -> Value {
    let ids: Vec<&Value> = files.iter().map(|file| &file["id"]).collect();
    let body = json!({ "content": "look", "attachmentIds": ids });
    user.post(&format!("/api/rooms/{room}/messages"), body).await.unwrap().data().unwrap()
}

/// Starts a chunked upload: sends the headers and the beginning of the file, but not its end.
pub async fn begin(user: &RestClient) -> TcpStream {
    let start = "--between-the-parts\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\nwords";
    let head = format!(
        "POST /api/upload HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {}\r\n\
         Content-Type: multipart/form-data; boundary=between-the-parts\r\nTransfer-Encoding: chunked\r\n\
         Expect: 100-continue\r\n\r\n\
         {:x}\r\n{start}\r\n",
        user.token(),
        start.len()
    );
    let mut stream = connect(user.url()).await;
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

/// Waits for `100 Continue`, which the hub sends when it starts to read the file.
pub async fn go_on(stream: &mut TcpStream) {
    let mut response = [0; 25];
    stream.read_exact(&mut response).await.unwrap();
    assert_eq!(&response, b"HTTP/1.1 100 Continue\r\n\r\n");
}

/// Closes the sending side of an incomplete request and waits until the hub has closed the connection.
pub async fn ended(mut stream: TcpStream) {
    stream.shutdown().await.unwrap();
    let mut rest = Vec::new();
    let read = tokio::time::timeout(TEST_TIMEOUT, stream.read_to_end(&mut rest)).await;
    read.expect("the hub closes the connection in time").unwrap();
}

/// Paths of all files below the uploads directory.
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
async fn attachments_are_part_of_the_message_and_readable_by_members_of_the_room() {
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
    assert_eq!(
        status(&bob, url(&notes)).await,
        404,
        "a file without a message is readable only by its uploader"
    );
    assert_eq!(status(&ada, url(&notes)).await, 200);

    let mut frame = message(&room, "look", "k1");
    frame["attachmentIds"] = json!([notes["id"], picture["id"]]);
    client.send(&frame).await.unwrap();
    let ack = next(&mut client, "server:message_ack").await;
    let received = heard(&mut other).await;
    assert_eq!(received["attachments"], json!([notes, picture]));
    let history = bob.history(&room).await.unwrap();
    assert_eq!(history[0]["attachments"], json!([notes, picture]));
    client.send(&frame).await.unwrap();
    assert_eq!(next(&mut client, "server:message_ack").await, ack, "a retry returns the same message");
    let mut reused = message(&room, "look", "k2");
    reused["attachmentIds"] = json!([picture["id"]]);
    client.send(&reused).await.unwrap();
    let refused = next(&mut client, "server:error").await;
    assert_eq!(refused["code"], "INVALID_MESSAGE", "a file belongs to exactly one message: {refused}");
    let updated = format!("/api/messages/{}", received["id"].as_str().unwrap());
    let updated = ada.put(&updated, json!({ "content": "see" })).await.unwrap().data().unwrap();
    assert_eq!(updated["attachments"], json!([notes, picture]), "an edit keeps the attachments");

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
    for user in [&eve, &scene.admin] {
        let foreign = fetched(user.request(Method::GET, url(&picture))).await;
        let unknown = fetched(user.request(Method::GET, "/uploads/unknown")).await;
        assert_eq!((foreign.0, &foreign.2), (404, &unknown.2), "a foreign file looks nonexistent");
    }
    assert_eq!(status(&RestClient::outsider(scene.url()), url(&picture)).await, 401);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_receive_attachments_and_read_them_with_an_api_key() {
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
async fn a_forwarded_message_has_its_own_files_and_files_of_cleared_messages_are_unreadable() {
    let scene = Scene::start().await;
    let (ada, bob) = (scene.person("ada").await, scene.person("bob").await);
    let (source, target) =
        (ada.make_room("source", &[]).await.unwrap(), ada.make_room("target", &[&bob]).await.unwrap());
    let file = sent(&ada, "cat.png", PNG).await;
    let original = share(&ada, &source, &[&file]).await["id"].as_str().unwrap().to_owned();
    let body = json!({ "targetRoomId": target });
    let forwarded =
        ada.post(&format!("/api/messages/{original}/forward"), body).await.unwrap().data().unwrap();
    let copy = &forwarded["attachments"][0];
    assert_ne!(copy["id"], file["id"]);
    assert_eq!((&copy["filename"], &copy["size"]), (&file["filename"], &file["size"]));
    assert_eq!((status(&bob, url(&file)).await, status(&bob, url(copy)).await), (404, 200));
    ada.delete(&format!("/api/messages/{original}")).await.unwrap().data().unwrap();
    assert_eq!(status(&ada, url(&file)).await, 404);
    assert_eq!(
        status(&bob, url(copy)).await,
        200,
        "the forwarded file survives the deletion of the original"
    );
    bob.put(&format!("/api/rooms/{target}/clear"), json!({})).await.unwrap().data().unwrap();
    assert_eq!((status(&bob, url(copy)).await, status(&ada, url(copy)).await), (404, 200));
    assert_eq!(kept(scene.data()).len(), 1);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn range_and_head_requests_are_supported() {
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
async fn a_signed_link_opens_one_file_while_its_creator_has_access() {
    let scene = Scene::start().await;
    let bob = scene.person("bob").await;
    let room = scene.admin.make_room("kitchen", &[&bob]).await.unwrap();
    let file = sent(&scene.admin, "cat.png", PNG).await;
    let other = sent(&scene.admin, "cat2.png", PNG).await;
    share(&scene.admin, &room, &[&file, &other]).await;
    let anonymous = RestClient::outsider(scene.url());
    let link_path = format!("/api/upload/{}/link", file["id"].as_str().unwrap());
    assert_refused(&anonymous.post(&link_path, json!({})).await.unwrap(), 401);
    assert_refused(&scene.person("eve").await.post(&link_path, json!({})).await.unwrap(), 404);
    let (_, key) = make_key(&bob, &["read"]).await;
    let mut links = Vec::new();
    for creator in [&bob, &bob.with_token(&key)] {
        let created = creator.post(&link_path, json!({})).await.unwrap().data().unwrap();
        assert!(created["expiresAt"].as_str().is_some(), "{created}");
        let link = created["url"].as_str().unwrap().to_owned();
        let (status, _, content) = fetched(anonymous.request(Method::GET, &link)).await;
        assert_eq!((status, content.as_slice()), (200, PNG));
        let other_file = link.replace(url(&file), url(&other));
        assert_eq!(self::status(&anonymous, &other_file).await, 404, "the link is valid for this file only");
        assert_eq!(self::status(&anonymous, &format!("{link}A")).await, 404);
        assert_eq!(
            self::status(&anonymous, &link.replace("sig=", "token=")).await,
            401,
            "a link signature is not a token"
        );
        links.push(link);
    }
    let by_token = format!("{}?token={}", url(&file), bob.token());
    assert_eq!(status(&anonymous, &by_token).await, 200);
    assert_eq!(
        status(&anonymous, &format!("{}?token={key}", url(&file))).await,
        401,
        "an API key is not accepted in a URL"
    );
    let rooms = anonymous.get(&format!("/api/rooms?token={}", bob.token())).await.unwrap();
    assert_refused(&rooms, 401);

    scene
        .admin
        .delete(&format!("/api/rooms/{room}/members/{}", bob.user_id()))
        .await
        .unwrap()
        .data()
        .unwrap();
    for link in links.iter().chain([&by_token]) {
        assert_eq!(status(&anonymous, link).await, 404, "a link of a user without access is invalid");
    }
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_avatar_is_a_small_image_readable_by_all_users() {
    let scene = Scene::with(&[("PARLOR_MAX_AVATAR_SIZE", "2000")]).await;
    let (ada, bob) = (scene.person("ada").await, scene.person("bob").await);
    let upload_avatar = |content: &[u8]| {
        let form = form(&[("file", "me.png", content)]);
        let ada = ada.clone();
        async move { ada.send_form("/api/upload/avatar", form).await.unwrap() }
    };
    let avatar = upload_avatar(PNG).await.data().unwrap();
    assert_eq!(
        (avatar["avatarUrl"].as_str(), &avatar["mimeType"]),
        (Some(url(&avatar)), &json!("image/png"))
    );
    assert_eq!(status(&bob, url(&avatar)).await, 200);
    assert_eq!(status(&RestClient::outsider(scene.url()), url(&avatar)).await, 401);
    assert_refused(&upload_avatar(b"%PDF-1.7").await, 400);
    assert_refused(&upload_avatar(&[PNG, &[0; 2000]].concat()).await, 413);
    let room = ada.make_room("kitchen", &[]).await.unwrap();
    let body = json!({ "content": "me", "attachmentIds": [avatar["id"]] });
    let refused = ada.post(&format!("/api/rooms/{room}/messages"), body).await.unwrap();
    assert_refused(&refused, 400);
    assert_eq!(kept(scene.data()).len(), 1, "a refused upload is not stored");

    let set_avatar = |url: Option<&str>| {
        let (ada, body) = (ada.clone(), json!({ "avatarUrl": url }));
        async move { ada.put("/api/users/me", body).await.unwrap().data().unwrap() }
    };
    assert_eq!(set_avatar(Some(url(&avatar))).await["avatarUrl"], avatar["url"]);
    let [unused, newest] = [upload_avatar(b"GIF89a1").await, upload_avatar(b"GIF89a2").await]
        .map(|response| response.data().unwrap());
    let statuses = [
        status(&bob, url(&avatar)).await,
        status(&bob, url(&unused)).await,
        status(&bob, url(&newest)).await,
    ];
    assert_eq!(statuses, [200, 404, 200], "only the current avatar and the newest upload are readable");
    set_avatar(Some(url(&newest))).await;
    assert_eq!((status(&bob, url(&avatar)).await, status(&bob, url(&newest)).await), (404, 200));
    set_avatar(None).await;
    assert_eq!(status(&bob, url(&newest)).await, 404, "a removed avatar is not readable");
    scene.ends_well().await;
}

/// Waits for the log line with which the hub reports the deletion of this file.
async fn wait_until_removed(scene: &mut Scene, file: &Path) {
    let name = file.file_name().unwrap().to_str().unwrap().to_owned();
    let is_removal =
        |line: &str| (line.contains("removed an unreferenced file") && line.contains(&name)).then_some(());
    scene.hub.logged(is_removal).await.unwrap();
    assert!(!file.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_deleted_with_the_last_message_that_uses_its_content() {
    let mut scene = Scene::with(&[("PARLOR_LOG_LEVEL", "debug")]).await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let mut shared = Vec::new();
    for name in ["one.png", "two.png"] {
        let file = sent(&scene.admin, name, PNG).await;
        shared.push((share(&scene.admin, &room, &[&file]).await, file));
    }
    let files = kept(scene.data());
    assert_eq!(files.len(), 1, "equal content is stored once: {files:?}");
    let message_path = |message: &Value| format!("/api/messages/{}", message["id"].as_str().unwrap());
    scene.admin.delete(&message_path(&shared[0].0)).await.unwrap();
    assert_eq!(status(&scene.admin, url(&shared[0].1)).await, 404);
    assert_eq!(status(&scene.admin, url(&shared[1].1)).await, 200, "the other message still has the file");
    scene.admin.delete(&message_path(&shared[1].0)).await.unwrap();
    wait_until_removed(&mut scene, &files[0]).await;

    let file = sent(&scene.admin, "three.txt", b"in a room that ends").await;
    share(&scene.admin, &room, &[&file]).await;
    let files = kept(scene.data());
    scene.admin.delete(&format!("/api/rooms/{room}")).await.unwrap();
    assert_eq!(status(&scene.admin, url(&file)).await, 404);
    wait_until_removed(&mut scene, &files[0]).await;

    let bob = scene.person("bob").await;
    sent(&bob, "four.txt", b"of somebody who leaves").await;
    let files = kept(scene.data());
    scene.admin.delete(&format!("/api/users/{}", bob.user_id())).await.unwrap();
    wait_until_removed(&mut scene, &files[0]).await;
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_orphaned_by_a_crash_are_deleted_on_the_next_start() {
    let mut scene = Scene::with(&[("PARLOR_LOG_LEVEL", "debug")]).await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let file = sent(&scene.admin, "cat.png", PNG).await;
    share(&scene.admin, &room, &[&file]).await;
    let needed = kept(scene.data());
    scene.hub.crash().await.unwrap();
    // A stored file without a database row, and an incomplete upload.
    let stray = scene.data().join("uploads/ff").join("f".repeat(64));
    std::fs::create_dir_all(stray.parent().unwrap()).unwrap();
    std::fs::write(&stray, "kept, and never acknowledged").unwrap();
    std::fs::write(scene.data().join("uploads/.incoming/7"), "half of it").unwrap();
    scene.crash_and_restart().await;
    wait_until_removed(&mut scene, &stray).await;
    assert_eq!(kept(scene.data()), needed);
    let (status, _, content) = fetched(scene.admin.request(Method::GET, url(&file))).await;
    assert_eq!((status, content.as_slice()), (200, PNG));
    scene.ends_well().await;
}
