//! A hub in a directory of its own, with people in it: what most tests begin with.

use std::time::Duration;

use parlor_testkit::agentim::Client;
use parlor_testkit::hub::{Hub, HubCommand, PASSWORD};
use parlor_testkit::rest::Rest;
use parlor_testkit::socket::PATIENCE;
use serde_json::{Value, json};

pub const PARLOR: &str = env!("CARGO_BIN_EXE_parlor");

pub struct Scene {
    pub command: HubCommand,
    pub hub: Hub,
    pub admin: Rest,
    _data: tempfile::TempDir,
}

impl Scene {
    /// A hub without rate limits.
    pub async fn start() -> Self {
        Self::with(&[]).await
    }

    pub async fn with(settings: &[(&str, &str)]) -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut command = HubCommand::new(PARLOR, data.path());
        for (name, value) in settings {
            command = command.env(name, value);
        }
        let hub = command.start().await.unwrap();
        let admin = hub.admin().await.unwrap();
        Self { command, hub, admin, _data: data }
    }

    pub fn url(&self) -> &str {
        self.hub.url()
    }

    pub async fn person(&self, name: &str) -> Rest {
        self.admin.make_user(name, PASSWORD).await.unwrap()
    }

    /// SIGKILL and a new start on the same data. Tokens stay good, the address does not.
    pub async fn kill_and_restart(&mut self) {
        self.hub.kill_9().await.unwrap();
        self.assert_never_panicked();
        self.hub = self.command.start().await.unwrap();
        self.admin = self.admin.at(self.hub.url());
    }

    #[track_caller]
    pub fn assert_never_panicked(&self) {
        let log = self.hub.stderr();
        assert!(!log.contains("panicked"), "{log}");
    }

    /// The hub ends by itself when told to, and has nothing bad to say for itself.
    pub async fn ends_well(mut self) {
        let status = self.hub.terminate(Duration::from_secs(10)).await.unwrap();
        assert!(status.success(), "{status}");
        self.assert_never_panicked();
    }
}

/// A connection of this person that follows the room.
pub async fn following(person: &Rest, room: &str) -> Client {
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
        let frame = client.frame(PATIENCE).await.unwrap();
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
pub async fn auth_error(person: &Rest) -> String {
    let mut client = Client::open(person.url()).await.unwrap();
    client.send(&json!({ "type": "client:auth", "token": person.token() })).await.unwrap();
    let result = next(&mut client, "server:auth_result").await;
    assert_eq!(result["ok"], false, "{result}");
    result["error"].as_str().unwrap().to_owned()
}
