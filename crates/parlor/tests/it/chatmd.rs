//! The bridge between a chat.md and a room, with a hub in the test process and real sockets.

mod answers;
mod hosted;
mod limits;
mod names;
mod restarts;

use crate::scene::{Scene, make_key};
use parlor_chatmd::bridge::client::{Client, authenticate, websocket_config};
use parlor_chatmd::bridge::{self, BridgeError, BridgeNotice, BridgeOptions, ConnectFailure};
use parlor_chatmd::{Follower, Start, Workplace};
use parlor_testkit::rest::RestClient;
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::json;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_tungstenite::client_async_with_config;

/// A project directory with a `chat.md`.
pub struct Project {
    directory: TempDir,
}

impl Project {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join(".workplace")).unwrap();
        Self { directory }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Appends as a shell script does.
    pub fn write(&self, lines: &str) {
        let path = self.path().join(".workplace/chat.md");
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.write_all(lines.as_bytes()).unwrap();
    }

    pub fn content(&self) -> String {
        std::fs::read_to_string(self.path().join(".workplace/chat.md")).unwrap_or_default()
    }

    /// Waits until the file contains this text and returns the whole content.
    pub async fn wait_for(&self, text: &str) -> String {
        let mut follower = Follower::open(Workplace::open(self.path()).unwrap(), Start::End).unwrap();
        let found = async {
            loop {
                let content = self.content();
                if content.contains(text) {
                    return content;
                }
                follower.changed(None).await;
            }
        };
        let waited = timeout(TEST_TIMEOUT, found).await;
        waited.unwrap_or_else(|_| panic!("no {text:?} in:\n{}", self.content()))
    }
}

/// A bridge in the test process. Dropping it stops it.
pub struct RunningBridge {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), BridgeError>>,
    notices: mpsc::UnboundedReceiver<BridgeNotice>,
}

impl RunningBridge {
    pub fn start(project: &Project, url: &str, room: &str, key: &str) -> Self {
        Self::start_with(options(project, room), url, key)
    }

    pub fn start_with(options: BridgeOptions, url: &str, key: &str) -> Self {
        let (stop, stopped) = oneshot::channel();
        let (report, notices) = mpsc::unbounded_channel();
        let (url, key) = (url.to_owned(), key.to_owned());
        let task = tokio::spawn(async move {
            let stop = async { drop(stopped.await) };
            let connect = || connect(&url, &key);
            bridge::run(options, connect, stop, move |notice| drop(report.send(notice))).await
        });
        Self { stop, task, notices }
    }

    pub async fn connected(mut self) -> Self {
        self.notice(|notice| *notice == BridgeNotice::Connected).await;
        self
    }

    /// Waits for a notice that matches. Earlier ones are dropped.
    pub async fn notice(&mut self, matches: impl Fn(&BridgeNotice) -> bool) -> BridgeNotice {
        let found = async {
            while let Some(notice) = self.notices.recv().await {
                if matches(&notice) {
                    return notice;
                }
            }
            panic!("the bridge ended")
        };
        timeout(TEST_TIMEOUT, found).await.expect("the bridge reports it in time")
    }

    /// Stops the bridge and returns the notices that were not awaited.
    pub async fn stop(mut self) -> Vec<BridgeNotice> {
        let _ = self.stop.send(());
        self.task.await.unwrap().unwrap();
        let mut left = Vec::new();
        while let Ok(notice) = self.notices.try_recv() {
            left.push(notice);
        }
        left
    }

    /// Waits until the bridge ends by itself and returns the reason.
    pub async fn failed(self) -> String {
        let ended = timeout(TEST_TIMEOUT, self.task).await.expect("the bridge ends").unwrap();
        ended.expect_err("the bridge is rejected").to_string()
    }
}

pub fn options(project: &Project, room: &str) -> BridgeOptions {
    BridgeOptions {
        directory: project.path().to_owned(),
        room: room.to_owned(),
        hub: "http://hub.example".to_owned(),
        history: false,
        reset: false,
        patient: false,
    }
}

async fn connect(url: &str, key: &str) -> Result<Client<TcpStream>, ConnectFailure> {
    let failed = |error: String| ConnectFailure::Temporary(error);
    let address = url.strip_prefix("http://").unwrap();
    let stream = TcpStream::connect(address).await.map_err(|error| failed(error.to_string()))?;
    let opened =
        client_async_with_config(format!("ws://{address}/ws/broker"), stream, Some(websocket_config())).await;
    authenticate(opened.map_err(|error| failed(error.to_string()))?.0, key).await
}

/// A hub with the users Ada and Eve in a room, and a bridge of Ada's account to that room.
pub struct BridgeScene {
    pub scene: Scene,
    pub ada: RestClient,
    pub eve: RestClient,
    pub room: String,
    pub project: Project,
    pub key: String,
}

impl BridgeScene {
    pub async fn new() -> Self {
        Self::on(Scene::start().await).await
    }

    pub async fn on(scene: Scene) -> Self {
        let (ada, eve) = (scene.person("ada").await, scene.person("eve").await);
        let room = ada.make_room("Workshop", &[&eve]).await.unwrap();
        let (_, key) = make_key(&ada, &["read", "write", "agents"]).await;
        Self { scene, ada, eve, room, project: Project::new(), key }
    }

    pub async fn bridge(&self) -> RunningBridge {
        RunningBridge::start(&self.project, self.scene.url(), &self.room, &self.key).connected().await
    }

    pub async fn add_agent(&self, agent: &str) {
        let body = json!({ "memberId": agent, "memberType": "agent" });
        self.ada.post(&format!("/api/rooms/{}/members", self.room), body).await.unwrap().data().unwrap();
    }

    /// Waits until this text is in the room and returns the texts of all messages.
    pub async fn room_has(&self, text: &str) -> Vec<String> {
        let mut reader = crate::scene::following(&self.eve, &self.room).await;
        loop {
            let history = self.history().await;
            if history.iter().any(|known| known == text) {
                return history;
            }
            crate::scene::heard(&mut reader).await;
        }
    }

    /// Texts of all messages in the room.
    pub async fn history(&self) -> Vec<String> {
        crate::scene::contents(&self.eve.history(&self.room).await.unwrap())
    }
}
