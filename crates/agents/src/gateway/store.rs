//! What a gateway keeps over a restart: who it is, the sessions of its agents, and replies that the hub may not have.
//!
//! Owns: a file is the old one or the new one, never half of it, and nobody else can read it.

use super::AgentSpec;
use super::reply::Part;
use crate::kinds::AgentConfig;
use parking_lot::Mutex;
use parlor_model::{AgentId, GatewayId, MessageId, RoomId, RunId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Replies that are kept while there is no hub to take them.
const MOST_REPLIES: usize = 1000;
/// Agents that can be made from afar.
const MOST_SPAWNED: usize = 100;

/// The directory of one gateway, in the hands of one process.
#[derive(Debug)]
pub struct GatewayStore {
    directory: PathBuf,
    known: Mutex<PersistedState>,
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
    /// The id of each agent, by its name.
    #[serde(default)]
    agents: BTreeMap<String, String>,
}

/// An agent that was made from afar.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Spawned {
    id: String,
    name: String,
    recipe: AgentConfig,
}

/// By agent and room.
type Sessions = BTreeMap<String, BTreeMap<String, String>>;

/// A turn that was begun and that the hub has not been seen to end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PersistedRun {
    pub agent: String,
    pub room: String,
    pub run: String,
    pub reply: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    #[serde(default)]
    pub depth: u32,
    /// Turns that became part of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken: Vec<String>,
    /// Absent while it is played.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<FinishedReply>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FinishedReply {
    /// Why it failed, if it did.
    pub failed: Option<Box<str>>,
    pub parts: Vec<Part>,
}

impl PersistedRun {
    pub fn ids(&self) -> Option<(AgentId, RoomId, RunId, MessageId)> {
        Some((
            AgentId::parse(&self.agent).ok()?,
            RoomId::parse(&self.room).ok()?,
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
            known: Mutex::new(PersistedState { identity, sessions, spawned }),
            _lock: lock,
        };
        data.save_identity()?;
        Ok(data)
    }

    pub fn gateway(&self) -> GatewayId {
        GatewayId::stored(self.known.lock().identity.gateway.as_str())
    }

    /// The id of the agent of this name, the same at every start.
    pub fn agent(&self, name: &str) -> io::Result<AgentId> {
        let known = self.known.lock().identity.agents.get(name).and_then(|id| AgentId::parse(id).ok());
        if let Some(known) = known {
            return Ok(known);
        }
        let id = new_id();
        self.known.lock().identity.agents.insert(name.into(), id.clone());
        self.save_identity()?;
        Ok(AgentId::stored(id))
    }

    pub fn session(&self, agent: &AgentId, room: &RoomId) -> Option<Box<str>> {
        let known = self.known.lock();
        Some(known.sessions.get(agent.as_str())?.get(room.as_str())?.as_str().into())
    }

    /// `None` forgets it.
    pub fn put_session(&self, agent: &AgentId, room: &RoomId, session: Option<&str>) -> io::Result<()> {
        let mut known = self.known.lock();
        let of_agent = known.sessions.entry(agent.to_string()).or_default();
        let before = match session {
            Some(session) => of_agent.insert(room.to_string(), session.into()),
            None => of_agent.remove(room.as_str()),
        };
        if before.as_deref() == session {
            return Ok(());
        }
        replace(&self.directory.join("sessions.json"), &serde_json::to_vec(&known.sessions)?)
    }

    /// What was made from afar, as it is to be hosted again.
    pub fn spawned(&self) -> Vec<AgentSpec> {
        let plan = |one: &Spawned| {
            let id = AgentId::parse(&one.id).ok()?;
            Some(AgentSpec { id, name: one.name.as_str().into(), agent_config: one.recipe.clone() })
        };
        self.known.lock().spawned.iter().filter_map(plan).collect()
    }

    pub fn put_spawned(&self, plan: &AgentSpec) -> io::Result<()> {
        let mut known = self.known.lock();
        if known.spawned.len() >= MOST_SPAWNED {
            return Err(io::Error::other(format!("there are {MOST_SPAWNED} already")));
        }
        let AgentSpec { id, name, agent_config } = plan.clone();
        known.spawned.push(Spawned { id: id.to_string(), name: name.into(), recipe: agent_config });
        self.save_spawned(&known.spawned)
    }

    pub fn forget_spawned(&self, agent: &AgentId) -> io::Result<()> {
        let mut known = self.known.lock();
        let before = known.spawned.len();
        known.spawned.retain(|one| one.id != agent.as_str());
        if known.spawned.len() == before { Ok(()) } else { self.save_spawned(&known.spawned) }
    }

    fn save_spawned(&self, spawned: &[Spawned]) -> io::Result<()> {
        replace(&self.directory.join("spawned.json"), &serde_json::to_vec_pretty(spawned)?)
    }

    /// Writes down how far a turn is; the number says when it began.
    pub fn keep(&self, number: u64, kept: &PersistedRun) -> io::Result<()> {
        replace(&self.reply(number), &serde_json::to_vec(kept)?)
    }

    pub fn forget(&self, number: u64) {
        // One that stays is offered to the hub once more, which has it already.
        let _ = fs::remove_file(self.reply(number));
    }

    /// What an earlier process left, in the order in which it began. What cannot be read is no reply.
    pub fn unfinished_runs(&self) -> io::Result<Vec<(u64, PersistedRun)>> {
        let mut left = Vec::new();
        for entry in fs::read_dir(self.directory.join("replies"))? {
            let path = entry?.path();
            let number = path.file_stem().and_then(|name| name.to_str()?.parse().ok());
            match (number, read(&path)) {
                (Some(number), Ok(Some(kept))) => left.push((number, kept)),
                _ => drop(fs::remove_file(&path)),
            }
        }
        left.sort_by_key(|(number, _)| *number);
        let too_many = left.len().saturating_sub(MOST_REPLIES);
        for (number, _) in left.drain(..too_many) {
            self.forget(number);
        }
        Ok(left)
    }

    fn reply(&self, number: u64) -> PathBuf {
        self.directory.join(format!("replies/{number}.json"))
    }

    fn save_identity(&self) -> io::Result<()> {
        replace(
            &self.directory.join("gateway.json"),
            &serde_json::to_vec_pretty(&self.known.lock().identity)?,
        )
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

/// Puts a file in the place of another; only its owner can read it.
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

    fn kept(reply: &str) -> PersistedRun {
        let (agent, room, run) = ("a".into(), "r".into(), "t".into());
        PersistedRun {
            agent,
            room,
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
        let place = tempfile::tempdir().unwrap();
        let (agent, room) = (AgentId::stored("a"), RoomId::stored("r"));
        let open = || GatewayStore::open(place.path()).unwrap();
        let first = open();
        let (gateway, coder) = (first.gateway(), first.agent("coder").unwrap());
        first.put_session(&agent, &room, Some("s1")).unwrap();
        first.put_session(&agent, &RoomId::stored("other"), Some("s2")).unwrap();
        let busy = GatewayStore::open(place.path()).unwrap_err();
        assert_eq!(busy.kind(), io::ErrorKind::ResourceBusy, "one process at a time");
        drop(first);
        let second = open();
        assert_eq!((second.gateway(), second.agent("coder").unwrap()), (gateway, coder));
        assert_eq!(second.session(&agent, &room).as_deref(), Some("s1"));
        second.put_session(&agent, &room, None).unwrap();
        drop(second);
        let third = open();
        assert_eq!(third.session(&agent, &room), None);
        assert_eq!(third.session(&agent, &RoomId::stored("other")).as_deref(), Some("s2"));
        let mode = place.path().join("sessions.json").metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn what_was_left_is_found_in_its_order_and_what_is_damaged_is_nothing() {
        let place = tempfile::tempdir().unwrap();
        let data = GatewayStore::open(place.path()).unwrap();
        for number in [10, 2, 7] {
            data.keep(number, &kept(&format!("m{number}"))).unwrap();
        }
        data.forget(7);
        fs::write(place.path().join("replies/3.json"), "{").unwrap();
        fs::write(place.path().join("replies/4.new"), "{}").unwrap();
        let left: Vec<(u64, String)> =
            data.unfinished_runs().unwrap().into_iter().map(|(number, kept)| (number, kept.reply)).collect();
        assert_eq!(left, [(2, "m2".to_owned()), (10, "m10".to_owned())]);
    }
}
