//! A small client of the REST API for tests.

use anyhow::{Context, Result, ensure};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::time::Duration;

/// An HTTP client of a hub, signed in as a user or anonymous.
#[derive(Clone)]
pub struct RestClient {
    http: reqwest::Client,
    url: String,
    token: Option<String>,
    user_id: String,
}

/// Response of the hub. `body` is `Null` if the response was not JSON.
#[derive(Debug)]
pub struct RestResponse {
    pub status: StatusCode,
    pub headers: reqwest::header::HeaderMap,
    pub body: Value,
}

/// Returns a builder for an HTTP client that trusts only certificates that a test adds: loading those of the
/// system takes longer than most tests. It installs the hub's cryptography provider, because `reqwest` is
/// built without one. It reuses a connection only for a short time, because the hub closes idle connections
/// after ten seconds, and a request that meets the close fails.
pub fn http_client() -> reqwest::ClientBuilder {
    // Fails if another test in this process has installed the provider already.
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().tls_certs_only([]).pool_idle_timeout(Duration::from_secs(2))
}

impl RestClient {
    pub fn outsider(url: &str) -> Self {
        let http = http_client().build().expect("a client without certificates can be built");
        Self { http, url: url.to_owned(), token: None, user_id: String::new() }
    }

    pub async fn sign_in(url: &str, username: &str, password: &str) -> Result<Self> {
        let outsider = Self::outsider(url);
        let body = json!({ "username": username, "password": password });
        let data = outsider.post("/api/auth/login", body).await?.data()?;
        let token = text(&data, "/accessToken")?;
        Ok(Self { token: Some(token), user_id: text(&data, "/user/id")?, ..outsider })
    }

    /// Uses another HTTP client, for example one that trusts a test certificate.
    pub fn with_http(self, http: reqwest::Client) -> Self {
        Self { http, ..self }
    }

    /// Returns a copy of this client with another credential, for example an API key or a forged token.
    pub fn with_token(&self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self.clone() }
    }

    /// Returns a copy of this client for another URL, for example that of the hub after a restart.
    pub fn at(&self, url: &str) -> Self {
        Self { url: url.to_owned(), ..self.clone() }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn token(&self) -> &str {
        self.token.as_deref().unwrap_or_default()
    }

    pub fn user_id(&self) -> &str {
        &self.user_id
    }

    /// Returns a request builder, for other headers or bodies that are not JSON.
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.url));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    pub async fn get(&self, path: &str) -> Result<RestResponse> {
        RestResponse::of(self.request(Method::GET, path)).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Result<RestResponse> {
        RestResponse::of(self.request(Method::POST, path).json(&body)).await
    }

    pub async fn put(&self, path: &str, body: Value) -> Result<RestResponse> {
        RestResponse::of(self.request(Method::PUT, path).json(&body)).await
    }

    pub async fn delete(&self, path: &str) -> Result<RestResponse> {
        RestResponse::of(self.request(Method::DELETE, path)).await
    }

    /// Creates a user, as an admin, and signs in as this user.
    pub async fn make_user(&self, username: &str, password: &str) -> Result<RestClient> {
        let body = json!({ "username": username, "password": password });
        self.post("/api/users", body).await?.data()?;
        RestClient::sign_in(&self.url, username, password).await
    }

    /// Creates a room with the caller and these members. Returns its ID.
    pub async fn make_room(&self, name: &str, members: &[&RestClient]) -> Result<String> {
        let room = self.post("/api/rooms", json!({ "name": name })).await?.data()?;
        let room = text(&room, "/id")?;
        for member in members {
            let body = json!({ "memberId": member.user_id, "memberType": "user" });
            self.post(&format!("/api/rooms/{room}/members"), body).await?.data()?;
        }
        Ok(room)
    }

    pub async fn post_message(&self, room: &str, content: &str) -> Result<Value> {
        self.post(&format!("/api/rooms/{room}/messages"), json!({ "content": content })).await?.data()
    }

    /// Uploads a file as the web page does.
    pub async fn upload(&self, name: &str, content: &[u8]) -> Result<RestResponse> {
        self.send_form("/api/upload", form(&[("file", name, content)])).await
    }

    /// Posts a multipart body as given, so that a test controls every byte of it.
    pub async fn send_form(&self, path: &str, form: impl Into<reqwest::Body>) -> Result<RestResponse> {
        let kind = format!("multipart/form-data; boundary={BOUNDARY}");
        RestResponse::of(self.request(Method::POST, path).header("content-type", kind).body(form)).await
    }

    /// Returns the full history of a room, oldest message first.
    pub async fn history(&self, room: &str) -> Result<Vec<Value>> {
        let mut items = Vec::new();
        let mut after = "0".to_owned();
        loop {
            let page =
                self.get(&format!("/api/messages/rooms/{room}?limit=100&after={after}")).await?.data()?;
            let more = page["hasMore"].as_bool().context("hasMore")?;
            items.extend(page["items"].as_array().context("items")?.iter().cloned());
            if !more {
                return Ok(items);
            }
            let next = text(&page, "/nextCursor")?;
            ensure!(next != after, "the cursor {next} does not advance");
            after = next;
        }
    }

    pub async fn health(&self) -> Result<StatusCode> {
        Ok(self.get("/api/health").await?.status)
    }
}

const BOUNDARY: &str = "between-the-parts";

/// Encodes a multipart body. Each part is a field name, a file name and the content.
pub fn form(parts: &[(&str, &str, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, file, content) in parts {
        let head = format!("content-disposition: form-data; name=\"{name}\"; filename=\"{file}\"");
        body.extend(format!("--{BOUNDARY}\r\n{head}\r\n\r\n").into_bytes());
        body.extend_from_slice(content);
        body.extend(b"\r\n");
    }
    body.extend(format!("--{BOUNDARY}--\r\n").into_bytes());
    body
}

impl RestResponse {
    pub async fn of(request: reqwest::RequestBuilder) -> Result<Self> {
        let response = request.send().await?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = serde_json::from_slice(&response.bytes().await?).unwrap_or_default();
        Ok(Self { status, headers, body })
    }

    /// Returns `data` of a successful response; any other response is an error.
    pub fn data(self) -> Result<Value> {
        ensure!(
            self.status.is_success() && self.body["ok"] == true,
            "refused: {} {}",
            self.status,
            self.body
        );
        Ok(self.body["data"].clone())
    }
}

/// Returns the string, or the number as text, at a JSON pointer.
pub(crate) fn text(value: &Value, pointer: &str) -> Result<String> {
    match value.pointer(pointer) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Number(number)) => Ok(number.to_string()),
        _ => anyhow::bail!("no text at {pointer} in {value}"),
    }
}
