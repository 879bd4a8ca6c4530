//! Asks a hub one thing after the other, holds each answer against the document, and keeps what was seen.

use std::collections::BTreeSet;
use std::sync::Mutex;

use parlor_testkit::rest::{RestClient, RestResponse};
use reqwest::RequestBuilder;
use serde_json::Value;

use super::document::Document;

pub struct Tour {
    pub document: Document,
    seen: Mutex<BTreeSet<(String, u16)>>,
}

impl Tour {
    pub fn new(document: Document) -> Self {
        Self { document, seen: Mutex::default() }
    }

    pub fn seen(&self) -> BTreeSet<(String, u16)> {
        self.seen.lock().unwrap().clone()
    }

    /// Holds an answer against the document.
    #[track_caller]
    pub fn note(&self, operation: &str, answer: &RestResponse, asked: &str) {
        self.document.operation(operation).check(answer, asked);
        self.seen.lock().unwrap().insert((operation.to_owned(), answer.status.as_u16()));
    }

    /// Sends a request as it is, and expects this status.
    pub async fn send(&self, operation: &str, request: RequestBuilder, expected: u16) -> RestResponse {
        let answer = RestResponse::of(request).await.unwrap();
        self.note(operation, &answer, "");
        assert_eq!(answer.status, expected, "{operation}: {answer:?}");
        answer
    }

    /// Asks for `GET /api/rooms/{id}?…` with these ids in the path, and expects this status; returns the `data`.
    pub async fn ask(&self, who: &RestClient, what: &str, ids: &[&str], expected: u16) -> Value {
        self.tell(who, what, ids, Value::Null, expected).await
    }

    /// The same with a body.
    pub async fn tell(
        &self,
        who: &RestClient,
        what: &str,
        ids: &[&str],
        body: Value,
        expected: u16,
    ) -> Value {
        let (name, query) = what.split_once('?').unwrap_or((what, ""));
        let operation = self.document.operation(name);
        let path = format!("{}?{query}", operation.path_with(ids));
        let request = who.request(operation.method.clone(), &path);
        let request = if body.is_null() { request } else { request.json(&body) };
        self.send(name, request, expected).await.body["data"].take()
    }
}

/// The id of something that was made.
pub fn id(made: &Value) -> &str {
    made["id"].as_str().unwrap()
}
