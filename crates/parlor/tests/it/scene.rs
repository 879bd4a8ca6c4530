//! Test fixture: a hub of its own for each test, its admin, more users, and helpers for sockets and raw HTTP.
//!
//! Shared by all tests of this folder. Protocol clients (`Client`, `Broker`, `Gateway`, `RestClient`) are in
//! `parlor_testkit`.

use std::path::Path;
use std::time::Duration;

use parlor_testkit::agentim::Client;
use parlor_testkit::hub::{Hub, HubCommand, Topology};
use parlor_testkit::rest::{RestClient, RestResponse};
use parlor_testkit::seed;
use parlor_testkit::socket::{Socket, SocketEvent, TEST_TIMEOUT};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub const PARLOR: &str = env!("CARGO_BIN_EXE_parlor");
/// Password of every user that the tests create; the admin has `parlor_testkit::hub::PASSWORD`.
pub const PASSWORD: &str = "Plain-sailing-9";

/// A running hub with its data directory, the command that restarts it, and its signed-in admin.
pub struct Scene {
    pub command: HubCommand,
    pub hub: Hub,
    pub admin: RestClient,
    pub data: TempDir,
}

/// A `parlor` command. It does not inherit the variables of random tests, which are no settings.
pub fn parlor_command() -> tokio::process::Command {
    let mut command = tokio::process::Command::new(PARLOR);
    command.env_remove(seed::SEED).env_remove(seed::ROUNDS);
    command
}

impl Scene {
    /// Starts a hub inside the test process, without rate limits.
    pub async fn start() -> Self {
        Self::start_with(|command| command).await
    }

    pub async fn with(settings: &[(&str, &str)]) -> Self {
        Self::start_with(|command| set(command, settings)).await
    }

    pub async fn start_with(change: impl FnOnce(HubCommand) -> HubCommand) -> Self {
        Self::on(Topology::InProcess, change).await
    }

    /// Starts the hub as a separate process, for tests of crashes, signals and the command line.
    pub async fn process() -> Self {
        Self::process_with(|command| command).await
    }

    pub async fn process_set(settings: &[(&str, &str)]) -> Self {
        Self::process_with(|command| set(command, settings)).await
    }

    pub async fn process_with(change: impl FnOnce(HubCommand) -> HubCommand) -> Self {
        Self::on(Topology::Process(PARLOR.into()), change).await
    }

    async fn on(topology: Topology, change: impl FnOnce(HubCommand) -> HubCommand) -> Self {
        let data = tempfile::tempdir().unwrap();
        let command = change(HubCommand::new(topology, data.path()));
        let hub = command.start().await.unwrap();
        let admin = hub.admin().await.unwrap();
        Self { command, hub, admin, data }
    }

    pub fn url(&self) -> &str {
        self.hub.url()
    }

    pub fn data(&self) -> &Path {
        self.data.path()
    }

    pub async fn person(&self, name: &str) -> RestClient {
        self.admin.make_user(name, PASSWORD).await.unwrap()
    }

    /// Creates a user whose agents may receive messages of external sources on these path patterns.
    pub async fn hearer(&self, name: &str, patterns: &[&str]) -> RestClient {
        let user = self.person(name).await;
        let path = format!("/api/users/{}", user.user_id());
        let changed = self.admin.put(&path, json!({ "hears": patterns })).await.unwrap().data().unwrap();
        assert_eq!(changed["hears"], json!(patterns));
        user
    }

    /// Moves the hub's clock forward. Timers on real time, such as connection timeouts, are not affected.
    pub fn advance(&self, by: Duration) {
        self.command.clock.advance(by);
    }

    /// Crashes the hub and starts it again on the same data. Tokens stay valid; the URL changes.
    pub async fn crash_and_restart(&mut self) {
        self.hub.crash().await.unwrap();
        self.assert_never_panicked();
        self.hub = self.command.start().await.unwrap();
        self.admin = self.admin.at(self.hub.url());
    }

    #[track_caller]
    pub fn assert_never_panicked(&self) {
        let log = self.hub.log();
        assert!(!log.contains("panicked"), "{log}");
    }

    /// Stops the hub and asserts that it shuts down within 10 seconds and never panicked.
    pub async fn ends_well(mut self) {
        self.hub.stop(Duration::from_secs(10)).await.unwrap();
        self.assert_never_panicked();
    }
}

fn set(command: HubCommand, settings: &[(&str, &str)]) -> HubCommand {
    settings.iter().fold(command, |command, (name, value)| command.env(name, value))
}

/// Connects a client of this user and joins the room from now on.
pub async fn following(user: &RestClient, room: &str) -> Client {
    let mut client = Client::connect(user).await.unwrap();
    client.join(room).await.unwrap();
    client
}

/// Waits for the next frame of this type and skips all others.
pub async fn next(client: &mut Client, kind: &str) -> Value {
    client.wait_for_type(kind).await.unwrap()
}

/// Waits for the next new message in any joined room.
pub async fn heard(client: &mut Client) -> Value {
    next(client, "server:new_message").await["message"].clone()
}

/// Returns all frames that the hub has queued for this client: those that arrive before the answer to a ping.
pub async fn so_far(client: &mut Client) -> Vec<Value> {
    let ts = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    client.send(&json!({ "type": "client:ping", "ts": ts })).await.unwrap();
    let mut frames = Vec::new();
    loop {
        let frame = client.frame(TEST_TIMEOUT).await.unwrap();
        if frame["type"] == "server:pong" && frame["ts"] == ts {
            return frames;
        }
        frames.push(frame);
    }
}

/// Sends a frame and asserts that the hub refuses it with this error code.
pub async fn refused(client: &mut Client, frame: Value, code: &str) -> Value {
    client.send(&frame).await.unwrap();
    let error = next(client, "server:error").await;
    assert_eq!(error["code"], code, "{frame:.200} got {error}");
    error
}

pub fn contents(frames: &[Value]) -> Vec<String> {
    frames.iter().map(|frame| frame["content"].as_str().unwrap().to_owned()).collect()
}

/// Asserts that the hub refuses this user's token on the client socket; returns the error message.
pub async fn auth_error(user: &RestClient) -> String {
    let mut client = Client::open(user.url()).await.unwrap();
    client.send(&json!({ "type": "client:auth", "token": user.token() })).await.unwrap();
    let result = next(&mut client, "server:auth_result").await;
    assert_eq!(result["ok"], false, "{result}");
    result["error"].as_str().unwrap().to_owned()
}

/// Response on a raw TCP connection.
#[derive(Debug)]
pub struct Bare {
    pub status: u16,
    pub head: String,
    pub body: String,
}

/// Writes these bytes to a TCP connection, so that a test controls every byte of the request, and reads the
/// response until the hub closes the connection.
pub async fn bare(url: &str, request: &[u8]) -> Bare {
    let mut stream = connect(url).await;
    stream.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    tokio::time::timeout(TEST_TIMEOUT, read)
        .await
        .expect("the hub answers and closes the connection before the timeout")
        .unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    Bare { status, head: head.to_owned(), body: body.to_owned() }
}

pub async fn connect(url: &str) -> TcpStream {
    TcpStream::connect(url.strip_prefix("http://").unwrap()).await.unwrap()
}

/// Sends a request whose body is this text, which may be malformed JSON.
pub async fn send_text(
    user: &RestClient,
    method: Method,
    path: &str,
    body: impl Into<reqwest::Body>,
) -> RestResponse {
    RestResponse::of(user.request(method, path).body(body)).await.unwrap()
}

#[track_caller]
pub fn assert_refused(answer: &RestResponse, status: u16) {
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(answer.body["ok"], false, "{answer:?}");
    assert!(answer.body["error"].as_str().is_some_and(|sentence| !sentence.is_empty()), "{answer:?}");
}

/// Creates an API key of this user with these scopes; returns its id and its secret.
pub async fn make_key(user: &RestClient, scopes: &[&str]) -> (String, String) {
    let body = json!({ "name": "a program", "scopes": scopes });
    let key = user.post("/api/keys", body).await.unwrap().data().unwrap();
    (key["id"].as_str().unwrap().to_owned(), key["key"].as_str().unwrap().to_owned())
}

/// Reads until the hub closes the connection; returns the received frames and the close code.
pub async fn until_closed(socket: &mut Socket) -> (Vec<Value>, u16) {
    let mut frames = Vec::new();
    loop {
        match socket.next(TEST_TIMEOUT).await.unwrap() {
            SocketEvent::Frame(frame) => frames.push(frame),
            SocketEvent::Closed(code) => return (frames, code),
        }
    }
}

/// Asserts that the hub sends `SESSION_REVOKED` and closes the connection with 1008.
pub async fn assert_revoked(socket: &mut Socket) {
    let error = socket.wait_for(TEST_TIMEOUT, |frame| frame["code"] == "SESSION_REVOKED").await;
    error.expect("the hub sends the reason before it closes the connection");
    assert_eq!(socket.closed(TEST_TIMEOUT).await.unwrap(), 1008);
}

/// Returns the concatenated contents of all files in a directory and its subdirectories.
pub fn bytes_in(directory: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            bytes.extend(bytes_in(&entry.path()));
        } else if kind.is_file() {
            bytes.extend(std::fs::read(entry.path()).unwrap());
        }
    }
    bytes
}

pub fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}
