//! The mirror of conversation logs in `sessions/{id}.jsonl`.

use super::Root;
use parlor::instance::Platform;
use parlor::serve::RunningHub;
use parlor::settings::{self, Settings, Sources};
use parlor_engine::Hub;
use parlor_model::command::{StartTurn, TurnCause};
use parlor_model::query::{FindAccount, GetAgent};
use parlor_model::{AgentId, Caller, Refusal, SessionId};
use parlor_testkit::hub::{ADMIN, PASSWORD};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

fn load(data: &Path, root: &Path) -> Settings {
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let flags = BTreeMap::from([
        ("listen", "127.0.0.1:0".to_owned()),
        ("data", text(data)),
        ("agents_root", text(root)),
    ]);
    let environment = [("PARLOR_ADMIN_PASSWORD", PASSWORD), ("PARLOR_WELCOME", "off")];
    let environment = environment.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
    settings::load(&Sources { flags, environment, config: None }).unwrap().settings
}

/// Starts a run of the agent `coder` in a session, once the hub has read its folder.
async fn start(hub: &Hub, root: &Root, session: &str, prompt: &str) {
    root.wait_for_json("coder/sessions/main.json", |main| main["id"] == "main").await;
    let account = FindAccount { username: ADMIN.into() };
    let owner = hub.read(&Caller::OPERATOR, account).await.unwrap().unwrap();
    let caller = Caller::connector(owner.id);
    let agent = AgentId::stored("coder");
    assert!(!matches!(hub.read(&caller, GetAgent { id: agent.clone() }).await, Err(Refusal::NotFound(_))));
    let cause = TurnCause::Explicit { prompt: prompt.into() };
    hub.execute(&caller, StartTurn { agent, session: SessionId::stored(session), cause }).await.unwrap();
}

fn entries(content: &str) -> Vec<(String, String)> {
    let lines = content.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    lines.map(|line| (text(&line["type"]), text(&line["text"]))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn conversation_logs_are_mirrored_and_continued_after_a_restart() {
    let root = Root::new();
    root.write_agent("coder", json!({}));
    let data = tempfile::tempdir().unwrap();
    let settings = load(data.path(), &root.path(""));
    let file = "coder/sessions/side.jsonl";
    let has = |count: usize| {
        move |content: &str| {
            (content.ends_with('\n') && content.lines().count() == count).then(|| entries(content))
        }
    };
    let hub = RunningHub::start(&settings, None, Platform::default()).await.unwrap();
    start(&hub.engine(), &root, "side", "the first prompt").await;
    let found = root.wait_for(file, has(2)).await;
    assert_eq!(found[0], ("prompt".to_owned(), "the first prompt".to_owned()));
    assert!(found[1].0 == "result" && found[1].1.contains("the first prompt"), "{found:?}");
    hub.stop().await;

    let hub = RunningHub::start(&settings, None, Platform::default()).await.unwrap();
    start(&hub.engine(), &root, "side", "the second prompt").await;
    let found = root.wait_for(file, has(4)).await;
    assert_eq!(found[2].1, "the second prompt", "nothing is repeated: {found:?}");
    root.wait_for_json("coder/sessions/side.json", |side| side["lastUsedAt"].is_u64()).await;
    hub.stop().await;
}
