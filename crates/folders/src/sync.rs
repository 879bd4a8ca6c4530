//! Keeps the folders below the root and the store in step.
//!
//! Owns: the lock of the root and the loop that compares both sides. A round reads the whole tree and compares it with the
//! stored agents; what changed on one side is applied to the other. A folder that is missing deletes nothing, and an agent
//! that the hub removed leaves its folder in `.deleted`.

mod round;
mod write;

use crate::conversations::Conversations;
use crate::messages::Mirror;
use crate::port::Folders;
use crate::scan::{self, Problem};
use crate::state::StateFile;
use crate::watch::Watch;
use parlor_engine::Hub;
use parlor_engine::agent_changes::AgentChanges;
use parlor_model::command::MoveAgent;
use parlor_model::{Agent, AgentId, Caller, Mailbox, Session, Subscription, UserId};
use parlor_safe_files::Directory;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};

/// File that a hub locks while it uses the root.
const LOCK: &str = ".parlor.lock";
/// Directory for the folders of removed agents.
const DELETED: &str = ".deleted";
/// Time for which further changes on disk are awaited: programs write a file in several steps.
const SETTLE_TIME: Duration = Duration::from_millis(20);
/// Delay before the next attempt after a failure of the disk or the store.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Maximum number of queued requests to move an agent; further ones wait.
const MOVES: usize = 4;

/// Where the folders and the state are.
#[derive(Debug, Clone)]
pub struct Options {
    pub root: PathBuf,
    /// Data directory of the hub.
    pub data: PathBuf,
}

/// Properties from which the hub chooses the kind and the program of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSpec {
    pub id: AgentId,
    pub name: Box<str>,
    pub folder: PathBuf,
    pub default_model: Option<String>,
    /// Further directories in which the agent works: those of `workDirs` that exist below the root.
    pub work_dirs: Vec<PathBuf>,
    /// JSON of the field `parlor`: kind, program and environment.
    pub host: Option<String>,
    /// Inherited `CLAUDE.md` and the notes of the agent.
    pub instructions: String,
}

/// Kind and working directory with which an agent is registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostedFolder {
    pub kind: Box<str>,
    pub directory: PathBuf,
}

/// Hosts the agents.
pub trait Host: Send + Sync {
    /// Checks how an agent would be hosted. The error is a sentence for the operator.
    fn check(&self, spec: &HostSpec) -> Result<HostedFolder, String>;
    /// Hosts exactly these agents.
    fn host(&self, agents: Vec<HostSpec>);
}

/// A request to move an agent, with its mail, to another id.
#[derive(Debug)]
pub struct MoveRequest {
    pub from: AgentId,
    pub to: AgentId,
    pub reply: oneshot::Sender<Result<(), String>>,
}

/// The root of one hub, locked.
pub struct Synchroniser {
    folders: Arc<Folders>,
    options: Options,
    moves: mpsc::Receiver<MoveRequest>,
    /// The lock ends with this value.
    _lock: File,
}

impl Synchroniser {
    /// Opens and locks the root. Fails if it does not exist or if another hub uses it.
    pub fn open(options: Options) -> io::Result<(Self, mpsc::Sender<MoveRequest>)> {
        let path = std::fs::canonicalize(&options.root).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("cannot open the agents root {}: {error}", options.root.display()),
            )
        })?;
        let root = Directory::open(&path)?;
        let Some(lock) = root.lock(LOCK)? else {
            let message = format!("another hub uses the agents root {}", path.display());
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, message));
        };
        let (sender, moves) = mpsc::channel(MOVES);
        let options = Options { root: path, ..options };
        Ok((Self { folders: Arc::new(Folders::new(root)), options, moves, _lock: lock }, sender))
    }

    pub fn folders(&self) -> Arc<Folders> {
        self.folders.clone()
    }

    /// Keeps folders and store in step until the hub stops. The agents belong to `owner`.
    pub async fn run(self, hub: Hub, owner: UserId, host: Arc<dyn Host>, mut stop: watch::Receiver<bool>) {
        let Self { folders, options, mut moves, _lock } = self;
        let changes = hub.agent_changes();
        changes.follow();
        let mut sync = loop {
            match SyncLoop::open(&hub, &owner, &host, &folders, &options) {
                Ok(sync) => break sync,
                Err(error) => tracing::error!(%error, "the agents root cannot be used"),
            }
            tokio::select! {
                () = tokio::time::sleep(RETRY_DELAY) => {}
                () = stopped(&mut stop) => return,
            }
        };
        let (mut is_first, mut is_disk_changed) = (true, true);
        // Everything is read first.
        let mut pending = AgentChanges { everything: true, ..AgentChanges::default() };
        loop {
            let request = folders.requested();
            // A request about an agent that was created before it finds the agent in this round.
            tokio::select! {
                biased;
                new = changes.next() => merge(&mut pending, new),
                () = std::future::ready(()) => {}
            }
            let taken = std::mem::take(&mut pending);
            let is_round = is_disk_changed || taken.everything || !taken.agents.is_empty();
            let done = match is_round {
                true => sync.round(&taken).await,
                false => sync.mirror(&taken).await,
            };
            is_disk_changed = false;
            let failed = match done {
                Ok(()) => false,
                Err(error) => {
                    tracing::error!(%error, "the agents root and the store cannot be compared");
                    // The next round repeats everything that this one has not done.
                    pending.everything = true;
                    true
                }
            };
            if is_round {
                folders.complete(request, (!failed).then(|| sync.infos()));
            }
            if !failed && std::mem::take(&mut is_first) {
                let agents = sync.hosted.len();
                tracing::info!(path = %options.root.display(), agents, "the agents root was read");
            }
            let poll = if failed { RETRY_DELAY } else { sync.watch.poll_interval() };
            tokio::select! {
                () = stopped(&mut stop) => return,
                new = changes.next() => merge(&mut pending, new),
                () = folders.wake.notified() => {
                    is_disk_changed = true;
                    tokio::time::sleep(SETTLE_TIME).await;
                }
                () = tokio::time::sleep(poll) => is_disk_changed = true,
                Some(MoveRequest { from, to, reply }) = moves.recv() => {
                    let moved = sync.move_agent(&from, &to).await;
                    pending.everything = true;
                    // The operator may have cancelled the command.
                    let _ = reply.send(moved);
                }
            }
        }
    }
}

/// Waits until the hub stops. A hub that was dropped has stopped too.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    drop(stop.wait_for(|stop| *stop).await);
}

fn merge(pending: &mut AgentChanges, new: AgentChanges) {
    pending.everything |= new.everything;
    pending.unmatched |= new.unmatched;
    pending.agents.extend(new.agents);
    pending.mail.extend(new.mail);
    pending.conversations.extend(new.conversations);
    for (mailbox, messages) in new.settled {
        pending.settled.entry(mailbox).or_default().extend(messages);
    }
}

/// An agent of the owner, as stored.
#[derive(Debug, Clone)]
struct Stored {
    agent: Arc<Agent>,
    subscriptions: Vec<Subscription>,
    sessions: Vec<(Session, Vec<Subscription>)>,
}

/// State of the loop.
struct SyncLoop {
    hub: Hub,
    owner: UserId,
    host: Arc<dyn Host>,
    folders: Arc<Folders>,
    root_path: PathBuf,
    state: StateFile,
    mirror: Mirror,
    conversations: Conversations,
    watch: Watch,
    /// Agents of the owner.
    stored: BTreeMap<AgentId, Stored>,
    /// Agents that the hub hosts. An agent whose file became invalid stays as it was.
    hosted: BTreeMap<AgentId, HostSpec>,
    missing: BTreeSet<AgentId>,
    /// Problems that were logged and still exist.
    problems: BTreeSet<Problem>,
    scan: scan::Scan,
}

impl SyncLoop {
    fn open(
        hub: &Hub,
        owner: &UserId,
        host: &Arc<dyn Host>,
        folders: &Arc<Folders>,
        options: &Options,
    ) -> io::Result<Self> {
        Ok(Self {
            hub: hub.clone(),
            owner: owner.clone(),
            host: host.clone(),
            folders: folders.clone(),
            root_path: options.root.clone(),
            state: StateFile::open(&options.data, &options.root, hub.epoch())?,
            mirror: Mirror::open(folders.root())?,
            conversations: Conversations::default(),
            watch: Watch::new(folders.wake.clone()),
            stored: BTreeMap::new(),
            hosted: BTreeMap::new(),
            missing: BTreeSet::new(),
            problems: BTreeSet::new(),
            scan: scan::Scan::default(),
        })
    }

    /// Acts as the owner of the agents.
    fn caller(&self) -> Caller {
        Caller::connector(self.owner.clone())
    }

    /// Requires that the root still has its place. A root that was removed, or whose file system was unmounted, has no
    /// folders, but their agents are not missing.
    fn check_root(&self) -> io::Result<()> {
        let now = Directory::open(&self.root_path)?;
        match now.is_same(self.folders.root()) && !now.is_removed() {
            true => Ok(()),
            false => Err(io::Error::other(format!(
                "another directory has taken the place of {}; restart the hub",
                self.root_path.display()
            ))),
        }
    }

    /// Logs the problems that are new.
    fn report(&mut self, problems: BTreeSet<Problem>) {
        for problem in problems.difference(&self.problems) {
            let Problem { path, reason } = problem;
            tracing::warn!(path = %path.display(), "a file of the agents root is not used: {reason}");
        }
        self.problems = problems;
    }

    /// Moves an agent and those below it. If the folder still has its old place, it is moved too.
    async fn move_agent(&mut self, from: &AgentId, to: &AgentId) -> Result<(), String> {
        let inside = |id: &AgentId, other: &AgentId| {
            id == other || id.as_str().strip_prefix(other.as_str()).is_some_and(|rest| rest.starts_with('/'))
        };
        if inside(to, from) || inside(from, to) {
            return Err("an agent cannot be moved to itself, or into or out of its own folder".into());
        }
        let everything = AgentChanges { everything: true, ..AgentChanges::default() };
        let failed = |error: io::Error| error.to_string();
        self.round(&everything).await.map_err(failed)?;
        let moved: Vec<AgentId> = self.stored.keys().filter(|id| inside(id, from)).cloned().collect();
        if !self.stored.contains_key(from) {
            return Err(format!("there is no agent {from}"));
        }
        let root = self.folders.root().clone();
        let exists = |id: &AgentId| scan::open_folder(&root, id).map(|folder| folder.is_some());
        match (exists(from).map_err(failed)?, exists(to).map_err(failed)?) {
            (true, true) => return Err(format!("the folders of both {from} and {to} exist")),
            (true, false) => {
                write::rename(&root, from, to).map_err(failed)?;
                self.round(&everything).await.map_err(failed)?;
            }
            (false, true) => {}
            (false, false) => return Err(format!("neither {from} nor {to} has a folder")),
        }
        if !self.stored.contains_key(to) {
            return Err(format!(
                "the folder of {to} is no agent, or its configuration is not valid; see the log"
            ));
        }
        let mut mailboxes = Vec::new();
        for old in moved {
            let new = format!("{to}{}", &old.as_str()[from.as_str().len()..]);
            let Ok(new) = AgentId::parse(&new) else { continue };
            if !self.stored.contains_key(&new) {
                tracing::warn!(agent = %old, "an agent below the moved one was not moved: there is no folder {new}");
                continue;
            }
            let sessions = self.stored[&old].sessions.iter().map(|(session, _)| Some(session.id.clone()));
            mailboxes.extend(sessions.chain([None]).map(|session| Mailbox { agent: new.clone(), session }));
            let command = MoveAgent { from: old.clone(), to: new };
            self.hub
                .execute(&Caller::OPERATOR, command)
                .await
                .map_err(|refusal| round::sentence(&refusal))?;
            self.stored.remove(&old);
            self.state.state.agents.remove(&old);
            self.missing.remove(&old);
        }
        for mailbox in &mailboxes {
            self.mirror.compare_from_start(&self.state.state.messages, mailbox).await.map_err(failed)?;
        }
        self.round(&everything).await.map_err(failed)
    }
}

/// Whether a path is below the root.
fn is_below(path: &str, root: &Path) -> bool {
    Path::new(path).strip_prefix(root).is_ok_and(|rest| rest != Path::new(""))
}
