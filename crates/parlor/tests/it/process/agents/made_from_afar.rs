//! Tests of agents that their owner creates remotely on a gateway (`--allow-spawn`).

use super::{parlor, registered};
use crate::gateway::scenes::Room;
use crate::scene::{PARLOR, PASSWORD, next};
use parlor_testkit::gateway_process::{ClientProcess, GatewayLauncher};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Fake `claude` program, placed on the `PATH` of the gateway.
const CLAUDE: &str = r#"#!/bin/sh
read question
echo '{"type":"system","subtype":"init","session_id":"0b9c1f5e-1111-4222-8333-444455556666","slash_commands":["compact"]}'
case $question in
*'"/compact"'*) said=compacted ;;
*) said=here ;;
esac
printf '{"type":"result","subtype":"success","result":"%s"}\n' $said
"#;

/// A room, and a gateway with the fake `claude` program.
struct RemoteGateway {
    room: Room,
    gateway_launcher: GatewayLauncher,
    folder: String,
    _place: tempfile::TempDir,
}

impl RemoteGateway {
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
        let request = json!({ "gatewayId": self.gateway_id(), "agentType": kind, "name": name,
            "workingDirectory": folder });
        self.room.alice.post("/api/agents/spawn", request).await.unwrap().data().unwrap();
        next(&mut self.room.at_alice, "server:spawn_result").await
    }

    async fn answers(&mut self, question: &str, answer: &str) {
        self.room.say(question).await;
        let reply = self.room.reply().await;
        assert_eq!(reply["content"], answer, "{reply}");
    }
}

async fn restart(mut gateway: ClientProcess, gateway_launcher: &GatewayLauncher) -> ClientProcess {
    assert!(gateway.terminate().await.unwrap().success());
    gateway_launcher.start().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_remotely_created_agent_survives_restarts_until_it_is_removed() {
    let mut remote = RemoteGateway::new(&["--user", "alice", "--allow-spawn", "claude"]).await;
    let mut gateway = remote.gateway_launcher.start().await.unwrap();
    let folder = remote.folder.clone();
    // `claude-code` is the name that AgentIM clients use for the kind `claude`.
    let told = remote.spawn("claude-code", "coder", &folder).await;
    assert_eq!(told["success"], true, "{told}");
    let id = registered(&remote.room.alice, "coder").await;
    assert_eq!(told["agentId"], id.as_str());
    remote.room.add(&id).await;
    remote.answers("@coder are you there?", "here").await;

    for (kind, name, folder, why) in [
        ("command", "other", &*folder, "does not allow agents of the kind command to be created"),
        ("claude", "coder", &folder, "already has an agent named coder"),
        ("claude", "other", "/no/such/folder", "There is no folder /no/such/folder"),
    ] {
        let told = remote.spawn(kind, name, folder).await;
        assert_eq!(told["success"], false, "{told}");
        assert!(told["error"].as_str().unwrap().contains(why), "{told}");
    }

    gateway = restart(gateway, &remote.gateway_launcher).await;
    assert_eq!(registered(&remote.room.alice, "coder").await, id);
    remote.answers("@coder still there?", "here").await;

    remote.room.alice.delete(&format!("/api/agents/{id}")).await.unwrap().data().unwrap();
    gateway.printed(|line| line.contains("was removed, or is now hosted").then_some(())).await.unwrap();
    let gateway = restart(gateway, &remote.gateway_launcher).await;
    let kept = std::fs::read_to_string(Path::new(&folder).join("data/spawned.json")).unwrap();
    assert_eq!(kept, "[]");
    drop(gateway);
    remote.room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_slash_commands_of_an_agent_are_registered_and_executed() {
    let mut remote = RemoteGateway::new(&["--user", "alice", "--agent", "coder=claude"]).await;
    let _gateway = remote.gateway_launcher.start().await.unwrap();
    let id = registered(&remote.room.alice, "coder").await;
    remote.room.add(&id).await;
    remote.answers("@coder are you there?", "here").await;
    let path = format!("/api/agents/{id}");
    let known = async {
        loop {
            let agent = remote.room.alice.get(&path).await.unwrap().data().unwrap();
            let commands = agent["slashCommands"].as_array().unwrap().clone();
            if let [clear, stop, compact] = &commands[..] {
                return [clear, stop, compact].map(|command| command["name"].as_str().unwrap().to_owned());
            }
        }
    };
    let known = tokio::time::timeout(parlor_testkit::socket::TEST_TIMEOUT, known)
        .await
        .expect("the slash commands are registered");
    assert_eq!(known, ["clear", "stop", "compact"]);
    remote.answers("@coder /compact", "compacted").await;
    let body = json!({ "type": "client:agent_command", "agentId": id, "roomId": remote.room.room, "command": "compact" });
    remote.room.at_alice.send(&body).await.unwrap();
    let told = next(&mut remote.room.at_alice, "server:agent_command_result").await;
    assert_eq!(told["message"], "Write @coder /compact in the room.");
    remote.room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn remote_creation_is_refused_unless_the_gateway_allows_it() {
    let mut remote = RemoteGateway::new(&["--user", "alice", "--agent", "echo=command", "--", "cat"]).await;
    let _gateway = remote.gateway_launcher.start().await.unwrap();
    registered(&remote.room.alice, "echo").await;
    let folder = remote.folder.clone();
    let told = remote.spawn("claude", "coder", &folder).await;
    assert!(told["error"].as_str().unwrap().contains("does not allow"), "{told}");
    let (started, printed) = parlor(&["gateway", "--server", "http://127.0.0.1:1"]).await;
    assert!(!started && printed.contains("no agent to host"), "{printed}");
    let unused_program =
        ["gateway", "--server", "http://127.0.0.1:1", "--agent", "coder=claude", "--", "cat"];
    let (started, printed) = parlor(&unused_program).await;
    assert!(!started && printed.contains("no agent runs cat"), "{printed}");
    remote.room.scene.ends_well().await;
}
