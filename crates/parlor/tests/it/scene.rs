//! What most tests begin with: a hub of their own, its admin, a few people, and bare HTTP.

use std::path::Path;
use std::time::Duration;

use parlor_testkit::agentim::Client;
use parlor_testkit::hub::{Hub, HubCommand, Topology};
use parlor_testkit::rest::{RestClient, RestResponse};
use parlor_testkit::socket::{Socket, SocketEvent, TEST_TIMEOUT};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub const PARLOR: &str = env!("CARGO_BIN_EXE_parlor");
/// Everyone's password in these tests, but for the admin's.
pub const PASSWORD: &str = "Plain-sailing-9";

pub struct Scene {
    pub command: HubCommand,
    pub hub: Hub,
    pub admin: RestClient,
    pub data: TempDir,
}

impl Scene {
    /// A hub inside this process, without rate limits, and its admin.
    pub async fn start() -> Self {
        Self::start_with(|command| command).await
    }

    pub async fn with(settings: &[(&str, &str)]) -> Self {
        Self::start_with(|command| set(command, settings)).await
    }

    pub async fn start_with(change: impl FnOnce(HubCommand) -> HubCommand) -> Self {
        Self::on(Topology::InProcess, change).await
    }

    /// A hub as a process of its own, for tests whose subject that is.
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

    /// Somebody whose agents hear these of outside sources.
    pub async fn hearer(&self, name: &str, patterns: &[&str]) -> RestClient {
        let person = self.person(name).await;
        let path = format!("/api/users/{}", person.user_id());
        let changed = self.admin.put(&path, json!({ "hears": patterns })).await.unwrap().data().unwrap();
        assert_eq!(changed["hears"], json!(patterns));
        person
    }

    /// Sets the hub's clock forward. Timers that count real time, such as timeouts of connections, do not notice.
    pub fn advance(&self, by: Duration) {
        self.command.clock.advance(by);
    }

    /// A crash and a new start on the same data. Tokens stay good, the address does not.
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

    /// The hub ends by itself when told to, and has nothing bad to say for itself.
    pub async fn ends_well(mut self) {
        self.hub.stop(Duration::from_secs(10)).await.unwrap();
        self.assert_never_panicked();
    }
}

fn set(command: HubCommand, settings: &[(&str, &str)]) -> HubCommand {
    settings.iter().fold(command, |command, (name, value)| command.env(name, value))
}

/// A connection of this person that follows the room.
pub async fn following(person: &RestClient, room: &str) -> Client {
    let mut client = Client::connect(person).await.unwrap();
    client.join(room).await.unwrap();
    client
}

/// The next frame of a kind.
pub async fn next(client: &mut Client, kind: &str) -> Value {
    client.wait_for_type(kind).await.unwrap()
}

/// The next message in any room.
pub async fn heard(client: &mut Client) -> Value {
    next(client, "server:new_message").await["message"].clone()
}

/// Everything that came before the answer to a ping: what the hub had to say so far.
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

/// Sends a frame and expects this error code for it.
pub async fn refused(client: &mut Client, frame: Value, code: &str) -> Value {
    client.send(&frame).await.unwrap();
    let error = next(client, "server:error").await;
    assert_eq!(error["code"], code, "{frame:.200} got {error}");
    error
}

pub fn contents(frames: &[Value]) -> Vec<String> {
    frames.iter().map(|frame| frame["content"].as_str().unwrap().to_owned()).collect()
}

/// Why the hub does not take this person's connection.
pub async fn auth_error(person: &RestClient) -> String {
    let mut client = Client::open(person.url()).await.unwrap();
    client.send(&json!({ "type": "client:auth", "token": person.token() })).await.unwrap();
    let result = next(&mut client, "server:auth_result").await;
    assert_eq!(result["ok"], false, "{result}");
    result["error"].as_str().unwrap().to_owned()
}

/// What came back on a bare connection.
#[derive(Debug)]
pub struct Bare {
    pub status: u16,
    pub head: String,
    pub body: String,
}

/// Sends a request as it is written, so that a test decides over every byte of it, and reads to the end.
pub async fn bare(url: &str, request: &[u8]) -> Bare {
    let mut stream = connect(url).await;
    stream.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    tokio::time::timeout(TEST_TIMEOUT, read).await.expect("an answer in time").unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    Bare { status, head: head.to_owned(), body: body.to_owned() }
}

pub async fn connect(url: &str) -> TcpStream {
    TcpStream::connect(url.strip_prefix("http://").unwrap()).await.unwrap()
}

/// A request with a JSON body as text, whatever that text is.
pub async fn send_text(
    person: &RestClient,
    method: Method,
    path: &str,
    body: impl Into<reqwest::Body>,
) -> RestResponse {
    RestResponse::of(person.request(method, path).body(body)).await.unwrap()
}

#[track_caller]
pub fn assert_refused(answer: &RestResponse, status: u16) {
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(answer.body["ok"], false, "{answer:?}");
    assert!(answer.body["error"].as_str().is_some_and(|sentence| !sentence.is_empty()), "{answer:?}");
}

/// A key of this person with these scopes.
pub async fn make_key(person: &RestClient, scopes: &[&str]) -> (String, String) {
    let body = json!({ "name": "a program", "scopes": scopes });
    let key = person.post("/api/keys", body).await.unwrap().data().unwrap();
    (key["id"].as_str().unwrap().to_owned(), key["key"].as_str().unwrap().to_owned())
}

/// Reads until the connection ends; what came on the way, and the close code.
pub async fn until_closed(socket: &mut Socket) -> (Vec<Value>, u16) {
    let mut frames = Vec::new();
    loop {
        match socket.next(TEST_TIMEOUT).await.unwrap() {
            SocketEvent::Frame(frame) => frames.push(frame),
            SocketEvent::Closed(code) => return (frames, code),
        }
    }
}

/// A revoked connection receives the reason and is closed.
pub async fn assert_revoked(socket: &mut Socket) {
    let told = socket.wait_for(TEST_TIMEOUT, |frame| frame["code"] == "SESSION_REVOKED").await;
    told.expect("the connection receives the reason");
    assert_eq!(socket.closed(TEST_TIMEOUT).await.unwrap(), 1008);
}

/// Everything in the files of a directory, also below it.
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
