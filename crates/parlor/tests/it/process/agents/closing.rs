//! Tests that the programs of agents have ended when the hub has stopped, and when an agent was examined. The
//! hub runs in the runtime of the test, so a program that was not awaited still exists, at least as a zombie.

use super::registered;
use crate::scene::{following, next};
use parlor::agents::{AgentEntry, gateway};
use parlor::instance::Platform;
use parlor::serve::RunningHub;
use parlor::settings::{self, Sources};
use parlor_agents::finding::Health;
use parlor_agents::kinds::AgentConfig;
use parlor_server::PasswordCost;
use parlor_testkit::hub::{ADMIN, PASSWORD};
use parlor_testkit::program::program;
use parlor_testkit::rest::RestClient;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder in which each program stores its process id.
struct IdFolder(TempDir);

impl IdFolder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A command that stores the process id of the agent `name` and then runs `script` in the same process.
    /// In the script, `$0` is the scripted ACP agent.
    fn command(&self, name: &str, script: &str) -> Vec<String> {
        let script = format!("echo $$ > {}; {script}", self.id_file(name).display());
        let actor = program("acp-actor").to_str().unwrap().to_owned();
        vec!["sh".into(), "-c".into(), script, actor]
    }

    fn id_file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Whether the program of the agent exists, also as a zombie.
    fn exists(&self, name: &str) -> bool {
        let process = std::fs::read_to_string(self.id_file(name)).unwrap();
        Path::new("/proc").join(process.trim()).exists()
    }
}

async fn start_hub(data: &Path, config: &Path) -> RunningHub {
    let flags =
        BTreeMap::from([("listen", "127.0.0.1:0".to_owned()), ("data", data.to_str().unwrap().to_owned())]);
    let environment = [("PARLOR_ADMIN_PASSWORD", PASSWORD), ("PARLOR_LIMITS", "off")];
    let environment = environment.map(|(name, value)| (name.to_owned(), value.into())).into();
    let loaded = settings::load(&Sources { flags, environment, config: None }).unwrap();
    let platform = Platform { password_cost: PasswordCost::MINIMUM, ..Platform::default() };
    RunningHub::start(&loaded.settings, Some(config), platform).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_programs_of_the_hubs_agents_have_ended_when_it_has_stopped() {
    let folder = IdFolder::new();
    let agents = [
        ("idle", "acp", "exec \"$0\"", "count", "server:message_complete"),
        ("busy", "acp", "exec \"$0\"", "count hang", "server:message_chunk"),
        ("stubborn", "acp", "trap '' TERM; exec \"$0\"", "count deaf", "server:message_chunk"),
        ("shell", "command", "trap '' TERM; echo up; sleep 600; true", "go", "server:message_chunk"),
    ];
    let entries = agents.map(|(name, kind, script, ..)| {
        let command = json!(folder.command(name, script));
        format!("[[agent]]\nname = '{name}'\nkind = '{kind}'\ncommand = {command}\n")
    });
    let config = folder.id_file("parlor.toml");
    std::fs::write(&config, entries.concat()).unwrap();
    let data = tempfile::tempdir().unwrap();
    let hub = start_hub(data.path(), &config).await;
    let admin = RestClient::sign_in(&format!("http://{}", hub.address()), ADMIN, PASSWORD).await.unwrap();
    for (name, _, _, message, until) in agents {
        let room = admin.make_room(name, &[]).await.unwrap();
        let body = json!({ "memberId": registered(&admin, name).await, "memberType": "agent" });
        admin.post(&format!("/api/rooms/{room}/members"), body).await.unwrap().data().unwrap();
        let mut client = following(&admin, &room).await;
        client.say_and_wait(&room, &format!("@{name} {message}"), name).await.unwrap();
        next(&mut client, until).await;
        assert!(folder.exists(name), "{name}");
    }
    hub.stop().await;
    for (name, ..) in agents {
        assert!(!folder.exists(name), "{name}");
    }
}

#[tokio::test]
async fn the_program_of_an_examined_agent_has_ended() {
    let folder = IdFolder::new();
    let command = folder.command("actor", "exec \"$0\"");
    let config = AgentConfig { kind: "acp".into(), command, ..AgentConfig::default() };
    let checked = gateway::examine(&AgentEntry { name: "actor".into(), config }).await;
    assert_eq!(checked.findings.iter().map(|found| found.state).collect::<Vec<_>>(), [Health::Ok]);
    assert!(!folder.exists("actor"));
}
