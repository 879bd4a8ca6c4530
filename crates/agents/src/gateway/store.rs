//! Persistent state of a gateway: its identity, the sessions of its agents, and replies that the hub may
//! not have.
//!
//! Owns: files are replaced atomically, and only their owner can read them. One process at a time uses a
//! directory.

use super::AgentSpec;
use super::reply::Part;
use crate::kinds::AgentConfig;
use parking_lot::Mutex;
use parlor_model::{AgentId, GatewayId, MessageId, RoomId, RunContext, RunId, SessionId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Maximum number of unfinished runs loaded at start; the oldest beyond it are deleted.
const MAX_UNFINISHED_RUNS: usize = 1000;
/// Maximum number of remotely created agents.
const MAX_SPAWNED: usize = 100;

/// The data directory of a gateway, locked by this process.
#[derive(Debug)]
pub struct GatewayStore {
    directory: PathBuf,
    state: Mutex<PersistedState>,
    _lock: File,
}

#[derive(Debug, Default)]
struct PersistedState {
    identity: Identity,
    sessions: Sessions,
    spawned: Vec<Spawned>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Identity {
    gateway: String,
    /// Agent ids by agent name.
    #[serde(default)]
    agents: BTreeMap<String, String>,
}

/// A remotely created agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Spawned {
    id: String,
    name: String,
    recipe: AgentConfig,
}

/// Session ids by agent id and room id.
type Sessions = BTreeMap<String, BTreeMap<String, String>>;

/// A run whose end the hub has not confirmed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PersistedRun {
    pub agent: String,
    /// Absent in a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<String>,
    /// Session of the agent, if the run takes place in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    pub run: String,
    pub reply: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    #[serde(default)]
    pub depth: u32,
    /// Runs that are not needed because this run accepted their messages as injections.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken: Vec<String>,
    /// `None` while the run is active.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<FinishedReply>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FinishedReply {
    /// Reason, if the run failed.
    pub failed: Option<Box<str>>,
    pub parts: Vec<Part>,
}

impl PersistedRun {
    pub fn ids(&self) -> Option<(AgentId, RunContext, RunId, MessageId)> {
        let context = match (&self.room, &self.session) {
            (Some(room), _) => RunContext::Room(RoomId::parse(room).ok()?),
            (None, Some(session)) => RunContext::Session(SessionId::parse(session).ok()?),
            (None, None) => return None,
        };
        Some((
            AgentId::parse(&self.agent).ok()?,
            context,
            RunId::parse(&self.run).ok()?,
            MessageId::parse(&self.reply).ok()?,
        ))
    }
}

impl GatewayStore {
    pub fn open(directory: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(directory.join("replies"))?;
        let lock = directory.join("gateway.lock");
        let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(lock)?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => io::Error::new(
                io::ErrorKind::ResourceBusy,
                format!("another gateway uses {}", directory.display()),
            ),
            TryLockError::Error(error) => error,
        })?;
        let mut identity: Identity = read(&directory.join("gateway.json"))?.unwrap_or_default();
        if GatewayId::parse(&identity.gateway).is_err() {
            identity.gateway = new_id();
        }
        let sessions = read(&directory.join("sessions.json"))?.unwrap_or_default();
        let spawned = read(&directory.join("spawned.json"))?.unwrap_or_default();
        let data = Self {
            directory: directory.into(),
            state: Mutex::new(PersistedState { identity, sessions, spawned }),
            _lock: lock,
        };
        data.save_identity()?;
        Ok(data)
    }

    pub fn gateway(&self) -> GatewayId {
        GatewayId::stored(self.state.lock().identity.gateway.as_str())
    }

    /// Returns the id of the agent with this name; creates and saves one at the first call.
    pub fn agent(&self, name: &str) -> io::Result<AgentId> {
        let existing = self.state.lock().identity.agents.get(name).and_then(|id| AgentId::parse(id).ok());
        if let Some(existing) = existing {
            return Ok(existing);
        }
        let id = new_id();
        self.state.lock().identity.agents.insert(name.into(), id.clone());
        self.save_identity()?;
        Ok(AgentId::stored(id))
    }

    /// The session id that the program of an agent uses in a context.
    pub fn session(&self, agent: &AgentId, context: &RunContext) -> Option<Box<str>> {
        let state = self.state.lock();
        Some(state.sessions.get(agent.as_str())?.get(&key_of(context))?.as_str().into())
    }

    /// Saves the session of an agent in a context; `None` deletes it.
    pub fn put_session(
        &self,
        agent: &AgentId,
        context: &RunContext,
        session: Option<&str>,
    ) -> io::Result<()> {
        let mut state = self.state.lock();
        let of_agent = state.sessions.entry(agent.to_string()).or_default();
        let before = match session {
            Some(session) => of_agent.insert(key_of(context), session.into()),
            None => of_agent.remove(&key_of(context)),
        };
        if before.as_deref() == session {
            return Ok(());
        }
        replace(&self.directory.join("sessions.json"), &serde_json::to_vec(&state.sessions)?)
    }

    /// All remotely created agents.
    pub fn spawned(&self) -> Vec<AgentSpec> {
        let spec = |spawned: &Spawned| {
            let id = AgentId::parse(&spawned.id).ok()?;
            let name = spawned.name.as_str().into();
            Some(AgentSpec { id, name, agent_config: spawned.recipe.clone() })
        };
        self.state.lock().spawned.iter().filter_map(spec).collect()
    }

    pub fn put_spawned(&self, spec: &AgentSpec) -> io::Result<()> {
        let mut state = self.state.lock();
        if state.spawned.len() >= MAX_SPAWNED {
            return Err(io::Error::other(format!(
                "the maximum of {MAX_SPAWNED} remotely created agents is reached"
            )));
        }
        let AgentSpec { id, name, agent_config } = spec.clone();
        state.spawned.push(Spawned { id: id.to_string(), name: name.into(), recipe: agent_config });
        self.save_spawned(&state.spawned)
    }

    pub fn forget_spawned(&self, agent: &AgentId) -> io::Result<()> {
        let mut state = self.state.lock();
        let before = state.spawned.len();
        state.spawned.retain(|spawned| spawned.id != agent.as_str());
        if state.spawned.len() == before { Ok(()) } else { self.save_spawned(&state.spawned) }
    }

    fn save_spawned(&self, spawned: &[Spawned]) -> io::Result<()> {
        replace(&self.directory.join("spawned.json"), &serde_json::to_vec_pretty(spawned)?)
    }

    /// Saves a run. Numbers increase in the order in which runs start.
    pub fn put_run(&self, number: u64, run: &PersistedRun) -> io::Result<()> {
        replace(&self.run_file(number), &serde_json::to_vec(run)?)
    }

    pub fn forget(&self, number: u64) {
        // An error is harmless: a file that stays is offered to the hub again, which already has the reply.
        let _ = fs::remove_file(self.run_file(number));
    }

    /// Loads the runs that an earlier process left, in the order of their start. Unreadable files are
    /// deleted.
    pub fn unfinished_runs(&self) -> io::Result<Vec<(u64, PersistedRun)>> {
        let mut runs = Vec::new();
        for entry in fs::read_dir(self.directory.join("replies"))? {
            let path = entry?.path();
            let number = path.file_stem().and_then(|name| name.to_str()?.parse().ok());
            match (number, read(&path)) {
                (Some(number), Ok(Some(run))) => runs.push((number, run)),
                _ => drop(fs::remove_file(&path)),
            }
        }
        runs.sort_by_key(|(number, _)| *number);
        let excess = runs.len().saturating_sub(MAX_UNFINISHED_RUNS);
        for (number, _) in runs.drain(..excess) {
            self.forget(number);
        }
        Ok(runs)
    }

    fn run_file(&self, number: u64) -> PathBuf {
        self.directory.join(format!("replies/{number}.json"))
    }

    fn save_identity(&self) -> io::Result<()> {
        replace(
            &self.directory.join("gateway.json"),
            &serde_json::to_vec_pretty(&self.state.lock().identity)?,
        )
    }
}

/// Key of a context in `sessions.json`: the id of the room or, for a session, a text that no room has as its id.
fn key_of(context: &RunContext) -> String {
    match context {
        RunContext::Room(room) => room.to_string(),
        RunContext::Session(session) => format!("session/{session}"),
    }
}

pub fn new_id() -> String {
    uuid::Uuid::now_v7().simple().to_string()
}

fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|_| {
            io::Error::new(io::ErrorKind::InvalidData, format!("{} is damaged", path.display()))
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Replaces a file atomically; only its owner can read the new one.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(content)?;
    file.sync_data()?;
    fs::rename(&new, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn run(reply: &str) -> PersistedRun {
        let (agent, room, run) = ("a".into(), Some("r".into()), "t".into());
        PersistedRun {
            agent,
            room,
            session: None,
            run,
            reply: reply.into(),
            conversation: None,
            depth: 0,
            taken: Vec::new(),
            finished: None,
        }
    }

    #[test]
    fn the_next_process_is_the_same_gateway_with_the_same_agents_and_sessions() {
        let directory = tempfile::tempdir().unwrap();
        let agent = AgentId::stored("a");
        let room = RunContext::Room(RoomId::stored("r"));
        let session = RunContext::Session(SessionId::stored("r"));
        let open = || GatewayStore::open(directory.path()).unwrap();
        let first = open();
        let (gateway, coder) = (first.gateway(), first.agent("coder").unwrap());
        first.put_session(&agent, &room, Some("s1")).unwrap();
        first.put_session(&agent, &session, Some("s2")).unwrap();
        let busy = GatewayStore::open(directory.path()).unwrap_err();
        assert_eq!(busy.kind(), io::ErrorKind::ResourceBusy, "only one process can use the directory");
        drop(first);
        let second = open();
        assert_eq!((second.gateway(), second.agent("coder").unwrap()), (gateway, coder));
        assert_eq!(second.session(&agent, &room).as_deref(), Some("s1"));
        second.put_session(&agent, &room, None).unwrap();
        drop(second);
        let third = open();
        assert_eq!(third.session(&agent, &room), None);
        assert_eq!(third.session(&agent, &session).as_deref(), Some("s2"), "a session is not a room");
        let mode = directory.path().join("sessions.json").metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn unfinished_runs_are_loaded_in_order_and_damaged_files_are_ignored() {
        let directory = tempfile::tempdir().unwrap();
        let data = GatewayStore::open(directory.path()).unwrap();
        for number in [10, 2, 7] {
            data.put_run(number, &run(&format!("m{number}"))).unwrap();
        }
        data.forget(7);
        fs::write(directory.path().join("replies/3.json"), "{").unwrap();
        fs::write(directory.path().join("replies/4.new"), "{}").unwrap();
        let left: Vec<(u64, String)> =
            data.unfinished_runs().unwrap().into_iter().map(|(number, run)| (number, run.reply)).collect();
        assert_eq!(left, [(2, "m2".to_owned()), (10, "m10".to_owned())]);
    }
}
