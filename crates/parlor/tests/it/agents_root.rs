//! Agents as folders on disk, with a hub in the test process, real files and real sockets.

mod configuration;
mod conversations;
mod messages;
mod moving;
mod refused;
mod tools;

use crate::scene::Scene;
use notify::{RecursiveMode, Watcher};
use parlor_testkit::broker::Broker;
use parlor_testkit::events::EventReader;
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::sync::Notify;
use tokio::time::timeout;

/// An agents root.
pub struct Root(TempDir);

impl Root {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    pub fn write(&self, path: &str, content: &str) -> &Self {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    /// Writes the file of an agent that answers with a program.
    pub fn write_agent(&self, id: &str, fields: Value) -> &Self {
        let mut file = json!({ "id": id, "parlor": { "kind": "command", "command": ["cat"] } });
        file.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        self.write(&format!("{id}/jvAgent.json"), &file.to_string())
    }

    pub async fn start(&self) -> Scene {
        let mut scene = Scene::with(&[("PARLOR_AGENTS_ROOT", self.0.path().to_str().unwrap())]).await;
        scene.hub.logged(|log| log.contains("the agents root was read").then_some(())).await.unwrap();
        scene
    }

    /// Waits until a file has content for which `found` returns a value.
    pub async fn wait_for<T>(&self, path: &str, found: impl Fn(&str) -> Option<T>) -> T {
        let changed = Arc::new(Notify::new());
        let on_event = {
            let changed = changed.clone();
            move |_| changed.notify_one()
        };
        let mut watcher = notify::recommended_watcher(on_event).unwrap();
        watcher.watch(self.0.path(), RecursiveMode::Recursive).unwrap();
        let path = self.path(path);
        let wait = async {
            loop {
                let content = fs::read_to_string(&path).unwrap_or_default();
                match found(&content) {
                    Some(found) => return found,
                    None => changed.notified().await,
                }
            }
        };
        match timeout(TEST_TIMEOUT, wait).await {
            Ok(found) => found,
            Err(_) => panic!("{}: {:.2000}", path.display(), fs::read_to_string(&path).unwrap_or_default()),
        }
    }

    /// Waits until a JSON file satisfies a condition.
    pub async fn wait_for_json(&self, path: &str, found: impl Fn(&Value) -> bool) -> Value {
        let parse = |content: &str| serde_json::from_str(content).ok().filter(|value| found(value));
        self.wait_for(path, parse).await
    }
}

pub async fn broker(scene: &Scene) -> Broker {
    Broker::connect(scene.url(), scene.admin.token()).await.unwrap()
}

pub async fn agent(broker: &mut Broker, id: &str) -> Value {
    let reply = broker.ask(json!({ "type": "agent.get", "id": id })).await.unwrap();
    reply["agent"].clone()
}

/// Waits until the log has this text.
pub async fn logged(scene: &mut Scene, text: &str) {
    scene.hub.logged(|log| log.contains(text).then_some(())).await.unwrap();
}

/// Waits until an agent satisfies a condition, which is checked again after each event of the hub.
pub async fn until(scene: &Scene, id: &str, found: impl Fn(&Value) -> bool) -> Value {
    let mut events = EventReader::live(&scene.admin, "").await.unwrap();
    let mut broker = broker(scene).await;
    loop {
        let agent = agent(&mut broker, id).await;
        if found(&agent) {
            return agent;
        }
        events.wait_for(|_| true).await.unwrap();
    }
}

pub fn patterns(agent: &Value) -> Vec<&str> {
    let subscriptions = agent["subscriptions"].as_array().unwrap();
    subscriptions.iter().map(|subscription| subscription["pattern"].as_str().unwrap()).collect()
}
