//! Executes the commands and files in `docs/agents.md` as documented. A command or file that is not handled
//! here fails the test, so that every one in the document is tested.

use super::{parlor_in, registered};
use crate::scene::{PARLOR, Scene, following, make_key, next};
use parlor_testkit::agentim::Client;
use parlor_testkit::gateway_process::GatewayLauncher;
use parlor_testkit::hub::{ADMIN, PASSWORD};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;

/// Sections about models, which `model_documented` tests.
const MODEL_SECTIONS: [&str; 3] = ["A model", "A model for everybody: service agents", "Which agents answer"];

fn sections() -> impl Iterator<Item = &'static str> {
    let all = include_str!("../../../../../../docs/agents.md").split("\n## ");
    all.filter(|text| !MODEL_SECTIONS.contains(&text.lines().next().unwrap_or_default()))
}

/// Returns all commands in order: the lines of `sh` blocks, and text in backticks that starts with `parlor`.
fn commands() -> Vec<String> {
    let mut found = Vec::new();
    let mut language = None;
    for line in sections().flat_map(str::lines) {
        match (line.strip_prefix("```"), language) {
            (Some(_), Some(_)) => language = None,
            (Some(named), None) => language = Some(named),
            (None, Some("sh")) => {
                let command = line.split(" #").next().unwrap_or_default().trim();
                found.extend((!command.is_empty()).then(|| command.to_owned()));
            }
            (None, Some(_)) => {}
            (None, None) => {
                let quoted = line.split('`').skip(1).step_by(2);
                found.extend(quoted.filter(|text| text.starts_with("parlor ")).map(str::to_owned));
            }
        }
    }
    found
}

/// Returns all documented files in order.
fn files() -> Vec<&'static str> {
    let blocks = sections().flat_map(|text| text.split("\n```").skip(1).step_by(2));
    let files = blocks.filter_map(|block| match block.split_once('\n')? {
        ("sh", _) => None,
        ("toml", text) => Some(text),
        (other, _) => panic!("code blocks in {other} are not tested"),
    });
    files.collect()
}

/// A hub, a room of its admin, and the directory of a gateway.
struct DocumentedSetup {
    scene: Scene,
    place: TempDir,
    room: String,
    at_admin: Client,
    /// Number of questions so far; it makes each question unique.
    questions: u32,
}

impl DocumentedSetup {
    async fn new() -> Self {
        let scene = Scene::start().await;
        let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
        let at_admin = following(&scene.admin, &room).await;
        Self { scene, place: tempfile::tempdir().unwrap(), room, at_admin, questions: 0 }
    }

    /// Runs a command on the hub's machine. Returns whether it succeeded, and its output.
    async fn run(&self, line: &str) -> (bool, String) {
        let arguments: Vec<&str> = line.split(' ').skip(1).collect();
        let data = self.scene.data().to_str().unwrap();
        parlor_in(self.place.path(), &[("PARLOR_DATA", data)], &arguments).await
    }

    /// Returns a launcher for a `parlor gateway` command, with its placeholders replaced.
    fn gateway(&self, line: &str, replacements: &[(&str, &str)]) -> GatewayLauncher {
        let line = replacements.iter().fold(line.to_owned(), |line, (from, to)| line.replace(from, to));
        let arguments: Vec<&str> = line.split(' ').skip(2).collect();
        GatewayLauncher::with_arguments(PARLOR, self.place.path(), &arguments)
    }

    /// Adds the agent to the room and expects that it answers a mention.
    async fn answers(&mut self, agent: &str) {
        let id = registered(&self.scene.admin, agent).await;
        let path = format!("/api/rooms/{}/members", self.room);
        let body = json!({ "memberId": id, "memberType": "agent" });
        self.scene.admin.post(&path, body).await.unwrap();
        self.questions += 1;
        let question = format!("@{agent} are you there? ({})", self.questions);
        self.at_admin.say_and_wait(&self.room, &question, &question).await.unwrap();
        let reply = next(&mut self.at_admin, "server:message_complete").await["message"].clone();
        assert!(reply["content"].as_str().unwrap().contains(&question), "{reply}");
    }

    async fn hosts(&mut self, gateway_launcher: GatewayLauncher, agent: &str) {
        let mut gateway = gateway_launcher.start().await.unwrap();
        self.answers(agent).await;
        assert!(gateway.terminate().await.unwrap().success());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_documented_command_works() {
    let mut setup = DocumentedSetup::new().await;
    let url = setup.scene.url().to_owned();
    for command in commands() {
        match &*command {
            "parlor agent add echo command -- cat" => {
                let (added, printed) = setup.run(&command).await;
                assert!(added, "{printed}");
                setup.answers("echo").await;
            }
            "parlor agent list" => {
                let (listed, printed) = setup.run(&command).await;
                let folder = setup.place.path().to_str().unwrap();
                assert!(listed && printed.contains("echo") && printed.contains(folder), "{printed}");
            }
            "parlor agent rm echo" => {
                let (removed, printed) = setup.run(&command).await;
                assert!(removed && printed.contains("Removed echo"), "{printed}");
            }
            "parlor join BCDF-GHJK-LMNP --server https://chat.example.org" => {
                let code = setup.scene.admin.post("/api/pairing", json!({})).await.unwrap().data().unwrap();
                let line = command.replace("BCDF-GHJK-LMNP", code["code"].as_str().unwrap());
                let line = line.replace("https://chat.example.org", &url);
                let data = setup.place.path().join("data");
                let line = format!("{line} --data {}", data.display());
                let (joined, printed) = setup.run(&line).await;
                assert!(joined, "{printed}");
            }
            "parlor gateway --agent echo=command -- cat" => {
                setup.hosts(setup.gateway(&command, &[]), "echo").await;
            }
            // These are only registered here; `cargo xtask test real-agents` tests them with the real
            // programs.
            "parlor agent add coder claude" | "parlor agent add codex acp:codex" => {
                let (added, printed) = setup.run(&command).await;
                assert!(added, "{printed}");
                registered(&setup.scene.admin, command.split(' ').nth(3).unwrap()).await;
            }
            "parlor gateway --agent coder=claude:."
            | "parlor gateway --agent gemini=acp:gemini:. --agent open=acp:opencode:." => {
                let mut gateway = setup.gateway(&command, &[]).start().await.unwrap();
                for agent in command.split("--agent ").skip(1) {
                    registered(&setup.scene.admin, agent.split('=').next().unwrap()).await;
                }
                assert!(gateway.terminate().await.unwrap().success());
            }
            "parlor gateway --server URL --user ada …" => {
                let rest = "--agent byname=command -- cat";
                let replacements = [("URL", &*url), ("ada", ADMIN), ("…", rest)];
                let gateway_launcher =
                    setup.gateway(&command, &replacements).env("PARLOR_PASSWORD", PASSWORD);
                setup.hosts(gateway_launcher, "byname").await;
            }
            "parlor gateway --server URL --key-file FILE …" => {
                let file = setup.place.path().join("key");
                let (_, key) = make_key(&setup.scene.admin, &["hosting"]).await;
                std::fs::write(&file, key).unwrap();
                let rest = "--agent bykey=command -- cat";
                let replacements = [("URL", &*url), ("FILE", file.to_str().unwrap()), ("…", rest)];
                setup.hosts(setup.gateway(&command, &replacements), "bykey").await;
            }
            "parlor gateway doctor" => {
                let line = "parlor gateway doctor --agent echo=command -- cat";
                let (passed, printed) = setup.run(line).await;
                assert!(passed && printed.contains("It runs"), "{printed}");
            }
            "parlor doctor" => {
                let (_, printed) = setup.run(&command).await;
                assert!(printed.contains("hub"), "{printed}");
            }
            "parlor freeze ROOM" => {
                let (frozen, printed) = setup.run(&command.replace("ROOM", &setup.room)).await;
                assert!(frozen, "{printed}");
                let room = setup
                    .scene
                    .admin
                    .get(&format!("/api/rooms/{}", setup.room))
                    .await
                    .unwrap()
                    .data()
                    .unwrap();
                assert!(room["frozenAt"].is_string(), "{room}");
            }
            untested => panic!("docs/agents.md has a command that is not tested: {untested}"),
        }
    }
    setup.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_documented_file_is_valid() {
    for text in files() {
        let place = tempfile::tempdir().unwrap();
        let text = text.replace("/srv/project", place.path().to_str().unwrap());
        let script = place.path().join("answer.sh");
        std::fs::write(&script, "#!/bin/sh\ncat\n").unwrap();
        std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
        match () {
            () if text.contains("owner = ") => check_hub_file(place.path(), &text).await,
            () if text.contains("server = ") => check_gateway_file(&text).await,
            () => panic!("docs/agents.md has a file that is not tested: {text}"),
        }
    }
}

async fn check_hub_file(place: &Path, text: &str) {
    let file = place.join("parlor.toml");
    std::fs::write(&file, text.replace("\"ada\"", &format!("\"{ADMIN}\""))).unwrap();
    let scene = Scene::process_set(&[("PARLOR_CONFIG", file.to_str().unwrap())]).await;
    registered(&scene.admin, "echo").await;
    scene.ends_well().await;
}

async fn check_gateway_file(text: &str) {
    let mut setup = DocumentedSetup::new().await;
    let text = text.replace("https://chat.example.org", setup.scene.url());
    let gateway_launcher = GatewayLauncher::new(PARLOR, setup.place.path(), &text);
    let (_, key) = make_key(&setup.scene.admin, &["hosting"]).await;
    setup.hosts(gateway_launcher.env("PARLOR_KEY", &key), "coder").await;
    setup.scene.ends_well().await;
}
