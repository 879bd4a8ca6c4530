//! Implements `parlor gateway`: hosts agents for a local or remote hub.
//!
//! Owns: the sources of the gateway's settings and secrets. A secret is never an argument, because other
//! users of the machine could read it: it comes from the environment, a file, or a prompt on the terminal.

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

/// Maximum number of notices queued for printing. When it is full, notices are dropped: a blocked terminal
/// must not stop the agents.
const NOTICE_QUEUE_CAPACITY: usize = 256;

#[derive(Debug, Args)]
pub struct GatewayArguments {
    #[command(subcommand)]
    pub command: Option<GatewayCommand>,
    #[command(flatten)]
    pub hosting: HostingArguments,
}

#[derive(Debug, Args)]
pub struct HostingArguments {
    /// URL of the hub, such as https://chat.example.org [default: the paired hub]
    #[arg(long, value_name = "URL", env = "PARLOR_SERVER")]
    server: Option<String>,
    /// Agent to host, such as coder=claude:~/project (repeatable)
    #[arg(long = "agent", value_name = "NAME=KIND[:DIR]")]
    agents: Vec<String>,
    /// Sign in with this username; the password is read from PARLOR_PASSWORD or prompted for
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// File with an API key; alternatively, set PARLOR_KEY to the key
    #[arg(long, value_name = "FILE", env = "PARLOR_KEY_FILE")]
    key_file: Option<PathBuf>,
    /// Additional certificate to trust, in PEM format
    #[arg(long, value_name = "FILE", env = "PARLOR_CA_FILE")]
    ca_file: Option<PathBuf>,
    /// Allow the owner to create agents of this kind remotely (repeatable)
    #[arg(long, value_name = "KIND")]
    allow_spawn: Vec<String>,
    /// Program to run and its arguments, for agents of the kind command or acp
    #[arg(last = true, value_name = "PROGRAM")]
    program: Vec<String>,
}

#[derive(Debug, clap::Subcommand)]
pub enum GatewayCommand {
    /// Check each agent and print a fix for each problem
    Doctor(HostingArguments),
}

/// Settings file of a gateway.
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

/// Settings of the gateway, combined from flags and file.
struct ResolvedGateway {
    server: Option<String>,
    user: Option<String>,
    key_file: Option<PathBuf>,
    ca_file: Option<PathBuf>,
    spawning: SpawnPolicy,
    agents: Vec<AgentEntry>,
}

/// Returns whether the kind of the agent takes a program from the command line.
fn takes_program(agent: &AgentEntry) -> bool {
    matches!(&*agent.config.kind, "command" | "acp")
}

impl HostingArguments {
    /// Adds the agents and the program given after the subcommand to those given before it.
    pub fn and(mut self, extra: Self) -> Self {
        self.agents.extend(extra.agents);
        self.program.extend(extra.program);
        self
    }

    fn resolve(&self, config: Option<&Path>) -> anyhow::Result<ResolvedGateway> {
        let file = match config {
            Some(path) => entry::read(path)?,
            None => GatewayFile::default(),
        };
        let mut agents = file.agent;
        for text in &self.agents {
            let mut agent = AgentEntry::parse(text)?;
            if takes_program(&agent) {
                agent.config.command = self.program.clone();
            }
            agents.push(agent);
        }
        if !self.program.is_empty() && !agents.iter().any(takes_program) {
            bail!("no agent runs {}: add --agent NAME=command", self.program.join(" "));
        }
        for agent in &mut agents {
            agent.config.directory = agent.config.directory.as_deref().map(absolute).transpose()?;
        }
        let mut names: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
        names.sort_unstable();
        if let Some(duplicate) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            bail!("there are two agents named {}", duplicate[0]);
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
    let ResolvedGateway { server, user, key_file, ca_file, spawning, agents } = arguments.resolve(config)?;
    if agents.is_empty() && spawning.kinds.is_empty() {
        bail!("there is no agent to host: add --agent NAME=KIND, such as --agent coder=claude:.");
    }
    for agent in &agents {
        agent.check()?;
    }
    let paired = join::PairedHub::read(&directory)?;
    let server = match (&server, &paired) {
        (Some(server), _) => address(server)?,
        (None, Some(paired)) => address(&paired.server)?,
        (None, None) => bail!("no hub is given: add --server URL, or run parlor join CODE --server URL once"),
    };
    let paired = paired.filter(|paired| address(&paired.server).is_ok_and(|url| url == server));
    let trust = match &ca_file {
        Some(path) => trust(Some(&certificates(path)?))?,
        None => trust(paired.as_ref().and_then(|paired| paired.ca.as_deref()))?,
    };
    let credentials = credentials(user, key_file, paired)?;
    let data = Arc::new(
        GatewayStore::open(&directory).with_context(|| format!("cannot open {}", directory.display()))?,
    );
    let (notices, mut queued_notices) = mpsc::channel(NOTICE_QUEUE_CAPACITY);
    let mut gateway =
        Gateway::new(data.clone(), spawning, notices).context("cannot read the gateway's stored state")?;
    for agent in &agents {
        let (id, name) = (data.agent(&agent.name)?, agent.name.as_str().into());
        let spec = AgentSpec { id, name, agent_config: agent.config.clone() };
        gateway.add(spec).map_err(|problem| anyhow::anyhow!("the agent {}: {problem}", agent.name))?;
    }
    let terminal_style = TerminalStyle::for_stdout();
    print(&show::startup(&server, &directory, &agents, terminal_style));
    let (line, mut statuses) = mpsc::channel(NOTICE_QUEUE_CAPACITY);
    let sign_in = SignIn::new(server.clone(), trust, credentials).map_err(anyhow::Error::msg)?;
    let mut remote = Remote::new(server, sign_in, data, line);
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for signals")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for signals")?;
    let printing = tokio::spawn(async move {
        loop {
            tokio::select! {
                Some(status) = statuses.recv() => print(&show::connection_status(&status, terminal_style)),
                Some(notice) = queued_notices.recv() => print(&show::notice(&notice, terminal_style)),
                else => return,
            }
        }
    });
    let rejected = tokio::select! {
        hosted = remote.host(&mut gateway) => hosted.err(),
        _ = terminate.recv() => None,
        _ = interrupt.recv() => None,
    };
    // At the same time, so that a hub that does not read delays no agent's end.
    tokio::join!(remote.close(), gateway.stop());
    drop(gateway);
    let _ = printing.await;
    match rejected {
        Some(reason) => bail!("the hub rejected this gateway: {reason}"),
        None => Ok(()),
    }
}

fn print(text: &str) {
    // The gateway keeps hosting even if standard output is closed.
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

/// Returns the data directory of the gateway.
pub fn directory(data: Option<&str>) -> anyhow::Result<PathBuf> {
    if let Some(data) = data {
        return Ok(PathBuf::from(data));
    }
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || std::env::home_dir().map(|home| home.join(".local/share"));
    let directory = variable("PARLOR_GATEWAY_DATA")
        .or_else(|| variable("XDG_DATA_HOME").or_else(home).map(|share| share.join("parlor/gateway")));
    directory.context("there is no default data directory: add --data DIR")
}

pub fn address(text: &str) -> anyhow::Result<Url> {
    let with_scheme = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
    let mut url = Url::parse(&with_scheme).with_context(|| format!("{text:?} is not the URL of a hub"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        bail!("{text:?} is not the URL of a hub: it must start with https:// or http://");
    }
    if !url.username().is_empty() || url.password().is_some() {
        bail!("the URL must not contain a password: use --user and PARLOR_PASSWORD");
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

/// Trusts the certificates of the system, and additionally these certificates in PEM format.
pub fn trust(certificates: Option<&str>) -> anyhow::Result<Trust> {
    Trust::new(certificates).map_err(|why| anyhow::anyhow!("invalid --ca-file: {why}"))
}

fn credentials(
    user: Option<String>,
    key_file: Option<PathBuf>,
    paired: Option<join::PairedHub>,
) -> anyhow::Result<Credentials> {
    if let Some(user) = user {
        let password = match secret_variable("PARLOR_PASSWORD") {
            Some(password) => password,
            None => prompt_password(&format!("Password of {user}: "))?.expose().to_owned(),
        };
        return Ok(Credentials::Password { user, password });
    }
    if let Some(key) = api_key(key_file.as_deref())? {
        return Ok(Credentials::Key(key.expose().to_owned()));
    }
    match paired {
        Some(paired) => Ok(Credentials::Key(paired.key.expose().to_owned())),
        None => bail!(
            "there are no credentials for the hub. Use one of: parlor join CODE --server URL, --user NAME, --key-file FILE, PARLOR_KEY"
        ),
    }
}

/// Returns the API key from the file or from `PARLOR_KEY`. The file takes precedence: it is given explicitly,
/// while the variable may be a leftover.
pub fn api_key(file: Option<&Path>) -> anyhow::Result<Option<Secret>> {
    let Some(path) = file else { return Ok(secret_variable("PARLOR_KEY").map(Secret::new)) };
    let key = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Some(Secret::new(key.trim())))
}

fn secret_variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Prompts for a password on the terminal, without echoing the input.
fn prompt_password(prompt: &str) -> anyhow::Result<Secret> {
    use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        bail!(
            "standard input is not a terminal, so the password cannot be prompted for: set PARLOR_PASSWORD"
        );
    }
    eprint!("{prompt}");
    let original = tcgetattr(&stdin).context("cannot disable the terminal's echo")?;
    let mut without_echo = original.clone();
    without_echo.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&stdin, OptionalActions::Flush, &without_echo).context("cannot disable the terminal's echo")?;
    let mut line = String::new();
    let read = stdin.read_line(&mut line);
    let _ = tcsetattr(&stdin, OptionalActions::Flush, &original);
    eprintln!();
    read.context("cannot read the password")?;
    Ok(Secret::new(line.trim_end_matches(['\r', '\n'])))
}

/// Checks each agent of the gateway.
pub async fn doctor(arguments: &HostingArguments, config: Option<&Path>) -> anyhow::Result<Vec<AgentCheck>> {
    let mut checks = Vec::new();
    for agent in arguments.resolve(config)?.agents {
        checks.push(examine(&agent).await);
    }
    if checks.is_empty() {
        bail!("there is no agent to check: add --agent NAME=KIND, or --config FILE");
    }
    Ok(checks)
}

pub struct AgentCheck {
    pub name: String,
    pub findings: Vec<parlor_agents::finding::Finding>,
}

pub async fn examine(agent: &AgentEntry) -> AgentCheck {
    use parlor_agents::finding::{Finding, Health};
    let findings = match agent.check() {
        Ok(kind) => {
            let findings = kind.examine().await;
            kind.close().await;
            findings
        }
        Err(problem) => vec![Finding {
            state: Health::Failure,
            what: format!("{problem:#}.").into(),
            fix: Some("Correct the entry; docs/agents.md describes every kind.".into()),
        }],
    };
    AgentCheck { name: agent.name.clone(), findings }
}
