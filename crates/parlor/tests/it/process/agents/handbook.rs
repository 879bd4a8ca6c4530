//! `docs/agents.md`: whatever it tells people to type or to write into a file does what it says. A command or a file
//! that is not known here fails the test, so that none is written there untried.

use super::{parlor_in, registered};
use crate::scene::{PARLOR, Scene, following, make_key, next};
use parlor_testkit::agentim::Client;
use parlor_testkit::gateway_process::GatewayLauncher;
use parlor_testkit::hub::{ADMIN, PASSWORD};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;

/// What it says of models is tried by `model_documented`.
const OF_MODELS: [&str; 3] = ["A model", "A model for everybody: service agents", "Which agents answer"];

fn sections() -> impl Iterator<Item = &'static str> {
    let all = include_str!("../../../../../../docs/agents.md").split("\n## ");
    all.filter(|text| !OF_MODELS.contains(&text.lines().next().unwrap_or_default()))
}

/// Commands in their order: lines of blocks of the language `sh`, and words in backticks that begin with `parlor`.
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
                found.extend(quoted.filter(|words| words.starts_with("parlor ")).map(str::to_owned));
            }
        }
    }
    found
}

/// Files in their order.
fn files() -> Vec<&'static str> {
    let blocks = sections().flat_map(|text| text.split("\n```").skip(1).step_by(2));
    let files = blocks.filter_map(|block| match block.split_once('\n')? {
        ("sh", _) => None,
        ("toml", text) => Some(text),
        (other, _) => panic!("nobody tries what is written in {other}"),
    });
    files.collect()
}

/// A hub, a room of its admin's, and another machine.
struct House {
    scene: Scene,
    place: TempDir,
    room: String,
    at_admin: Client,
    asked: u32,
}

impl House {
    async fn new() -> Self {
        let scene = Scene::start().await;
        let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
        let at_admin = following(&scene.admin, &room).await;
        Self { scene, place: tempfile::tempdir().unwrap(), room, at_admin, asked: 0 }
    }

    /// What is typed on the hub's machine, in the directory in which the hub was started.
    async fn typed(&self, line: &str) -> (bool, String) {
        let words: Vec<&str> = line.split(' ').skip(1).collect();
        let data = self.scene.data().to_str().unwrap();
        parlor_in(self.place.path(), &[("PARLOR_DATA", data)], &words).await
    }

    /// What is typed on the other one, with this in place of what the reader has to fill in.
    fn elsewhere(&self, line: &str, filled_in: &[(&str, &str)]) -> GatewayLauncher {
        let line = filled_in.iter().fold(line.to_owned(), |line, (from, to)| line.replace(from, to));
        let words: Vec<&str> = line.split(' ').skip(2).collect();
        GatewayLauncher::with_arguments(PARLOR, self.place.path(), &words)
    }

    /// It can be brought into a room, and answers there.
    async fn answers(&mut self, agent: &str) {
        let id = registered(&self.scene.admin, agent).await;
        let path = format!("/api/rooms/{}/members", self.room);
        let body = json!({ "memberId": id, "memberType": "agent" });
        self.scene.admin.post(&path, body).await.unwrap();
        self.asked += 1;
        let question = format!("@{agent} are you there? ({})", self.asked);
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
async fn every_command_does_what_it_says() {
    let mut house = House::new().await;
    let url = house.scene.url().to_owned();
    for command in commands() {
        match &*command {
            "parlor agent add echo command -- cat" => {
                let (added, printed) = house.typed(&command).await;
                assert!(added, "{printed}");
                house.answers("echo").await;
            }
            "parlor agent list" => {
                let (listed, printed) = house.typed(&command).await;
                let folder = house.place.path().to_str().unwrap();
                assert!(listed && printed.contains("echo") && printed.contains(folder), "{printed}");
            }
            "parlor agent rm echo" => {
                let (removed, printed) = house.typed(&command).await;
                assert!(removed && printed.contains("Removed echo"), "{printed}");
            }
            "parlor join BCDF-GHJK-LMNP --server https://chat.example.org" => {
                let code = house.scene.admin.post("/api/pairing", json!({})).await.unwrap().data().unwrap();
                let line = command.replace("BCDF-GHJK-LMNP", code["code"].as_str().unwrap());
                let line = line.replace("https://chat.example.org", &url);
                let data = house.place.path().join("data");
                let line = format!("{line} --data {}", data.display());
                let (joined, printed) = house.typed(&line).await;
                assert!(joined, "{printed}");
            }
            "parlor gateway --agent echo=command -- cat" => {
                house.hosts(house.elsewhere(&command, &[]), "echo").await;
            }
            // Whether they answer is shown with the programs themselves: `cargo xtask test real-agents`.
            "parlor agent add coder claude" | "parlor agent add codex acp:codex" => {
                let (added, printed) = house.typed(&command).await;
                assert!(added, "{printed}");
                registered(&house.scene.admin, command.split(' ').nth(3).unwrap()).await;
            }
            "parlor gateway --agent coder=claude:."
            | "parlor gateway --agent gemini=acp:gemini:. --agent open=acp:opencode:." => {
                let mut gateway = house.elsewhere(&command, &[]).start().await.unwrap();
                for agent in command.split("--agent ").skip(1) {
                    registered(&house.scene.admin, agent.split('=').next().unwrap()).await;
                }
                assert!(gateway.terminate().await.unwrap().success());
            }
            "parlor gateway --server URL --user ada …" => {
                let rest = "--agent byname=command -- cat";
                let filled_in = [("URL", &*url), ("ada", ADMIN), ("…", rest)];
                let gateway_launcher = house.elsewhere(&command, &filled_in).env("PARLOR_PASSWORD", PASSWORD);
                house.hosts(gateway_launcher, "byname").await;
            }
            "parlor gateway --server URL --key-file FILE …" => {
                let file = house.place.path().join("key");
                let (_, key) = make_key(&house.scene.admin, &["hosting"]).await;
                std::fs::write(&file, key).unwrap();
                let rest = "--agent bykey=command -- cat";
                let filled_in = [("URL", &*url), ("FILE", file.to_str().unwrap()), ("…", rest)];
                house.hosts(house.elsewhere(&command, &filled_in), "bykey").await;
            }
            "parlor gateway doctor" => {
                let line = "parlor gateway doctor --agent echo=command -- cat";
                let (well, printed) = house.typed(line).await;
                assert!(well && printed.contains("It runs"), "{printed}");
            }
            "parlor doctor" => {
                let (_, printed) = house.typed(&command).await;
                assert!(printed.contains("hub"), "{printed}");
            }
            "parlor freeze ROOM" => {
                let (frozen, printed) = house.typed(&command.replace("ROOM", &house.room)).await;
                assert!(frozen, "{printed}");
                let room = house
                    .scene
                    .admin
                    .get(&format!("/api/rooms/{}", house.room))
                    .await
                    .unwrap()
                    .data()
                    .unwrap();
                assert!(room["frozenAt"].is_string(), "{room}");
            }
            untried => panic!("docs/agents.md has a command that is tried nowhere: {untried}"),
        }
    }
    house.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_file_is_understood() {
    for text in files() {
        let place = tempfile::tempdir().unwrap();
        let text = text.replace("/srv/project", place.path().to_str().unwrap());
        let script = place.path().join("answer.sh");
        std::fs::write(&script, "#!/bin/sh\ncat\n").unwrap();
        std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
        match () {
            () if text.contains("owner = ") => of_a_hub(place.path(), &text).await,
            () if text.contains("server = ") => of_a_gateway(&text).await,
            () => panic!("docs/agents.md has a file that is tried nowhere: {text}"),
        }
    }
}

async fn of_a_hub(place: &Path, text: &str) {
    let file = place.join("parlor.toml");
    std::fs::write(&file, text.replace("\"ada\"", &format!("\"{ADMIN}\""))).unwrap();
    let scene = Scene::process_set(&[("PARLOR_CONFIG", file.to_str().unwrap())]).await;
    registered(&scene.admin, "echo").await;
    scene.ends_well().await;
}

async fn of_a_gateway(text: &str) {
    let mut house = House::new().await;
    let text = text.replace("https://chat.example.org", house.scene.url());
    let gateway_launcher = GatewayLauncher::new(PARLOR, house.place.path(), &text);
    let (_, key) = make_key(&house.scene.admin, &["hosting"]).await;
    house.hosts(gateway_launcher.env("PARLOR_KEY", &key), "coder").await;
    house.scene.ends_well().await;
}
