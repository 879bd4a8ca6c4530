//! The agents that the hub hosts itself: from its settings file, added by `parlor agent add`, or in folders of the agents
//! root.
//!
//! They run in a gateway inside the hub process (see `in_process`), and the hub's rules apply to them as to
//! the agents of any other gateway.

use super::entry::{self, AgentEntry};
use super::in_process;
use super::run_environment::HostedEnvironment;
use anyhow::{Context, bail};
use parking_lot::Mutex;
use parlor_agents::gateway::store::{GatewayStore, replace};
use parlor_agents::gateway::{AgentSpec, Gateway};
use parlor_engine::HUB;
use parlor_folders::MoveRequest;
use parlor_model::command::{AgentRegistration, HostAgent};
use parlor_model::query::{FindAccount, ListUsers};
use parlor_model::{AgentId, Caller, GatewayId, Refusal, SiteRole, UserId};
use parlor_server::App;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};

/// An agent that the hub hosts, with its owner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LocalAgent {
    /// Username of the owner; if absent, the first admin owns the agent.
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

/// The list of agents that the hub hosts. Agents added by command are stored in `agents.toml` in the data
/// directory.
#[derive(Debug)]
pub struct LocalAgents {
    data: PathBuf,
    /// Agents of the settings file, which is never written by the hub.
    configured: Vec<LocalAgent>,
    folders: Mutex<FolderAgents>,
    changed: watch::Sender<u64>,
}

/// The agents of the agents root, which the synchroniser registers with the hub.
#[derive(Debug, Default)]
struct FolderAgents {
    owner: Option<UserId>,
    specs: Vec<AgentSpec>,
    /// Requests to move an agent; `None` if the hub has no agents root.
    moves: Option<mpsc::Sender<MoveRequest>>,
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
        let (folders, changed) = (Mutex::default(), watch::Sender::new(0));
        Ok(Self { data: data.to_owned(), configured, folders, changed })
    }

    pub fn list(&self) -> anyhow::Result<Vec<LocalAgent>> {
        let mut all = self.configured.clone();
        let added = self.added()?.agent;
        all.extend(added.into_iter().filter(|agent| !self.is_configured(&agent.entry.name)));
        Ok(all)
    }

    pub fn add(&self, agent: LocalAgent) -> anyhow::Result<()> {
        agent.entry.check()?;
        let mut file = self.added()?;
        let name = &agent.entry.name;
        if self.is_configured(name) || file.agent.iter().any(|existing| existing.entry.name == *name) {
            bail!("an agent named {name} already exists");
        }
        file.agent.push(agent);
        self.write(&file)
    }

    pub fn remove(&self, name: &str) -> anyhow::Result<()> {
        if self.is_configured(name) {
            bail!("{name} is defined in the settings file: remove it there");
        }
        let mut file = self.added()?;
        let count = file.agent.len();
        file.agent.retain(|agent| agent.entry.name != name);
        if file.agent.len() == count {
            bail!("there is no agent named {name}");
        }
        self.write(&file)
    }

    /// Accepts requests to move an agent of the agents root.
    pub fn accept_moves(&self, moves: mpsc::Sender<MoveRequest>) {
        self.folders.lock().moves = Some(moves);
    }

    /// Hosts exactly these agents of the agents root.
    pub fn set_folders(&self, owner: &UserId, specs: Vec<AgentSpec>) {
        let mut folders = self.folders.lock();
        if folders.specs == specs && folders.owner.as_ref() == Some(owner) {
            return;
        }
        (folders.owner, folders.specs) = (Some(owner.clone()), specs);
        drop(folders);
        self.changed.send_modify(|count| *count += 1);
    }

    /// Moves an agent of the agents root to another id.
    pub async fn move_folder(&self, from: AgentId, to: AgentId) -> anyhow::Result<()> {
        let moves = self.folders.lock().moves.clone().context("this hub has no agents root")?;
        let (reply, moved) = oneshot::channel();
        let stopped = "the hub is stopping";
        moves.send(MoveRequest { from, to, reply }).await.ok().context(stopped)?;
        moved.await.ok().context(stopped)?.map_err(anyhow::Error::msg)
    }

    fn has_agents(&self) -> anyhow::Result<bool> {
        Ok(!self.folders.lock().specs.is_empty() || !self.list()?.is_empty())
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
        let text = toml::to_string(file).context("cannot encode the agents as TOML")?;
        let path = self.path();
        replace(&path, text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
        self.changed.send_modify(|count| *count += 1);
        Ok(())
    }

    /// Returns the ID of the agent with this name, if it was ever hosted.
    pub fn id(&self, name: &str) -> Option<AgentId> {
        #[derive(Deserialize)]
        struct Identity {
            agents: std::collections::BTreeMap<String, String>,
        }
        let identity = std::fs::read(self.directory().join("gateway.json")).ok()?;
        let identity: Identity = serde_json::from_slice(&identity).ok()?;
        AgentId::parse(identity.agents.get(name)?).ok()
    }

    /// Returns the data directory of the gateway inside the hub.
    pub fn directory(&self) -> PathBuf {
        self.data.join("agents")
    }
}

/// The `[[agent]]` list of a settings file; other keys are ignored.
#[derive(Debug, Deserialize)]
struct Configured {
    #[serde(default)]
    agent: Vec<LocalAgent>,
}

/// Hosts the local agents until the hub stops. When it returns, their programs have ended.
pub async fn run_loop(app: Arc<App>, local_agents: Arc<LocalAgents>, stop: watch::Receiver<bool>) {
    let host = async |gateway: &mut _| host(&app, &local_agents, gateway).await;
    if let Err(error) = in_process::host_until_stopped(host, stop).await {
        tracing::error!(error = format!("{error:#}"), "cannot host the agents of this hub");
    }
}

async fn host(
    app: &Arc<App>,
    local_agents: &LocalAgents,
    gateway: &mut Option<Gateway>,
) -> anyhow::Result<()> {
    let mut changed = local_agents.changed.subscribe();
    // Without an agent, no directory is created.
    while !local_agents.has_agents()? {
        changed.changed().await?;
    }
    if app.hub.wait_for_first_admin().await.is_err() {
        return Ok(());
    }
    let (data, opened) =
        in_process::open(&local_agents.directory()).context("cannot open the directory of the agents")?;
    let gateway = gateway.insert(opened);
    let environment = HostedEnvironment::new(app.clone());
    gateway.set_environment(environment.clone());
    loop {
        changed.mark_unchanged();
        let owner = sync_gateway(app, local_agents, &data, gateway, &environment).await?;
        let mut later = changed.clone();
        // An error would mean that `LocalAgents` was dropped, but it outlives this loop.
        let list_changed = async { drop(later.changed().await) };
        match owner {
            Some(owner) => in_process::connect(app, &owner, gateway, list_changed).await,
            None => tokio::select! {
                () = list_changed => {}
                () = gateway.idle() => {}
            },
        }
    }
}

/// Registers every local agent with the hub and makes the gateway host exactly these agents. Returns the
/// owner of the first one, in whose name the gateway connects.
async fn sync_gateway(
    app: &App,
    local_agents: &LocalAgents,
    data: &GatewayStore,
    gateway: &mut Gateway,
    environment: &HostedEnvironment,
) -> anyhow::Result<Option<UserId>> {
    let (mut first_owner, mut ids, mut owners) = (None, Vec::new(), HashMap::new());
    for LocalAgent { owner: username, entry } in local_agents.list()? {
        let id = data.agent(&entry.name)?;
        ids.push(id.clone());
        let owner = match owner(&app.hub, username.as_deref()).await {
            Ok(owner) => owner,
            Err(refusal) => {
                tracing::warn!(
                    agent = entry.name,
                    ?refusal,
                    "the owner of an agent of this hub does not exist"
                );
                continue;
            }
        };
        let host = HostAgent { owner: owner.clone(), registration: registration(&id, &entry) };
        match app.hub.execute(&Caller::OPERATOR, host).await {
            Ok(_) => {
                owners.insert(id.clone(), owner.clone());
                first_owner.get_or_insert(owner);
                let spec = AgentSpec { id, name: entry.name.as_str().into(), agent_config: entry.config };
                if let Err(problem) = gateway.add(spec) {
                    tracing::warn!(agent = entry.name, %problem, "cannot host an agent of this hub");
                }
            }
            Err(refusal) => {
                tracing::warn!(agent = entry.name, ?refusal, "the hub refused to register an agent")
            }
        }
    }
    let folders = local_agents.folders.lock();
    for spec in &folders.specs {
        ids.push(spec.id.clone());
        if let Some(owner) = &folders.owner {
            owners.insert(spec.id.clone(), owner.clone());
        }
        let name = spec.name.clone();
        if let Err(problem) = gateway.add(spec.clone()) {
            tracing::warn!(agent = %name, %problem, "cannot host an agent of the agents root");
        }
    }
    if !folders.specs.is_empty() && first_owner.is_none() {
        first_owner = folders.owner.clone();
    }
    gateway.keep_only(&ids);
    environment.set_owners(owners);
    Ok(first_owner)
}

fn registration(id: &AgentId, entry: &AgentEntry) -> AgentRegistration {
    let directory = entry.config.directory.as_ref().map(|path| path.display().to_string().into());
    AgentRegistration {
        gateway: GatewayId::stored(HUB),
        id: id.clone(),
        name: entry.name.as_str().into(),
        kind: entry.config.kind.as_str().into(),
        working_directory: directory,
        capabilities: vec!["rewind".into()],
        model: entry.config.extra.get("model").and_then(|model| model.as_str()).map(Into::into),
        slash_commands: None,
        mcp_servers: None,
        has_lasting_id: true,
    }
}

/// Returns the user with this username, or the first admin if `username` is `None`.
pub async fn owner(hub: &parlor_engine::Hub, username: Option<&str>) -> Result<UserId, Refusal> {
    let missing = Refusal::NotFound(parlor_model::EntityKind::User);
    if let Some(name) = username {
        let found = hub.read(&Caller::OPERATOR, FindAccount { username: name.into() }).await?;
        return found.map(|user| user.id).ok_or(missing);
    }
    let all_users = ListUsers { limit: 1_000_000, offset: 0 };
    let page = hub.read(&Caller::OPERATOR, all_users).await?;
    let admins = page.users.into_iter().filter(|user| user.role == SiteRole::Admin);
    admins.min_by_key(|user| user.created_at).map(|user| user.id).ok_or(missing)
}
