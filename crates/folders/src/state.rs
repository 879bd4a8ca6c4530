//! State of the synchronisation, which survives a restart: the configuration that file and store had last in common, and the
//! files of messages that were imported.
//!
//! It belongs to one history of the hub and to one root. With another one it is empty: then files win over the store.

use crate::config::DocDigest;
use parlor_model::{AgentId, Epoch, Mailbox, SessionId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Name of the file in the data directory of the hub.
const FILE: &str = "agents-root.json";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    epoch: Epoch,
    root: PathBuf,
    pub agents: BTreeMap<AgentId, Known>,
    /// Files in `.messages` that were imported, or that the hub created.
    pub messages: BTreeMap<String, KnownFile>,
}

/// The last common configuration of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Known {
    pub digest: DocDigest,
    pub sessions: BTreeMap<SessionId, DocDigest>,
}

/// A file of messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownFile {
    /// `None` for the messages that no mailbox received.
    pub mailbox: Option<Mailbox>,
    /// Size of the file when it was imported; 0 if the hub created it.
    pub imported_bytes: u64,
}

/// The state with the directory in which it is stored.
#[derive(Debug)]
pub struct StateFile {
    directory: parlor_safe_files::Directory,
    pub state: State,
    stored: Option<State>,
}

impl StateFile {
    /// Reads the state, or begins an empty one.
    pub fn open(data: &Path, root: &Path, epoch: Epoch) -> io::Result<Self> {
        const MAX_BYTES: u64 = 64 * 1024 * 1024;
        let directory = parlor_safe_files::Directory::open(data)?;
        let stored: Option<State> =
            directory.read(FILE, MAX_BYTES)?.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let stored = stored.filter(|state| state.epoch == epoch && state.root == root);
        let empty =
            || State { epoch, root: root.to_owned(), agents: BTreeMap::new(), messages: BTreeMap::new() };
        Ok(Self { directory, state: stored.clone().unwrap_or_else(empty), stored })
    }

    /// Stores the state if it has changed.
    pub fn save(&mut self) -> io::Result<()> {
        if self.stored.as_ref() == Some(&self.state) {
            return Ok(());
        }
        let json = serde_json::to_vec(&self.state).map_err(io::Error::other)?;
        self.directory.replace(FILE, &json)?;
        self.stored = Some(self.state.clone());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_belongs_to_one_history_and_one_root() {
        let data = tempfile::tempdir().unwrap();
        let open = |root: &str, epoch| StateFile::open(data.path(), Path::new(root), Epoch(epoch)).unwrap();
        let mut file = open("/a", 1);
        file.state.agents.insert(AgentId::stored("x/y"), Known::default());
        file.save().unwrap();
        assert_eq!(open("/a", 1).state, file.state);
        assert!(open("/a", 2).state.agents.is_empty() && open("/b", 1).state.agents.is_empty());
    }
}
