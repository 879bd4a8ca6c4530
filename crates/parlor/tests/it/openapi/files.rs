//! Upload operations, which take a multipart form instead of JSON.

use futures_util::future::join_all;
use parlor_testkit::rest::{RestClient, RestResponse, form};
use reqwest::{Method, RequestBuilder};

use super::tour::{Tour, id};
use crate::files::{PNG, begin, ended, go_on};
use crate::scene::{Scene, bare};

const OPERATIONS: [&str; 2] = ["POST /api/upload", "POST /api/upload/avatar"];
const FORM: &str = "multipart/form-data; boundary=between-the-parts";

fn upload_request(user: &RestClient, operation: &str, form: Vec<u8>) -> RequestBuilder {
    let path = operation.split_once(' ').unwrap().1;
    user.request(Method::POST, path).header("content-type", FORM).body(form)
}

pub async fn all(tour: &Tour, scene: &Scene) {
    let file = |content: &[u8]| form(&[("file", "cat.png", content)]);
    // A user of their own, because `stalled_uploads` occupies the admin's upload slots.
    let ada = scene.person("ada-of-the-files").await;
    for operation in OPERATIONS {
        let send = |form, expected| tour.send(operation, upload_request(&ada, operation, form), expected);
        let uploaded = send(file(PNG), 200).await.body["data"].take();
        tour.call(&ada, "POST /api/upload/{id}/link", &[id(&uploaded)], 200).await;
        send(b"nonsense".to_vec(), 400).await;
        send(file(&[PNG, &vec![0; 10 * 1024 * 1024]].concat()), 413).await;
        send(file(b"\0"), 415).await;
    }
    let mut open = Vec::new();
    for _ in 0..3 {
        let mut stream = begin(&ada).await;
        go_on(&mut stream).await;
        open.push(stream);
    }
    for operation in OPERATIONS {
        tour.send(operation, upload_request(&ada, operation, file(PNG)), 429).await;
    }
    join_all(open.into_iter().map(ended)).await;
}

/// Sends the beginning of a form and nothing more, and expects a timeout (408).
pub async fn stalled_uploads(tour: &Tour, admin: &RestClient) {
    join_all(OPERATIONS.map(async |operation| {
        let head = format!(
            "{operation} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Type: {FORM}\r\n\
             Content-Length: 10\r\n\r\n-",
            admin.token()
        );
        let answer = bare(admin.url(), head.as_bytes()).await;
        let body = serde_json::from_str(&answer.body).unwrap_or_default();
        let status = answer.status.try_into().unwrap();
        tour.record(operation, &RestResponse { status, headers: Default::default(), body }, &answer.head);
        assert_eq!(status, 408, "{operation} {answer:?}");
    }))
    .await;
}
