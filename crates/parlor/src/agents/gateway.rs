//! `parlor gateway`: hosts agents of a hub that may be anywhere.
//!
//! Owns: where its settings and its secrets come from. A secret is never an argument, which others on the machine
//! could read: it comes from the environment, a file, or whoever sits at the terminal.

use super::entry::{self, AgentEntry, absolute};
use super::{join, show};
use crate::secret::Secret;
use crate::style::TerminalStyle;
use anyhow::{Context, bail};
use clap::Args;
use parlor_agents::gateway::remote::Remote;
use parlor_agents::gateway::sign_in::{Credentials, SignIn};
use parlor_agents::gateway::store::GatewayStore;
use parlor_agents::gateway::trust::Trust;
use parlor_agents::gateway::{AgentSpec, Gateway, SpawnPolicy};
use serde::Deserialize;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use url::Url;

/// News that wait to be printed; a terminal that stands still must not stop the agents.
const NEWS: usize = 256;

#[derive(Debug, Args)]
pub struct GatewayArguments {
    #[command(subcommand)]
    pub command: Option<GatewayCommand>,
    #[command(flatten)]
    pub hosting: HostingArguments,
}

#[derive(Debug, Args)]
pub struct HostingArguments {
    /// The hub, such as https://chat.example.org [default: the one that was joined]
    #[arg(long, value_name = "URL", env = "PARLOR_SERVER")]
    server: Option<String>,
    /// An agent to host, such as coder=claude:~/project (several allowed)
    #[arg(long = "agent", value_name = "NAME=KIND[:DIR]")]
    agents: Vec<String>,
    /// Sign in under this name; the password is in PARLOR_PASSWORD, or asked for
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// A file with an API key; PARLOR_KEY holds the key itself
    #[arg(long, value_name = "FILE", env = "PARLOR_KEY_FILE")]
    key_file: Option<PathBuf>,
    /// A certificate to trust besides those that this system knows, in PEM
    #[arg(long, value_name = "FILE", env = "PARLOR_CA_FILE")]
    ca_file: Option<PathBuf>,
    /// Let the owner make agents of this kind here from afar (several allowed)
    #[arg(long, value_name = "KIND")]
    allow_spawn: Vec<String>,
    /// What an agent of the kind command or acp runs
    #[arg(last = true, value_name = "PROGRAM")]
    program: Vec<String>,
}

#[derive(Debug, clap::Subcommand)]
pub enum GatewayCommand {
    /// Say for each agent what is missing, and what to do about it
    Doctor(HostingArguments),
}

/// A gateway's own settings file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct GatewayFile {
    server: Option<String>,
    user: Option<String>,
    key_file: Option<PathBuf>,
    ca_file: Option<PathBuf>,
    #[serde(default)]
    allow_spawn: Vec<String>,
    #[serde(default)]
    agent: Vec<AgentEntry>,
}

/// Everything that is settled before the hub is looked for.
struct ResolvedGateway {
    server: Option<String>,
    user: Option<String>,
    key_file: Option<PathBuf>,
    ca_file: Option<PathBuf>,
    spawning: SpawnPolicy,
    agents: Vec<AgentEntry>,
}

/// Whether it is of a kind that is told what to run.
fn runs_any(agent: &AgentEntry) -> bool {
    matches!(&*agent.recipe.kind, "command" | "acp")
}

impl HostingArguments {
    /// What was said before a command and after it.
    pub fn and(mut self, further: Self) -> Self {
        self.agents.extend(further.agents);
        self.program.extend(further.program);
        self
    }

    fn settle(&self, config: Option<&Path>) -> anyhow::Result<ResolvedGateway> {
        let file = match config {
            Some(path) => entry::read(path)?,
            None => GatewayFile::default(),
        };
        let mut agents = file.agent;
        for text in &self.agents {
            let mut agent = AgentEntry::parse(text)?;
            if runs_any(&agent) {
                agent.recipe.command = self.program.clone();
            }
            agents.push(agent);
        }
        if !self.program.is_empty() && !agents.iter().any(runs_any) {
            bail!("no agent runs {}: add --agent NAME=command", self.program.join(" "));
        }
        for agent in &mut agents {
            agent.recipe.directory = agent.recipe.directory.as_deref().map(absolute).transpose()?;
        }
        let mut names: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            bail!("there are two agents of the name {}", twice[0]);
        }
        let mut kinds = file.allow_spawn;
        kinds.extend(self.allow_spawn.iter().cloned());
        Ok(ResolvedGateway {
            server: self.server.clone().or(file.server),
            user: self.user.clone().or(file.user),
            key_file: self.key_file.clone().or(file.key_file),
            ca_file: self.ca_file.clone().or(file.ca_file),
            spawning: SpawnPolicy { kinds },
            agents,
        })
    }
}

pub async fn run(
    arguments: &HostingArguments,
    data: Option<&str>,
    config: Option<&Path>,
) -> anyhow::Result<()> {
    parlor_agents::process::enable_supervisor();
    let directory = directory(data)?;
    let ResolvedGateway { server, user, key_file, ca_file, spawning, agents } = arguments.settle(config)?;
    if agents.is_empty() && spawning.kinds.is_empty() {
        bail!("there is nobody to host: add --agent NAME=KIND, such as --agent coder=claude:.");
    }
    for agent in &agents {
        agent.check()?;
    }
    let joined = join::PairedHub::read(&directory)?;
    let server = match (&server, &joined) {
        (Some(server), _) => address(server)?,
        (None, Some(joined)) => address(&joined.server)?,
        (None, None) => bail!("which hub? add --server URL, or parlor join CODE --server URL once"),
    };
    let joined = joined.filter(|joined| address(&joined.server).is_ok_and(|known| known == server));
    let trust = match &ca_file {
        Some(path) => trust(Some(&certificates(path)?))?,
        None => trust(joined.as_ref().and_then(|joined| joined.ca.as_deref()))?,
    };
    let credentials = credentials(user, key_file, joined)?;
    let data = Arc::new(
        GatewayStore::open(&directory).with_context(|| format!("cannot use {}", directory.display()))?,
    );
    let (news, mut heard) = mpsc::channel(NEWS);
    let mut gateway = Gateway::new(data.clone(), spawning, news).context("cannot read what was kept")?;
    for agent in &agents {
        let (id, name) = (data.agent(&agent.name)?, agent.name.as_str().into());
        let plan = AgentSpec { id, name, agent_config: agent.recipe.clone() };
        gateway.add(plan).map_err(|problem| anyhow::anyhow!("the agent {}: {problem}", agent.name))?;
    }
    let terminal_style = TerminalStyle::for_stdout();
    print(&show::beginning(&server, &directory, &agents, terminal_style));
    let (line, mut lines) = mpsc::channel(NEWS);
    let sign_in = SignIn::new(server.clone(), trust, credentials).map_err(anyhow::Error::msg)?;
    let remote = Remote { server, sign_in, data, line };
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for signals")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for signals")?;
    let printing = tokio::spawn(async move {
        loop {
            tokio::select! {
                Some(line) = lines.recv() => print(&show::line(&line, terminal_style)),
                Some(news) = heard.recv() => print(&show::news(&news, terminal_style)),
                else => return,
            }
        }
    });
    let turned_away = tokio::select! {
        turned_away = remote.host(&mut gateway) => turned_away.err(),
        _ = terminate.recv() => None,
        _ = interrupt.recv() => None,
    };
    gateway.stop().await;
    drop(gateway);
    let _ = printing.await;
    match turned_away {
        Some(refused) => bail!("the hub did not let this gateway in: {refused}"),
        None => Ok(()),
    }
}

fn print(text: &str) {
    // A closed standard output is no reason not to host.
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

/// Where a gateway keeps what it must not forget.
pub fn directory(data: Option<&str>) -> anyhow::Result<PathBuf> {
    if let Some(data) = data {
        return Ok(PathBuf::from(data));
    }
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || std::env::home_dir().map(|home| home.join(".local/share"));
    let share = named("PARLOR_GATEWAY_DATA")
        .or_else(|| named("XDG_DATA_HOME").or_else(home).map(|share| share.join("parlor/gateway")));
    share.context("where to keep its data? add --data DIR")
}

pub fn address(text: &str) -> anyhow::Result<Url> {
    let with_scheme = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
    let mut url = Url::parse(&with_scheme).with_context(|| format!("{text:?} is no address of a hub"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        bail!("{text:?} is no address of a hub: it begins with https:// or http://");
    }
    if !url.username().is_empty() || url.password().is_some() {
        bail!("an address is no place for a password: use --user and PARLOR_PASSWORD");
    }
    if !url.path().ends_with('/') {
        url.set_path(&format!("{}/", url.path()));
    }
    url.set_query(None);
    url.set_fragment(None);
    Ok(url)
}

pub fn certificates(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Whoever the system trusts, and whoever has one of these certificates.
pub fn trust(certificates: Option<&str>) -> anyhow::Result<Trust> {
    Trust::new(certificates).map_err(|why| anyhow::anyhow!("the certificates to trust: {why}"))
}

fn credentials(
    user: Option<String>,
    key_file: Option<PathBuf>,
    joined: Option<join::PairedHub>,
) -> anyhow::Result<Credentials> {
    let secret = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    if let Some(user) = user {
        let password = match secret("PARLOR_PASSWORD") {
            Some(password) => password,
            None => ask_secretly(&format!("Password of {user}: "))?.expose().to_owned(),
        };
        return Ok(Credentials::Password { user, password });
    }
    // A file that is named is meant; the variable may be left from something else.
    if let Some(path) = key_file {
        let key =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        return Ok(Credentials::Key(key.trim().to_owned()));
    }
    if let Some(key) = secret("PARLOR_KEY") {
        return Ok(Credentials::Key(key));
    }
    match joined {
        Some(joined) => Ok(Credentials::Key(joined.key.expose().to_owned())),
        None => bail!(
            "who are you to the hub? Use one of: parlor join CODE --server URL, --user NAME, --key-file FILE, PARLOR_KEY"
        ),
    }
}

/// Asks whoever sits at the terminal, without showing what they type.
fn ask_secretly(question: &str) -> anyhow::Result<Secret> {
    use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        bail!("there is nobody to ask for a password: set PARLOR_PASSWORD");
    }
    eprint!("{question}");
    let shown = tcgetattr(&stdin).context("cannot hide what is typed")?;
    let mut hidden = shown.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&stdin, OptionalActions::Flush, &hidden).context("cannot hide what is typed")?;
    let mut line = String::new();
    let read = stdin.read_line(&mut line);
    let _ = tcsetattr(&stdin, OptionalActions::Flush, &shown);
    eprintln!();
    read.context("no password was typed")?;
    Ok(Secret::new(line.trim_end_matches(['\r', '\n'])))
}

/// What is missing for each agent.
pub async fn doctor(arguments: &HostingArguments, config: Option<&Path>) -> anyhow::Result<Vec<AgentCheck>> {
    let mut examined = Vec::new();
    for agent in arguments.settle(config)?.agents {
        examined.push(examine(&agent).await);
    }
    if examined.is_empty() {
        bail!("there is no agent to look at: add --agent NAME=KIND, or --config FILE");
    }
    Ok(examined)
}

pub struct AgentCheck {
    pub name: String,
    pub findings: Vec<parlor_agents::finding::Finding>,
}

pub async fn examine(agent: &AgentEntry) -> AgentCheck {
    use parlor_agents::finding::{Finding, Health};
    let findings = match agent.check() {
        Ok(kind) => kind.examine().await,
        Err(problem) => vec![Finding {
            state: Health::Failure,
            what: format!("{problem:#}.").into(),
            fix: Some("docs/agents.md shows every kind.".into()),
        }],
    };
    AgentCheck { name: agent.name.clone(), findings }
}
