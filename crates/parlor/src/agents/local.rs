//! The agents that a hub hosts itself: those of its settings file, and those that were added by command.
//!
//! They live in the same gateway as agents anywhere else, over a link within the process: the hub gives them no way
//! around its rules.

use super::entry::{self, AgentEntry};
use super::in_process;
use anyhow::{Context, bail};
use parlor_agents::gateway::store::{GatewayStore, replace};
use parlor_agents::gateway::{AgentSpec, Gateway};
use parlor_engine::decide::HUB;
use parlor_model::command::AgentRegistration;
use parlor_model::{AgentId, Answer, Caller, Command, GatewayId, Query, Refusal, SiteRole, UserId};
use parlor_server::App;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::watch;

/// An agent of the hub, and whose it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LocalAgent {
    /// The name to sign in with; the first admin if nobody is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    #[serde(flatten)]
    pub entry: AgentEntry,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct LocalAgentsFile {
    #[serde(default)]
    agent: Vec<LocalAgent>,
}

/// Which agents the hub hosts. What is added is kept in a file in the data directory.
#[derive(Debug)]
pub struct LocalAgents {
    data: PathBuf,
    /// Of the settings file, which people write.
    configured: Vec<LocalAgent>,
    changed: watch::Sender<u64>,
}

impl LocalAgents {
    pub fn open(data: &Path, config: Option<&Path>) -> anyhow::Result<Self> {
        let configured = match config {
            Some(path) => entry::read::<Configured>(path)?.agent,
            None => Vec::new(),
        };
        for agent in &configured {
            agent.entry.check()?;
        }
        Ok(Self { data: data.to_owned(), configured, changed: watch::Sender::new(0) })
    }

    pub fn list(&self) -> anyhow::Result<Vec<LocalAgent>> {
        let mut all = self.configured.clone();
        let added = self.added()?.agent;
        all.extend(added.into_iter().filter(|one| !self.is_configured(&one.entry.name)));
        Ok(all)
    }

    pub fn add(&self, agent: LocalAgent) -> anyhow::Result<()> {
        agent.entry.check()?;
        let mut file = self.added()?;
        let name = &agent.entry.name;
        if self.is_configured(name) || file.agent.iter().any(|known| known.entry.name == *name) {
            bail!("there is an agent of the name {name} already");
        }
        file.agent.push(agent);
        self.write(&file)
    }

    pub fn remove(&self, name: &str) -> anyhow::Result<()> {
        if self.is_configured(name) {
            bail!("{name} is in the settings file: remove it there");
        }
        let mut file = self.added()?;
        let known = file.agent.len();
        file.agent.retain(|agent| agent.entry.name != name);
        if file.agent.len() == known {
            bail!("there is no agent of the name {name} here");
        }
        self.write(&file)
    }

    fn is_configured(&self, name: &str) -> bool {
        self.configured.iter().any(|agent| agent.entry.name == name)
    }

    fn path(&self) -> PathBuf {
        self.data.join("agents.toml")
    }

    fn added(&self) -> anyhow::Result<LocalAgentsFile> {
        let path = self.path();
        if path.exists() { entry::read(&path) } else { Ok(LocalAgentsFile::default()) }
    }

    fn write(&self, file: &LocalAgentsFile) -> anyhow::Result<()> {
        let text = toml::to_string(file).context("cannot be written down")?;
        let path = self.path();
        replace(&path, text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
        self.changed.send_modify(|count| *count += 1);
        Ok(())
    }

    /// The id under which the hub knows an agent of this name, if it was ever hosted.
    pub fn id(&self, name: &str) -> Option<AgentId> {
        #[derive(Deserialize)]
        struct Identity {
            agents: std::collections::BTreeMap<String, String>,
        }
        let known = std::fs::read(self.directory().join("gateway.json")).ok()?;
        let known: Identity = serde_json::from_slice(&known).ok()?;
        AgentId::parse(known.agents.get(name)?).ok()
    }

    /// Where the gateway of these agents keeps its own things.
    pub fn directory(&self) -> PathBuf {
        self.data.join("agents")
    }
}

/// What of a settings file concerns agents.
#[derive(Debug, Deserialize)]
struct Configured {
    #[serde(default)]
    agent: Vec<LocalAgent>,
}

/// Hosts what is on the roster, for as long as the hub runs.
pub async fn run_loop(app: Arc<App>, local_agents: Arc<LocalAgents>) {
    if let Err(error) = host(&app, &local_agents).await {
        tracing::error!(error = format!("{error:#}"), "the agents of this hub cannot be hosted");
    }
}

async fn host(app: &App, local_agents: &LocalAgents) -> anyhow::Result<()> {
    let mut changed = local_agents.changed.subscribe();
    // Without an agent nothing is made on the disk.
    while local_agents.list()?.is_empty() {
        changed.changed().await?;
    }
    if app.hub.wait_for_first_admin().await.is_err() {
        return Ok(());
    }
    let (data, mut gateway) =
        in_process::open(&local_agents.directory()).context("cannot use the directory of the agents")?;
    loop {
        changed.mark_unchanged();
        let owner = sync_gateway(app, local_agents, &data, &mut gateway).await?;
        let mut later = changed.clone();
        // The roster lives as long as this does.
        let news = async { drop(later.changed().await) };
        match owner {
            Some(owner) => in_process::connect(app, &owner, &mut gateway, news).await,
            None => news.await,
        }
    }
}

/// Makes the hub know every agent on the roster and the gateway host it; gives the owner of one of them.
async fn sync_gateway(
    app: &App,
    local_agents: &LocalAgents,
    data: &GatewayStore,
    gateway: &mut Gateway,
) -> anyhow::Result<Option<UserId>> {
    let (mut some_owner, mut known) = (None, Vec::new());
    for LocalAgent { owner: named, entry } in local_agents.list()? {
        let id = data.agent(&entry.name)?;
        known.push(id.clone());
        let of = match owner(&app.hub, named.as_deref()).await {
            Ok(of) => of,
            Err(refusal) => {
                tracing::warn!(agent = entry.name, ?refusal, "an agent of this hub has no owner");
                continue;
            }
        };
        let new = registration(&id, &entry);
        match app.hub.execute(&Caller::OPERATOR, Command::HostAgent { owner: of.clone(), new }).await {
            Ok(_) => {
                some_owner.get_or_insert(of);
                let plan = AgentSpec { id, name: entry.name.as_str().into(), agent_config: entry.recipe };
                if let Err(problem) = gateway.add(plan) {
                    tracing::warn!(agent = entry.name, %problem, "an agent of this hub cannot be hosted");
                }
            }
            Err(refusal) => tracing::warn!(agent = entry.name, ?refusal, "the hub does not take an agent"),
        }
    }
    gateway.keep_only(&known);
    Ok(some_owner)
}

fn registration(id: &AgentId, entry: &AgentEntry) -> AgentRegistration {
    let directory = entry.recipe.directory.as_ref().map(|path| path.display().to_string().into());
    AgentRegistration {
        gateway: GatewayId::stored(HUB),
        id: id.clone(),
        name: entry.name.as_str().into(),
        kind: entry.recipe.kind.as_str().into(),
        working_directory: directory,
        capabilities: vec!["rewind".into()],
        model: entry.recipe.extra.get("model").and_then(|model| model.as_str()).map(Into::into),
        slash_commands: None,
        mcp_servers: None,
    }
}

/// The person of that name, or the first admin.
pub async fn owner(hub: &parlor_engine::Hub, named: Option<&str>) -> Result<UserId, Refusal> {
    let missing = Refusal::NotFound(parlor_model::EntityKind::User);
    if let Some(name) = named {
        return hub.account(name).await?.map(|user| user.id).ok_or(missing);
    }
    let everyone = Query::Users { limit: 1_000_000, offset: 0 };
    let Answer::Users { users, .. } = hub.read(&Caller::OPERATOR, everyone).await? else {
        return Err(Refusal::Unavailable);
    };
    let admins = users.into_iter().filter(|user| user.role == SiteRole::Admin);
    admins.min_by_key(|user| user.created_at).map(|user| user.id).ok_or(missing)
}
