//! The agents of the agents root: which program runs each of them.

use super::local::{self, LocalAgents};
use parlor_agents::gateway::AgentSpec;
use parlor_agents::kinds::{AgentConfig, AgentKind};
use parlor_engine::Hub;
use parlor_folders::{Host, HostSpec, HostedFolder, Synchroniser};
use parlor_model::UserId;
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::watch;

/// Keeps the folders in step until the hub stops. `owner` is the username of the account that the agents belong to; `None`
/// for the first admin.
pub async fn run_loop(
    hub: Hub,
    synchroniser: Synchroniser,
    local_agents: Arc<LocalAgents>,
    owner: Option<String>,
    mut stop: watch::Receiver<bool>,
) {
    tokio::select! {
        ready = hub.wait_for_first_admin() => if ready.is_err() { return },
        _ = stop.wait_for(|stop| *stop) => return,
    }
    let owner = match local::owner(&hub, owner.as_deref()).await {
        Ok(owner) => owner,
        Err(_) => {
            let name = owner.unwrap_or_default();
            tracing::error!(agents_owner = name, "the agents root is not read: the account does not exist");
            return;
        }
    };
    let host = Arc::new(FolderHost { owner: owner.clone(), local_agents });
    synchroniser.run(hub, owner, host, stop).await;
}

struct FolderHost {
    owner: UserId,
    local_agents: Arc<LocalAgents>,
}

impl Host for FolderHost {
    fn check(&self, spec: &HostSpec) -> Result<HostedFolder, String> {
        let config = config(spec)?;
        AgentKind::new(&config)?;
        let directory = config.directory.unwrap_or_else(|| spec.folder.clone());
        Ok(HostedFolder { kind: config.kind.into(), directory })
    }

    fn host(&self, agents: Vec<HostSpec>) {
        let specs = agents.into_iter().filter_map(|spec| {
            let agent_config = config(&spec).ok()?;
            Some(AgentSpec { id: spec.id, name: spec.name, agent_config })
        });
        self.local_agents.set_folders(&self.owner, specs.collect());
    }
}

/// The configuration of an agent: that of its file or, without one, Claude Code in its folder with the default model.
///
/// Claude Code and other programs read `CLAUDE.md` of their working directory and of the directories above it themselves. A
/// model has no files, so it gets the text as its instructions.
fn config(spec: &HostSpec) -> Result<AgentConfig, String> {
    let mut config = match &spec.host {
        None => AgentConfig { kind: "claude".into(), ..AgentConfig::default() },
        Some(json) => serde_json::from_str::<AgentConfig>(json).map_err(|_| {
            "the field parlor must be an object with kind, and optionally directory, command and environment"
                .to_owned()
        })?,
    };
    config.directory = Some(match config.directory.take() {
        Some(directory) => spec.folder.join(directory),
        None => spec.folder.clone(),
    });
    let adds_directories = config.kind().0 == "claude" && !spec.work_dirs.is_empty();
    match (config.kind().0, &spec.default_model) {
        ("claude", Some(model)) if config.command.is_empty() && !model.is_empty() => {
            config.command = vec!["claude".into(), "--model".into(), model_name(model)?];
        }
        ("model", model) => {
            if let Some(model) = model.as_ref().filter(|_| !config.extra.contains_key("model")) {
                config.extra.insert("model".into(), Value::String(model.clone()));
            }
            let own = config.extra.get("instructions").and_then(Value::as_str).unwrap_or_default().trim();
            let parts = [own, spec.instructions.trim()].map(str::to_owned);
            let text = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n");
            if !text.is_empty() {
                config.extra.insert("instructions".into(), Value::String(text));
            }
        }
        _ => {}
    }
    if adds_directories {
        if config.command.is_empty() {
            config.command.push("claude".into());
        }
        for directory in &spec.work_dirs {
            let directory = directory.to_str().ok_or("workDirs has a path that is not UTF-8 text")?;
            config.command.extend(["--add-dir".into(), directory.into()]);
        }
    }
    Ok(config)
}

/// The name of a model as an argument of a program. Clients can set it, so it must not be another option.
fn model_name(model: &str) -> Result<String, String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.:/@[]".contains(c);
    match !model.starts_with('-') && model.len() <= 200 && model.chars().all(is_name) {
        true => Ok(model.to_owned()),
        false => Err("defaultModel is not the name of a model".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_model::AgentId;
    use std::path::{Path, PathBuf};

    fn spec(host: Option<&str>, model: Option<&str>) -> HostSpec {
        HostSpec {
            id: AgentId::stored("team/coder"),
            name: "Coder".into(),
            folder: PathBuf::from("/agents/team/coder"),
            default_model: model.map(Into::into),
            work_dirs: Vec::new(),
            host: host.map(Into::into),
            instructions: "Be brief.".into(),
        }
    }

    #[test]
    fn an_agent_without_a_kind_is_claude_in_its_folder_with_the_default_model() {
        let made = config(&spec(None, Some("haiku"))).unwrap();
        assert_eq!(
            (&*made.kind, made.directory.as_deref()),
            ("claude", Some(Path::new("/agents/team/coder")))
        );
        assert_eq!(made.command, ["claude", "--model", "haiku"]);
        assert!(config(&spec(None, None)).unwrap().command.is_empty());
    }

    #[test]
    fn claude_gets_the_working_directories() {
        let work_dirs = vec![PathBuf::from("/agents/shared"), PathBuf::from("/agents/x")];
        let added = ["--add-dir", "/agents/shared", "--add-dir", "/agents/x"];
        for (host, model, command) in [
            (None, None, &["claude"][..]),
            (None, Some("haiku"), &["claude", "--model", "haiku"]),
            (Some(r#"{"kind":"claude","command":["my-claude"]}"#), Some("haiku"), &["my-claude"]),
        ] {
            let spec = HostSpec { work_dirs: work_dirs.clone(), ..spec(host, model) };
            assert_eq!(config(&spec).unwrap().command, [command, &added].concat());
        }
        let other = Some(r#"{"kind":"command","command":["cat"]}"#);
        let spec = HostSpec { work_dirs, ..spec(other, None) };
        assert_eq!(config(&spec).unwrap().command, ["cat"]);
    }

    #[test]
    fn a_model_name_cannot_be_an_option() {
        for model in ["--dangerously-skip-permissions", "a b", "a\n"] {
            assert!(config(&spec(None, Some(model))).unwrap_err().contains("defaultModel"), "{model}");
        }
    }

    #[test]
    fn the_file_of_an_agent_can_name_its_kind() {
        let made = config(&spec(Some(r#"{"kind":"command","command":["cat"]}"#), Some("haiku"))).unwrap();
        assert_eq!((&*made.kind, made.command), ("command", vec!["cat".to_owned()]));
        let model = r#"{"kind":"model","base_url":"http://localhost:1/v1","instructions":"Own."}"#;
        let made = config(&spec(Some(model), Some("small"))).unwrap();
        assert_eq!(made.extra["model"], "small");
        assert_eq!(made.extra["instructions"], "Own.\n\nBe brief.");
        assert!(config(&spec(Some("7"), None)).unwrap_err().contains("parlor"));
    }
}
