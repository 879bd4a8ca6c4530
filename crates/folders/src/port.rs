//! The folders of agents, as the rest of the hub sees them.

use crate::scan::{CLAUDE_MD, create_folder, open_folder, path_of};
use crate::tools;
use parking_lot::{Condvar, Mutex};
use parlor_engine::ports::{AgentFolders, FolderError, FolderInfo, ToolProgram};
use parlor_model::AgentId;
use parlor_safe_files::Directory;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Maximum size of a `CLAUDE.md` and of the notes of an agent.
const MAX_TEXT_BYTES: u64 = 1024 * 1024;
/// Text between the inherited files.
const SEPARATOR: &str = "\n\n---\n\n";
/// Time for which a request about a new agent waits until its folder is written.
const NEW_FOLDER_TIMEOUT: Duration = Duration::from_secs(5);

/// Folders below one root. Shared with the synchroniser, which keeps the list current.
#[derive(Debug)]
pub struct Folders {
    root: Directory,
    shared: Mutex<Shared>,
    /// Notified when a synchronisation has ended.
    completed: Condvar,
    /// Wakes the synchroniser.
    pub(crate) wake: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Shared {
    folders: BTreeMap<AgentId, FolderInfo>,
    /// Numbers of the last requested and the last completed synchronisation.
    requested: u64,
    completed: u64,
}

impl Folders {
    pub(crate) fn new(root: Directory) -> Self {
        Self { root, shared: Mutex::default(), completed: Condvar::new(), wake: Arc::default() }
    }

    pub(crate) fn root(&self) -> &Directory {
        &self.root
    }

    /// Number of the last request, which a synchronisation that starts now answers.
    pub(crate) fn requested(&self) -> u64 {
        self.shared.lock().requested
    }

    pub(crate) fn complete(&self, request: u64, folders: Option<BTreeMap<AgentId, FolderInfo>>) {
        let mut shared = self.shared.lock();
        if let Some(folders) = folders {
            shared.folders = folders;
        }
        shared.completed = request;
        self.completed.notify_all();
    }

    fn request(&self) -> u64 {
        let mut shared = self.shared.lock();
        shared.requested += 1;
        let request = shared.requested;
        drop(shared);
        self.wake.notify_one();
        request
    }

    /// The folder of an agent. For an agent that was created a moment ago, waits until its folder is written.
    fn known(&self, agent: &AgentId) -> Result<FolderInfo, FolderError> {
        if let Some(found) = self.folder(agent) {
            return Ok(found);
        }
        let request = self.request();
        let mut shared = self.shared.lock();
        while shared.completed < request {
            if self.completed.wait_for(&mut shared, NEW_FOLDER_TIMEOUT).timed_out() {
                break;
            }
        }
        shared.folders.get(agent).cloned().ok_or(FolderError::NoFolder)
    }

    fn present(&self, agent: &AgentId) -> Result<(), FolderError> {
        if self.known(agent)?.is_missing { Err(FolderError::Missing) } else { Ok(()) }
    }
}

impl AgentFolders for Folders {
    fn folder(&self, agent: &AgentId) -> Option<FolderInfo> {
        self.shared.lock().folders.get(agent).cloned()
    }

    fn claude_md(&self, agent: &AgentId) -> Result<String, FolderError> {
        self.present(agent)?;
        let folder = open_folder(&self.root, agent).map_err(rejected)?.ok_or(FolderError::Missing)?;
        text(&folder, CLAUDE_MD)
    }

    fn set_claude_md(&self, agent: &AgentId, content: &str) -> Result<(), FolderError> {
        if content.len() as u64 > MAX_TEXT_BYTES {
            return Err(FolderError::Invalid("the content is larger than 1 MB".into()));
        }
        self.present(agent)?;
        let folder = create_folder(&self.root, agent).map_err(rejected)?;
        let same = text(&folder, CLAUDE_MD).is_ok_and(|old| old == content && !content.is_empty());
        if !same {
            folder.replace(CLAUDE_MD, content.as_bytes()).map_err(rejected)?;
        }
        self.request();
        Ok(())
    }

    fn instructions(&self, agent: &AgentId) -> Result<String, FolderError> {
        instructions(&self.root, agent)
    }

    fn tools(&self, agent: &AgentId) -> Result<Vec<ToolProgram>, FolderError> {
        match self.folder(agent) {
            Some(info) if !info.is_missing => {
                tools::of_agent(&self.root, agent, &path_of(self.root.path(), agent)).map_err(rejected)
            }
            _ => Ok(Vec::new()),
        }
    }

    fn rescan(&self) {
        self.request();
    }
}

/// Every `CLAUDE.md` from the root to the folder, and then the notes of the agent.
pub(crate) fn instructions(root: &Directory, agent: &AgentId) -> Result<String, FolderError> {
    let mut ids: Vec<AgentId> = agent.ancestors().collect();
    ids.reverse();
    ids.push(agent.clone());
    let mut parts = vec![text(root, CLAUDE_MD)?];
    for id in &ids {
        if let Some(folder) = open_folder(root, id).map_err(rejected)? {
            parts.push(text(&folder, CLAUDE_MD)?);
            if id == agent
                && let Some(memory) = folder.below("memory").map_err(rejected)?
            {
                parts.push(text(&memory, "notes.md")?);
            }
        }
    }
    parts.retain(|part| !part.trim().is_empty());
    Ok(parts.join(SEPARATOR))
}

fn text(folder: &Directory, name: &str) -> Result<String, FolderError> {
    let bytes = folder.read(name, MAX_TEXT_BYTES).map_err(rejected)?.unwrap_or_default();
    String::from_utf8(bytes).map_err(|_| FolderError::Invalid(format!("{name} is not UTF-8 text")))
}

fn rejected(error: io::Error) -> FolderError {
    match error.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::FileTooLarge => FolderError::Invalid(error.to_string()),
        _ => {
            tracing::warn!(%error, "the folder of an agent cannot be used");
            FolderError::Io
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn instructions_are_inherited_from_the_root_to_the_agent() {
        let path = tempfile::tempdir().unwrap();
        fs::create_dir_all(path.path().join("lead/plain/coder/memory")).unwrap();
        for (file, text) in [
            ("CLAUDE.md", "root"),
            ("lead/CLAUDE.md", "lead"),
            ("lead/plain/coder/CLAUDE.md", "coder"),
            ("lead/plain/coder/memory/notes.md", "notes"),
        ] {
            fs::write(path.path().join(file), text).unwrap();
        }
        let root = Directory::open(path.path()).unwrap();
        let of = |id| instructions(&root, &AgentId::stored(id)).unwrap();
        assert_eq!(of("lead/plain/coder"), "root\n\n---\n\nlead\n\n---\n\ncoder\n\n---\n\nnotes");
        assert_eq!(of("lead"), "root\n\n---\n\nlead");
        fs::remove_file(path.path().join("lead/CLAUDE.md")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", path.path().join("lead/CLAUDE.md")).unwrap();
        let refused = instructions(&root, &AgentId::stored("lead")).unwrap_err();
        assert!(matches!(refused, FolderError::Invalid(reason) if reason.contains("symbolic link")));
    }
}
