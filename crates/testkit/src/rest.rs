//! A small client of the REST interface, for tests: says what it wants, shows what came.

use anyhow::{Context, Result, ensure};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

/// Somebody who talks to a hub over HTTP, signed in or not.
#[derive(Clone)]
pub struct RestClient {
    http: reqwest::Client,
    url: String,
    token: Option<String>,
    user_id: String,
}

/// What the hub answered; `body` is `Null` when it was not JSON.
#[derive(Debug)]
pub struct RestResponse {
    pub status: StatusCode,
    pub headers: reqwest::header::HeaderMap,
    pub body: Value,
}

/// An HTTP client that trusts no certificate but those a test adds: reading those of the system takes longer than most
/// tests. `reqwest` is built without a cryptography provider of its own, so this installs that of the hub.
pub fn http_client() -> reqwest::ClientBuilder {
    // Fails when another test of this process has installed it already.
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().tls_certs_only([])
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

    /// Speaks HTTP in another way, for example with a certificate of its own.
    pub fn with_http(self, http: reqwest::Client) -> Self {
        Self { http, ..self }
    }

    /// The same person or program with another credential, for example an API key or a forged token.
    pub fn with_token(&self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self.clone() }
    }

    /// The same person with the same token at another address: the hub after a restart.
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

    /// For what the methods below do not offer: other headers, bodies that are not JSON.
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

    /// Makes a user, as an admin, and signs them in.
    pub async fn make_user(&self, username: &str, password: &str) -> Result<RestClient> {
        let body = json!({ "username": username, "password": password });
        self.post("/api/users", body).await?.data()?;
        RestClient::sign_in(&self.url, username, password).await
    }

    /// Makes a room with these people in it besides the caller; returns its id.
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

    /// Sends a file, as a page does.
    pub async fn upload(&self, name: &str, content: &[u8]) -> Result<RestResponse> {
        self.send_form("/api/upload", form(&[("file", name, content)])).await
    }

    /// A form as it is written, so that a test decides over every byte of it.
    pub async fn send_form(&self, path: &str, form: impl Into<reqwest::Body>) -> Result<RestResponse> {
        let kind = format!("multipart/form-data; boundary={BOUNDARY}");
        RestResponse::of(self.request(Method::POST, path).header("content-type", kind).body(form)).await
    }

    /// The whole history of a room, oldest first.
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

/// The parts of a form, each with its name, the name of its file, and its content.
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

    /// The `data` of a success.
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

/// A string, or a number as text, at a JSON pointer.
pub(crate) fn text(value: &Value, pointer: &str) -> Result<String> {
    match value.pointer(pointer) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Number(number)) => Ok(number.to_string()),
        _ => anyhow::bail!("no text at {pointer} in {value}"),
    }
}
