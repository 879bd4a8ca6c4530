//! Tests with agents that are real programs, hosted by a real gateway process next to the hub.

mod acp;
pub mod automatic_turns;
mod closing;
mod handbook;
mod hostile;
mod local;
mod lost;
mod made_from_afar;
mod model;
mod model_documented;
mod orphans;
mod pairing;
#[cfg(feature = "real-agents")]
mod real;
mod sessions;
mod signing_in;
mod tools;
mod walk;

use crate::gateway::scenes::Room;
use crate::scene::{PARLOR, PASSWORD};
use parlor_testkit::gateway_process::{ClientProcess, GatewayLauncher};
use parlor_testkit::rest::RestClient;
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;

/// Creates the text of a script from the directory that contains it.
type Script<'a> = &'a dyn Fn(&Path) -> String;

/// A gateway of the user `alice` in a temporary directory, whose agents are shell scripts.
pub struct TestGateway {
    pub place: TempDir,
    pub gateway_launcher: GatewayLauncher,
}

impl TestGateway {
    pub fn new(url: &str, scripts: &[(&str, &str)]) -> Self {
        let scripts: Vec<_> =
            scripts.iter().map(|(name, script)| (*name, move |_: &Path| (*script).to_owned())).collect();
        let scripts: Vec<(&str, Script)> =
            scripts.iter().map(|(name, script)| (*name, script as Script)).collect();
        Self::of_kind(url, "command", &scripts)
    }

    /// Like `new`, but with agents of any kind and scripts that are created from the directory that contains
    /// them.
    pub fn of_kind(url: &str, kind: &str, scripts: &[(&str, Script)]) -> Self {
        let place = tempfile::tempdir().unwrap();
        let mut settings = "user = 'alice'\n".to_owned();
        for (name, script) in scripts {
            let path = place.path().join(format!("{name}.sh"));
            std::fs::write(&path, script(place.path())).unwrap();
            let command = serde_json::json!(["sh", path]);
            settings += &format!("[[agent]]\nname = '{name}'\nkind = '{kind}'\ncommand = {command}\n");
        }
        let gateway_launcher = GatewayLauncher::new(PARLOR, place.path(), &settings);
        Self { gateway_launcher: gateway_launcher.env("PARLOR_PASSWORD", PASSWORD).at(url), place }
    }

    /// Sets the working directory of every agent to a folder below the temporary directory.
    pub fn in_folder(&self, folder: &str) -> &Self {
        let (config, place) = (self.place.path().join("gateway.toml"), self.place.path());
        let settings = std::fs::read_to_string(&config).unwrap();
        let directory = format!("directory = '{}'\ncommand = ", place.join(folder).display());
        std::fs::write(config, settings.replace("command = ", &directory)).unwrap();
        self
    }

    /// Text that the command line of every process of this gateway contains.
    pub fn mark(&self) -> String {
        self.place.path().to_str().unwrap().to_owned()
    }

    /// Starts the gateway and adds these agents to the room.
    pub async fn join(&self, room: &Room, agents: &[&str]) -> ClientProcess {
        let gateway = self.gateway_launcher.start().await.unwrap();
        for name in agents {
            let id = self.gateway_launcher.agent(name).unwrap();
            registered(&room.alice, name).await;
            room.add(&id).await;
        }
        gateway
    }
}

/// Waits until an agent with this name is online, and returns its ID. It polls, because the gateway prints
/// that it is connected, but not that the agent is registered.
async fn registered(owner: &RestClient, name: &str) -> String {
    let online_agent = async {
        loop {
            let agents = owner.get("/api/agents").await.unwrap().data().unwrap();
            let online = |agent: &&Value| agent["name"] == name && agent["status"] != "offline";
            if let Some(agent) = agents.as_array().unwrap().iter().find(online) {
                return agent["id"].as_str().unwrap().to_owned();
            }
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, online_agent)
        .await
        .unwrap_or_else(|_| panic!("{name} was never registered"))
}

/// Runs `parlor` with these arguments to its end. Returns whether it succeeded, and its output.
async fn parlor(arguments: &[&str]) -> (bool, String) {
    parlor_in(Path::new("."), &[], arguments).await
}

/// Runs `parlor` in a folder and with these environment variables. Returns whether it succeeded, and its
/// output.
async fn parlor_in(folder: &Path, variables: &[(&str, &str)], arguments: &[&str]) -> (bool, String) {
    let mut command = tokio::process::Command::new(PARLOR);
    command.args(arguments).current_dir(folder).envs(variables.iter().copied());
    let done = command.output().await.unwrap();
    let printed = [done.stdout, done.stderr].concat();
    (done.status.success(), String::from_utf8_lossy(&printed).into_owned())
}

/// Appends the chunks of the streaming reply to `text` until `found` returns true for it.
async fn wait_for_text(room: &mut Room, text: &mut String, found: impl Fn(&str) -> bool) {
    while !found(text) {
        let chunk = crate::scene::next(&mut room.at_alice, "server:message_chunk").await;
        *text += chunk["chunk"]["content"].as_str().unwrap();
    }
}

pub fn outcome(reply: &Value) -> &str {
    reply["metadata"]["outcome"].as_str().unwrap_or_default()
}
