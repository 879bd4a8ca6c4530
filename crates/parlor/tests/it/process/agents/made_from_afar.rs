//! Agents that an owner makes on a machine of theirs without sitting at it.

use super::{parlor, registered};
use crate::gateway::scenes::Room;
use crate::scene::{PARLOR, PASSWORD, next};
use parlor_testkit::gateway_process::{GatewayLauncher, GatewayProcess};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// What calls itself Claude Code here, for whoever looks for it on the path.
const CLAUDE: &str = r#"#!/bin/sh
read question
echo '{"type":"system","subtype":"init","session_id":"0b9c1f5e-1111-4222-8333-444455556666","slash_commands":["compact"]}'
case $question in
*'"/compact"'*) said=compacted ;;
*) said=here ;;
esac
printf '{"type":"result","subtype":"success","result":"%s"}\n' $said
"#;

struct Away {
    room: Room,
    gateway_launcher: GatewayLauncher,
    folder: String,
    _place: tempfile::TempDir,
}

impl Away {
    async fn new(allowed: &[&str]) -> Self {
        let room = Room::start().await;
        let place = tempfile::tempdir().unwrap();
        let claude = place.path().join("claude");
        std::fs::write(&claude, CLAUDE).unwrap();
        std::fs::set_permissions(&claude, PermissionsExt::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", place.path().display(), std::env::var("PATH").unwrap());
        let gateway_launcher =
            GatewayLauncher::with_arguments(PARLOR, place.path(), allowed).at(room.scene.url());
        let gateway_launcher = gateway_launcher.env("PARLOR_PASSWORD", PASSWORD).env("PATH", &path);
        Self { room, gateway_launcher, folder: place.path().to_str().unwrap().to_owned(), _place: place }
    }

    fn gateway_id(&self) -> Value {
        let identity = std::fs::read(Path::new(&self.folder).join("data/gateway.json")).unwrap();
        serde_json::from_slice::<Value>(&identity).unwrap()["gateway"].clone()
    }

    async fn spawn(&mut self, kind: &str, name: &str, folder: &str) -> Value {
        let wanted = json!({ "gatewayId": self.gateway_id(), "agentType": kind, "name": name,
            "workingDirectory": folder });
        self.room.alice.post("/api/agents/spawn", wanted).await.unwrap().data().unwrap();
        next(&mut self.room.at_alice, "server:spawn_result").await
    }

    async fn answers(&mut self, question: &str, answer: &str) {
        self.room.say(question).await;
        let reply = self.room.reply().await;
        assert_eq!(reply["content"], answer, "{reply}");
    }
}

async fn again(mut gateway: GatewayProcess, gateway_launcher: &GatewayLauncher) -> GatewayProcess {
    assert!(gateway.terminate().await.unwrap().success());
    gateway_launcher.start().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_made_from_afar_is_there_until_it_is_removed() {
    let mut away = Away::new(&["--user", "alice", "--allow-spawn", "claude"]).await;
    let mut gateway = away.gateway_launcher.start().await.unwrap();
    let folder = away.folder.clone();
    // Also by the word that AgentIM's clients have for it.
    let told = away.spawn("claude-code", "coder", &folder).await;
    assert_eq!(told["success"], true, "{told}");
    let id = registered(&away.room.alice, "coder").await;
    assert_eq!(told["agentId"], id.as_str());
    away.room.add(&id).await;
    away.answers("@coder are you there?", "here").await;

    for (kind, name, folder, why) in [
        ("command", "other", &*folder, "does not let agents of the kind command be made"),
        ("claude", "coder", &folder, "of the name coder here already"),
        ("claude", "other", "/no/such/folder", "There is no folder /no/such/folder"),
    ] {
        let told = away.spawn(kind, name, folder).await;
        assert_eq!(told["success"], false, "{told}");
        assert!(told["error"].as_str().unwrap().contains(why), "{told}");
    }

    gateway = again(gateway, &away.gateway_launcher).await;
    assert_eq!(registered(&away.room.alice, "coder").await, id);
    away.answers("@coder still there?", "here").await;

    away.room.alice.delete(&format!("/api/agents/{id}")).await.unwrap().data().unwrap();
    gateway.printed(|line| line.contains("or was removed").then_some(())).await.unwrap();
    let gateway = again(gateway, &away.gateway_launcher).await;
    let kept = std::fs::read_to_string(Path::new(&folder).join("data/spawned.json")).unwrap();
    assert_eq!(kept, "[]");
    drop(gateway);
    away.room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_understands_after_a_slash_is_known_to_the_hub_and_done() {
    let mut away = Away::new(&["--user", "alice", "--agent", "coder=claude"]).await;
    let _gateway = away.gateway_launcher.start().await.unwrap();
    let id = registered(&away.room.alice, "coder").await;
    away.room.add(&id).await;
    away.answers("@coder are you there?", "here").await;
    let path = format!("/api/agents/{id}");
    let known = async {
        loop {
            let agent = away.room.alice.get(&path).await.unwrap().data().unwrap();
            let commands = agent["slashCommands"].as_array().unwrap().clone();
            if let [clear, stop, compact] = &commands[..] {
                return [clear, stop, compact].map(|command| command["name"].as_str().unwrap().to_owned());
            }
        }
    };
    let known = tokio::time::timeout(parlor_testkit::socket::TEST_TIMEOUT, known).await.expect("it is told");
    assert_eq!(known, ["clear", "stop", "compact"]);
    away.answers("@coder /compact", "compacted").await;
    let body = json!({ "type": "client:agent_command", "agentId": id, "roomId": away.room.room, "command": "compact" });
    away.room.at_alice.send(&body).await.unwrap();
    let told = next(&mut away.room.at_alice, "server:agent_command_result").await;
    assert_eq!(told["message"], "Write @coder /compact in the room.");
    away.room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_made_from_afar_unless_the_gateway_was_told_to() {
    let mut away = Away::new(&["--user", "alice", "--agent", "echo=command", "--", "cat"]).await;
    let _gateway = away.gateway_launcher.start().await.unwrap();
    registered(&away.room.alice, "echo").await;
    let folder = away.folder.clone();
    let told = away.spawn("claude", "coder", &folder).await;
    assert!(told["error"].as_str().unwrap().contains("does not let"), "{told}");
    let (started, printed) = parlor(&["gateway", "--server", "http://127.0.0.1:1"]).await;
    assert!(!started && printed.contains("nobody to host"), "{printed}");
    let idle = ["gateway", "--server", "http://127.0.0.1:1", "--agent", "coder=claude", "--", "cat"];
    let (started, printed) = parlor(&idle).await;
    assert!(!started && printed.contains("no agent runs cat"), "{printed}");
    away.room.scene.ends_well().await;
}
