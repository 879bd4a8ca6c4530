//! Sends requests to a hub, validates each response against the document, and records which statuses
//! occurred.

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

    /// Validates a response against the document and records its status.
    #[track_caller]
    pub fn record(&self, operation: &str, response: &RestResponse, request: &str) {
        self.document.operation(operation).check(response, request);
        self.seen.lock().unwrap().insert((operation.to_owned(), response.status.as_u16()));
    }

    /// Sends a prepared request and expects this status.
    pub async fn send(&self, operation: &str, request: RequestBuilder, expected: u16) -> RestResponse {
        let response = RestResponse::of(request).await.unwrap();
        self.record(operation, &response, "");
        assert_eq!(response.status, expected, "{operation}: {response:?}");
        response
    }

    /// Calls an operation such as `GET /api/rooms/{id}?…` without a body and returns the `data` of the
    /// response. `ids` replace the placeholders of the path; panics on another status than `expected`.
    pub async fn call(
        &self,
        client: &RestClient,
        operation_and_query: &str,
        ids: &[&str],
        expected: u16,
    ) -> Value {
        self.call_with(client, operation_and_query, ids, Value::Null, expected).await
    }

    /// Like [`Self::call`], with a JSON body.
    pub async fn call_with(
        &self,
        client: &RestClient,
        operation_and_query: &str,
        ids: &[&str],
        body: Value,
        expected: u16,
    ) -> Value {
        let (name, query) = operation_and_query.split_once('?').unwrap_or((operation_and_query, ""));
        let operation = self.document.operation(name);
        let path = format!("{}?{query}", operation.path_with(ids));
        let request = client.request(operation.method.clone(), &path);
        let request = if body.is_null() { request } else { request.json(&body) };
        self.send(name, request, expected).await.body["data"].take()
    }
}

/// The `id` of a created object.
pub fn id(created: &Value) -> &str {
    created["id"].as_str().unwrap()
}
