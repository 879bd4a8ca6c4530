//! Executes the commands and files about models in `docs/agents.md` exactly as documented.

use super::registered;
use crate::gateway::scenes::Room;
use crate::scene::{PARLOR, Scene};
use crate::service_agents::allowed;
use parlor_testkit::model_endpoint::{ModelEndpoint, ScriptedResponse};
use parlor_testkit::rest::RestClient;
use serde_json::{Value, json};
use std::path::Path;

const DOCUMENT: &str = include_str!("../../../../../../docs/agents.md");

/// Returns the code blocks of a section in one language, with the test endpoint instead of Ollama.
fn blocks(section: &str, language: &str, endpoint: &ModelEndpoint) -> Vec<String> {
    let section = DOCUMENT.split("\n## ").find(|text| text.starts_with(&format!("{section}\n")));
    let mut blocks = section.unwrap_or_else(|| panic!("no section {section:?}")).split("\n```");
    let mut found = Vec::new();
    // Text and code blocks alternate.
    while let (Some(_), Some(block)) = (blocks.next(), blocks.next()) {
        let (kind, block) = block.split_once('\n').unwrap();
        if kind == language {
            found.push(block.replace("http://localhost:11434", &endpoint.url));
        }
    }
    found
}

/// A shell in which `parlor` is the binary under test.
struct Shell<'a> {
    place: tempfile::TempDir,
    scene: &'a Scene,
    variables: Vec<(&'static str, String)>,
}

impl<'a> Shell<'a> {
    fn new(scene: &'a Scene, person: &RestClient) -> Self {
        let place = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(PARLOR, place.path().join("parlor")).unwrap();
        let variables = vec![("HUB", scene.url().to_owned()), ("TOKEN", person.token().to_owned())];
        Self { place, scene, variables }
    }

    fn with(mut self, name: &'static str, value: &str) -> Self {
        self.variables.push((name, value.to_owned()));
        self
    }

    /// Runs a block of commands, all of which must succeed. Returns its output.
    async fn run(&self, block: &str) -> String {
        let paths = [self.place.path().to_owned(), Path::new("/usr/bin").into(), Path::new("/bin").into()];
        let done = tokio::process::Command::new("sh")
            .args(["-e", "-c", block])
            .current_dir(self.place.path())
            .env("PATH", std::env::join_paths(paths).unwrap())
            .env("PARLOR_DATA", self.scene.data())
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .output();
        let done = done.await.unwrap();
        assert!(done.status.success(), "{block}\n{done:?}");
        String::from_utf8(done.stdout).unwrap()
    }

    /// Runs a block of `curl` commands and returns the response of each. All requests must succeed.
    async fn requests(&self, block: &str) -> Vec<Value> {
        let printed = self.run(block).await;
        let answers = serde_json::Deserializer::from_str(&printed).into_iter::<Value>();
        let answers: Vec<Value> = answers.map(Result::unwrap).collect();
        for answer in &answers {
            assert_eq!(answer["ok"], true, "{block}\n{printed}");
        }
        assert_eq!(answers.len(), block.matches("curl ").count(), "{printed}");
        answers
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_added_by_command() {
    let endpoint = ModelEndpoint::start().await.unwrap();
    let scene = Scene::start().await;
    let [add] = &blocks("A model", "sh", &endpoint)[..] else { panic!("one command") };
    let printed = Shell::new(&scene, &scene.admin).run(add).await;
    assert!(printed.contains("write @Sage"), "{printed}");
    expect_answer(scene, "Sage", "Hello from llama3.2").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_defined_in_a_file() {
    let mut endpoint = ModelEndpoint::start().await.unwrap();
    let place = tempfile::tempdir().unwrap();
    let config = place.path().join("parlor.toml");
    let [triage] = &blocks("Which agents answer", "toml", &endpoint)[..] else { panic!("one block") };
    let [agent] = &blocks("A model", "toml", &endpoint)[..] else { panic!("one block") };
    std::fs::write(&config, format!("{triage}\n{agent}")).unwrap();
    let scene = Scene::with(&[("PARLOR_CONFIG", config.to_str().unwrap())]).await;
    for _ in 0..3 {
        endpoint.respond_with(ScriptedResponse::status(503, "busy"));
    }
    expect_answer(scene, "Sage", "Hello from llama3.2:1b").await;
    let system = endpoint.asked().await.unwrap().body["messages"][0]["content"].clone();
    assert!(system.as_str().unwrap().starts_with("You answer in one paragraph."), "{system}");
}

/// Adds the agent to a room and expects this answer.
async fn expect_answer(scene: Scene, name: &str, text: &str) {
    let agent = registered(&scene.admin, name).await;
    let share = json!({ "visibility": "all" });
    scene.admin.put(&format!("/api/agents/{agent}"), share).await.unwrap().data().unwrap();
    let mut room = Room::on(scene).await;
    room.add(&agent).await;
    room.say(&format!("@{name} hello")).await;
    assert_eq!(room.reply().await["content"], text);
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_agent_is_created_changed_and_removed() {
    let endpoint = ModelEndpoint::start().await.unwrap();
    let mut room = Room::on(Scene::with(&[allowed(&endpoint)]).await).await;
    let section = "A model for everybody: service agents";
    let [make, change] = &blocks(section, "sh", &endpoint)[..] else { panic!("two blocks") };
    let shell = Shell::new(&room.scene, &room.scene.admin);
    let made = shell.requests(make).await.remove(0)["data"].clone();
    let id = made["id"].as_str().unwrap();
    registered(&room.scene.admin, "Oracle").await;
    room.add(id).await;
    room.say("@Oracle hello").await;
    assert_eq!(room.reply().await["content"], "Hello from llama3.2");
    let shell = Shell::new(&room.scene, &room.scene.admin).with("ID", id);
    let answers = shell.requests(change).await;
    assert_eq!(answers[0]["data"], json!({ "valid": true }));
    assert_eq!(answers[1]["data"]["config"]["model"], "llama3.3");
    assert_eq!(answers[2]["data"]["status"], "inactive");
    let left = room.scene.admin.get("/api/service-agents").await.unwrap().data().unwrap();
    assert_eq!(left, json!([]));
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_router_picks_the_agent_that_answers() {
    let endpoint = ModelEndpoint::start().await.unwrap();
    let mut room = Room::on(Scene::with(&[allowed(&endpoint)]).await).await;
    let mut gateway = room.gateway("g1", &["anna", "bert"]).await;
    let [make, give] = &blocks("Which agents answer", "sh", &endpoint)[..] else { panic!("two blocks") };
    let router = Shell::new(&room.scene, &room.alice).requests(make).await.remove(0)["data"].clone();
    let shell = Shell::new(&room.scene, &room.alice).with("ID", router["id"].as_str().unwrap());
    let answers = shell.with("ROOM", &room.room).requests(give).await;
    assert_eq!(answers[0]["data"], json!({ "success": true }));
    assert_eq!(answers[1]["data"]["routerId"], router["id"]);
    endpoint.respond_with(ScriptedResponse::say("YES 2"));
    room.say("who can bake?").await;
    assert_eq!(gateway.turn().await.unwrap()["agentId"], "bert");
    room.scene.ends_well().await;
}
