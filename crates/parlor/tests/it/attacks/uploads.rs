//! Hostile uploads: files that would execute in the hub's origin, disguised types, malformed forms, disk
//! exhaustion.

use parlor_testkit::rest::{RestClient, RestResponse, form};
use reqwest::Method;
use serde_json::json;
use tokio::io::AsyncWriteExt;

use crate::files::{PNG, begin, ended, fetched, go_on, kept, sent, share, status, url};
use crate::scene::{Scene, assert_refused, bare};

pub const SCRIPT: &str = "<script>document.title='taken over';fetch('/taken-over')</script>";

async fn upload(user: &RestClient, name: &str, content: &[u8]) -> RestResponse {
    user.upload(name, content).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn executable_and_unknown_file_types_are_refused() {
    let scene = Scene::start().await;
    let html = format!("<!DOCTYPE html><html>{SCRIPT}</html>");
    let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"alert(1)\"/>";
    for (name, content) in [
        ("page.html", html.as_bytes()),
        ("page.txt", html.as_bytes()),
        ("page.png", html.as_bytes()),
        ("words.html", b"plain words"),
        ("words.HtM", b"plain words"),
        ("image.svg", svg.as_bytes()),
        ("image.png", svg.as_bytes()),
        ("image.txt", &[b"\xef\xbb\xbf\n ", svg.as_bytes()].concat()),
        ("image.txt", format!("<?xml version=\"1.0\"?>{svg}").as_bytes()),
        ("gif.svg", b"GIF89a"),
        ("tool.exe", b"MZ\x90\0\x03\0\0\0"),
        ("tool", b"\x7fELF\x02\x01\x01\0"),
        ("song.mp3", b"ID3\x03\0\0\0\0\0\x21"),
        ("notes.txt", b"a\0b"),
        ("notes.txt", b"\xff\xfea\0b\0"),
        ("empty.txt", b""),
    ] {
        let answer = upload(&scene.admin, name, content).await;
        assert_refused(&answer, 415);
    }
    assert_eq!(kept(scene.data()), [] as [std::path::PathBuf; 0], "no refused file is stored");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_polyglot_file_is_served_as_its_harmless_type() {
    let scene = Scene::start().await;
    for (name, content, kind, inline) in [
        ("a.js", format!("GIF89a/*{SCRIPT}*/=1;alert(1)"), "image/gif", true),
        ("a.png", format!("GIF89a{SCRIPT}"), "image/gif", true),
        ("a.txt", format!("%PDF-1.7\n<html>{SCRIPT}</html>"), "application/pdf", false),
        ("a.txt", format!("just words {SCRIPT}"), "text/plain; charset=utf-8", false),
        ("a.md", format!("<p>{SCRIPT}"), "text/markdown; charset=utf-8", false),
        ("a.jar", format!("PK\u{3}\u{4}{SCRIPT}"), "application/zip", false),
    ] {
        let file = sent(&scene.admin, name, content.as_bytes()).await;
        let (status, headers, served) = fetched(scene.admin.request(Method::GET, url(&file))).await;
        assert_eq!((status, served.as_slice()), (200, content.as_bytes()), "{name}");
        assert_eq!(headers["content-type"], kind, "{name}");
        let disposition = headers["content-disposition"].to_str().unwrap();
        assert_eq!(disposition.starts_with("inline;"), inline, "{name}: {disposition}");
        for (header, value) in [
            ("x-content-type-options", "nosniff"),
            ("content-security-policy", "sandbox; default-src 'none'"),
            ("cross-origin-resource-policy", "same-origin"),
            ("x-frame-options", "DENY"),
            ("referrer-policy", "no-referrer"),
        ] {
            assert_eq!(headers[header], value, "{name}");
        }
        assert!(headers["cache-control"].to_str().unwrap().contains("private"), "{name}");
    }
    let jpeg = sent(&scene.admin, "a.jpg", &[b"\xff\xd8\xff\xe0", SCRIPT.as_bytes()].concat()).await;
    let (_, headers, _) = fetched(scene.admin.request(Method::GET, url(&jpeg))).await;
    assert_eq!(headers["content-type"], "image/jpeg");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn file_names_are_sanitised_and_cannot_break_headers_or_paths() {
    let scene = Scene::start().await;
    for (name, expected) in [
        ("../../../../tmp/escaped.txt", "escaped.txt"),
        ("..\\..\\windows\\escaped.txt", "escaped.txt"),
        ("/etc/passwd", "passwd"),
        ("..", "file"),
        ("", "file"),
        ("a\u{202e}txt.exe", "atxt.exe"),
        ("a\u{1}\u{1b}[2J\u{7f}.txt", "a[2J.txt"),
        ("a%0d%0aSet-Cookie: x=1.txt", "a%0d%0aSet-Cookie: x=1.txt"),
        ("a;b=c,d.txt", "a;b=c,d.txt"),
    ] {
        let answer = upload(&scene.admin, name, b"words").await;
        if answer.status == 400 {
            // Headers cannot contain control characters: the hub refuses the whole form.
            assert!(name.chars().any(char::is_control), "{name:?}: {answer:?}");
            continue;
        }
        let file = answer.data().unwrap();
        assert_eq!(file["filename"], expected, "{name:?}");
        let (status, headers, _) = fetched(scene.admin.request(Method::GET, url(&file))).await;
        assert_eq!(status, 200);
        assert!(headers.get("set-cookie").is_none());
        assert_eq!(headers["content-disposition"].to_str().unwrap().matches('"').count(), 2, "{name:?}");
    }
    let long = "x".repeat(5000);
    let file = sent(&scene.admin, &format!("{long}.txt"), b"words").await;
    assert_eq!(file["filename"].as_str().unwrap().len(), 200);
    for path in
        ["/uploads/..", "/uploads/%2e%2e%2fparlor.db", "/uploads/../parlor.db", "/uploads/a/b/c", "/uploads/"]
    {
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
            scene.admin.token()
        );
        let answer = bare(scene.url(), request.as_bytes()).await;
        assert_eq!(answer.status, 404, "{path}: {answer:?}");
    }
    assert_eq!(
        kept(scene.data()).len(),
        1,
        "equal contents are stored once, under a name that no client chose"
    );
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_or_already_used_uploads_cannot_be_attached() {
    let scene = Scene::start().await;
    let (ada, bob) = (scene.person("ada").await, scene.person("bob").await);
    let room = ada.make_room("kitchen", &[&bob]).await.unwrap();
    let path = format!("/api/rooms/{room}/messages");
    let (adas, bobs) = (sent(&ada, "cat.png", PNG).await, sent(&bob, "dog.png", PNG).await);
    let mine = sent(&bob, "own.png", PNG).await;
    let used = sent(&bob, "used.png", PNG).await;
    share(&bob, &room, &[&used]).await;
    let many: Vec<_> = (0..21).map(|n| json!(format!("id-{n}"))).collect();
    for ids in [
        json!([adas["id"]]),
        json!([mine["id"], adas["id"]]),
        json!([used["id"]]),
        json!([mine["id"], mine["id"]]),
        json!(["unknown"]),
        json!(["../x"]),
        json!([""]),
        json!(many),
        json!("text"),
        json!([5]),
    ] {
        let body = json!({ "content": "look", "attachmentIds": ids });
        assert_refused(&bob.post(&path, body).await.unwrap(), 400);
    }
    assert_eq!(bob.history(&room).await.unwrap().len(), 1, "no refused message was stored");
    assert_eq!(status(&bob, url(&adas)).await, 404);
    let shared = share(&bob, &room, &[&mine, &bobs]).await;
    assert_eq!(
        shared["attachments"].as_array().unwrap().len(),
        2,
        "refused messages left the attachments unused: {shared}"
    );
    let blank_text = json!({ "content": "  ", "attachmentIds": [adas["id"]] });
    assert_eq!(
        ada.post(&path, blank_text).await.unwrap().status,
        201,
        "a message with an attachment needs no text"
    );
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_messages_with_the_same_upload_yield_one_message() {
    let scene = Scene::start().await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let file = sent(&scene.admin, "cat.png", PNG).await;
    let body = json!({ "content": "look", "attachmentIds": [file["id"]] });
    let path = format!("/api/rooms/{room}/messages");
    let (first, second) = tokio::join!(scene.admin.post(&path, body.clone()), scene.admin.post(&path, body));
    let mut statuses = [first.unwrap().status.as_u16(), second.unwrap().status.as_u16()];
    statuses.sort();
    assert_eq!(statuses, [201, 400]);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_above_the_size_limit_are_refused_and_not_stored() {
    let scene = Scene::start().await;
    let limit = 10 * 1024 * 1024;
    let file = |size: usize| [PNG, &vec![7; size - PNG.len()]].concat();
    let fits = sent(&scene.admin, "fits.png", &file(limit)).await;
    assert_eq!(fits["size"], limit);
    for size in [limit + 1, 20 * 1024 * 1024] {
        let answer = upload(&scene.admin, "large.png", &file(size)).await;
        assert_refused(&answer, 413);
        assert_eq!(answer.headers["connection"], "close");
    }
    assert_eq!(kept(scene.data()).len(), 1);

    // An endless body with chunked encoding, whose length is never declared.
    let mut stream = begin(&scene.admin).await;
    let mut written = Ok(());
    let chunk = [&b"10000\r\n"[..], &[7; 0x10000], b"\r\n"].concat();
    let mut sent = 0;
    while written.is_ok() && sent < 200 * 1024 * 1024 {
        written = stream.write_all(&chunk).await;
        sent += chunk.len();
    }
    assert!(written.is_err(), "the hub still reads after {sent} bytes");
    assert_eq!(kept(scene.data()).len(), 1);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_forms_are_refused_and_store_nothing() {
    let scene = Scene::start().await;
    let whole = form(&[("file", "a.txt", b"words")]);
    let text = String::from_utf8(whole.clone()).unwrap();
    let two = form(&[("file", "a.txt", b"words"), ("file", "b.txt", b"words")]);
    let extra_field = form(&[("file", "a.txt", b"words"), ("more", "", b"words")]);
    let huge_header = text.replace("filename=\"", &format!("filename=\"{}", "x".repeat(300_000)));
    let many_headers =
        text.replace("\r\n\r\nwords", &format!("{}\r\n\r\nwords", "\r\nx-more: 1".repeat(100)));
    for (case, body) in [
        ("an empty body", Vec::new()),
        ("no boundary", b"words".to_vec()),
        ("no boundary at all", vec![b'-'; 300_000]),
        ("no end", whole[..whole.len() - 6].to_vec()),
        ("no content", whole[..60].to_vec()),
        ("no file", form(&[])),
        ("another name", form(&[("upload", "a.txt", b"words")])),
        ("two files", two),
        ("an extra field", extra_field),
        ("a huge header", huge_header.into_bytes()),
        ("many headers", many_headers.into_bytes()),
        ("a broken header", text.replace("content-disposition:", "content\0disposition").into_bytes()),
    ] {
        let answer = scene.admin.send_form("/api/upload", body).await.unwrap();
        assert!(matches!(answer.status.as_u16(), 400 | 413), "{case}: {answer:?}");
        assert_refused(&answer, answer.status.as_u16());
    }
    for kind in [
        "",
        "application/json",
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/mixed; boundary=b",
    ] {
        let request = scene.admin.request(Method::POST, "/api/upload").header("content-type", kind);
        let answer = RestResponse::of(request.body(whole.clone())).await.unwrap();
        assert!(matches!(answer.status.as_u16(), 400 | 415), "{kind}: {answer:?}");
    }
    let compressed = scene.admin.request(Method::POST, "/api/upload").header("content-encoding", "gzip");
    assert_refused(&RestResponse::of(compressed.body(whole)).await.unwrap(), 415);

    // An upload that is aborted leaves no file behind.
    ended(begin(&scene.admin).await).await;
    assert_eq!(kept(scene.data()), [] as [std::path::PathBuf; 0]);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unattached_and_concurrent_uploads_are_limited_per_user() {
    let scene = Scene::start().await;
    let ada = scene.person("ada").await;
    for n in 0..50 {
        sent(&ada, "a.txt", format!("words {n}").as_bytes()).await;
    }
    let refused = upload(&ada, "a.txt", b"one more").await;
    assert_refused(&refused, 429);
    assert_eq!(kept(scene.data()).len(), 50, "the refused file is not stored");
    sent(&scene.person("bob").await, "a.txt", b"another person's").await;

    let mut open = Vec::new();
    for _ in 0..3 {
        let mut stream = begin(&scene.admin).await;
        go_on(&mut stream).await;
        open.push(stream);
    }
    assert_refused(&upload(&scene.admin, "a.txt", b"words").await, 429);
    ended(open.pop().unwrap()).await;
    sent(&scene.admin, "a.txt", b"words").await;
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signed_out_user_reads_no_files_and_tokens_in_urls_are_not_logged() {
    let scene = Scene::with(&[("PARLOR_LOG_LEVEL", "trace")]).await;
    let bob = scene.person("bob").await;
    let room = scene.admin.make_room("kitchen", &[&bob]).await.unwrap();
    let file = sent(&scene.admin, "cat.png", PNG).await;
    share(&scene.admin, &room, &[&file]).await;
    let outsider = RestClient::outsider(scene.url());
    let by_token = format!("{}?token={}", url(&file), bob.token());
    let link = format!("/api/upload/{}/link", file["id"].as_str().unwrap());
    let link = bob.post(&link, json!({})).await.unwrap().data().unwrap();
    let link = link["url"].as_str().unwrap();
    assert_eq!((status(&outsider, &by_token).await, status(&outsider, link).await), (200, 200));
    bob.post("/api/auth/logout", json!({})).await.unwrap();
    assert_eq!((status(&outsider, &by_token).await, status(&outsider, link).await), (401, 401));
    let log = scene.hub.log();
    assert!(log.contains("/uploads/"), "requests are logged: {log}");
    for secret in [bob.token(), link.split_once("sig=").unwrap().1, scene.admin.token()] {
        assert!(!log.contains(secret), "{log}");
    }
    scene.ends_well().await;
}
