//! Reads all agents below the root.
//!
//! Owns: which directories are agents, and which files are accepted. A file that is not accepted is a problem with a sentence
//! for the operator; it changes nothing, and its agent counts as present.

use crate::config::{AgentDoc, HOST_FIELD, SessionDoc, named_id};
use crate::document::Document;
use parlor_model::{AgentId, SessionId};
use parlor_safe_files::{Directory, Kind};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

pub const AGENT_FILE: &str = "jvAgent.json";
pub const CLAUDE_MD: &str = "CLAUDE.md";
pub const SESSIONS: &str = "sessions";
pub const TOOLS: &str = "tools";
/// Directories that contain no agents, besides those that begin with a dot.
const NO_AGENTS: [&str; 6] = [SESSIONS, TOOLS, "workspace", "tmp", "memory", "node_modules"];

const MAX_FILE_BYTES: u64 = 256 * 1024;
/// Maximum entries of one directory, and directories of one scan. What is beyond is not read, and not missing.
const MAX_ENTRIES: usize = 10_000;
const MAX_DIRECTORIES: usize = 20_000;
/// An id has at most this number of segments.
const MAX_DEPTH: usize = 8;

/// State of the root at one time.
#[derive(Debug, Default)]
pub struct Scan {
    /// All folders of agents; `None` if the file of the agent is not accepted.
    pub agents: BTreeMap<AgentId, Option<FoundAgent>>,
    /// Folders with tools, by the path below the root; the root itself is the empty path.
    pub tools: BTreeSet<String>,
    pub problems: BTreeSet<Problem>,
    /// Directories that could not be read, by the path below the root. Agents there and below count as present.
    unread: BTreeSet<String>,
    /// Directories whose changes may change the result.
    pub directories: Vec<PathBuf>,
}

#[derive(Debug, Clone)]
pub struct FoundAgent {
    pub file: Document,
    /// The id in the file. A folder that was renamed still has its old one.
    pub named: Option<AgentId>,
    pub doc: AgentDoc,
    /// JSON of the kind and the program.
    pub host: Option<String>,
    pub sessions: BTreeMap<SessionId, FoundSession>,
    /// Sessions whose file is not accepted.
    pub invalid_sessions: BTreeSet<SessionId>,
    pub has_claude_md: bool,
}

#[derive(Debug, Clone)]
pub struct FoundSession {
    pub file: Document,
    pub doc: SessionDoc,
}

/// A file or directory that is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    pub path: PathBuf,
    pub reason: String,
}

/// Reads the tree below the root. An error means that the root itself could not be read.
pub fn scan(root: &Directory) -> io::Result<Scan> {
    let mut scan = Scan::default();
    let mut named = BTreeMap::new();
    let mut open = vec![(root.clone(), String::new())];
    while let Some((directory, id)) = open.pop() {
        if scan.directories.len() >= MAX_DIRECTORIES {
            let reason = format!("the root has more than {MAX_DIRECTORIES} directories; it is not read");
            scan.unread(&directory, id, reason);
            continue;
        }
        scan.directories.push(directory.path().to_owned());
        let names = match directory.names(MAX_ENTRIES) {
            Ok(names) => names,
            Err(error) if id.is_empty() => return Err(error),
            Err(error) => {
                scan.unread(&directory, id, error.to_string());
                continue;
            }
        };
        let depth = id.split('/').count();
        for name in &names {
            let below = if id.is_empty() { name.clone() } else { format!("{id}/{name}") };
            let kind = match directory.kind(name) {
                Ok(kind) => kind,
                Err(error) => {
                    scan.problem(directory.path().join(name), error.to_string());
                    scan.unread.insert(below);
                    continue;
                }
            };
            match kind {
                Some(Kind::Directory) if is_searched(name) && (id.is_empty() || depth < MAX_DEPTH) => {
                    match directory.below(name) {
                        Ok(Some(found)) => open.push((found, below)),
                        // A directory that was removed in the meantime is found missing by its next scan.
                        Ok(None) => {}
                        Err(error) => {
                            scan.problem(directory.path().join(name), error.to_string());
                            scan.unread.insert(below);
                        }
                    }
                }
                Some(Kind::SymbolicLink) if is_searched(name) && leads_to_directory(&directory, name) => {
                    scan.problem(directory.path().join(name), "it is a symbolic link, which is not followed");
                }
                _ => {}
            }
        }
        if names.iter().any(|name| name == TOOLS) {
            scan.tools.insert(id.clone());
        }
        let has_file = names.iter().any(|name| name == AGENT_FILE);
        if id.is_empty() || !has_file {
            continue;
        }
        let path = directory.path().join(AGENT_FILE);
        let Ok(agent) = AgentId::parse(&id) else {
            scan.problem(
                path,
                "its folder is not the name of an agent: use letters, digits, _ and -, at most 64",
            );
            continue;
        };
        match read_agent(&directory, &agent, &mut scan) {
            Ok(found) => {
                named.extend(found.named.clone().map(|id| (agent.clone(), id)));
                scan.agents.insert(agent, Some(found));
            }
            Err(reason) => {
                scan.problem(path, reason);
                scan.agents.insert(agent, None);
            }
        }
    }
    // A renamed folder still names its old id, which no other folder has. A copied folder names the id of the original.
    for (agent, named) in named {
        if named != agent && scan.agents.contains_key(&named) {
            let path = root.path().join(agent.as_str()).join(AGENT_FILE);
            scan.problem(
                path,
                format!("its field id is {named}, which is another folder; remove the field or change it to {agent}"),
            );
            scan.agents.insert(agent, None);
        }
    }
    Ok(scan)
}

impl Scan {
    /// Whether the folder of an agent exists, as far as the scan could read.
    pub fn is_present(&self, agent: &AgentId) -> bool {
        let mut own_and_above = std::iter::once(agent.clone()).chain(agent.ancestors());
        self.agents.contains_key(agent) || own_and_above.any(|id| self.unread.contains(id.as_str()))
    }

    fn unread(&mut self, directory: &Directory, id: String, reason: String) {
        self.problem(directory.path().to_owned(), reason);
        self.unread.insert(id);
    }

    fn problem(&mut self, path: PathBuf, reason: impl Into<String>) {
        self.problems.insert(Problem { path, reason: reason.into() });
    }

    /// Whether an agent has tools of its own, or inherits some.
    pub fn has_tools(&self, agent: &AgentId) -> bool {
        let own_and_above = std::iter::once(agent.clone()).chain(agent.ancestors());
        self.tools.contains("") || own_and_above.into_iter().any(|id| self.tools.contains(id.as_str()))
    }
}

/// Whether the folder of an agent with this id would be found.
pub fn may_have_folder(agent: &AgentId) -> bool {
    agent.as_str().split('/').all(is_searched)
}

/// Whether directories with this name may contain agents.
fn is_searched(name: &str) -> bool {
    !name.starts_with('.') && !NO_AGENTS.contains(&name)
}

fn leads_to_directory(directory: &Directory, name: &str) -> bool {
    std::fs::metadata(directory.path().join(name)).is_ok_and(|target| target.is_dir())
}

/// Reads the file of an agent and those of its sessions.
fn read_agent(directory: &Directory, id: &AgentId, scan: &mut Scan) -> Result<FoundAgent, String> {
    let file = read_document(directory, AGENT_FILE)?;
    let named = named_id(&file)?;
    let doc = AgentDoc::of_file(id, &file)?;
    let mut found = FoundAgent {
        host: file.get(HOST_FIELD).map(str::to_owned),
        file,
        named,
        doc,
        sessions: BTreeMap::new(),
        invalid_sessions: BTreeSet::new(),
        has_claude_md: matches!(directory.kind(CLAUDE_MD), Ok(Some(Kind::File))),
    };
    match directory.below(SESSIONS) {
        Ok(Some(sessions)) => read_sessions(&sessions, &mut found, scan),
        Ok(None) => {}
        Err(error) => scan.problem(directory.path().join(SESSIONS), error.to_string()),
    }
    Ok(found)
}

fn read_sessions(directory: &Directory, found: &mut FoundAgent, scan: &mut Scan) {
    scan.directories.push(directory.path().to_owned());
    let names = match directory.names(MAX_ENTRIES) {
        Ok(names) => names,
        Err(error) => return scan.problem(directory.path().to_owned(), error.to_string()),
    };
    for name in names {
        let Some(id) = name.strip_suffix(".json").filter(|id| !id.starts_with('.')) else { continue };
        let path = directory.path().join(&name);
        let Ok(id) = SessionId::parse(id) else {
            scan.problem(
                path,
                "its name is not the id of a session: use letters, digits, _ and -, at most 64",
            );
            continue;
        };
        let session = read_document(directory, &name)
            .and_then(|file| SessionDoc::of_file(&id, &file).map(|doc| FoundSession { file, doc }));
        match session {
            Ok(session) => drop(found.sessions.insert(id, session)),
            Err(reason) => {
                found.invalid_sessions.insert(id);
                scan.problem(path, reason);
            }
        }
    }
}

fn read_document(directory: &Directory, name: &str) -> Result<Document, String> {
    match directory.read(name, MAX_FILE_BYTES) {
        Ok(Some(bytes)) => Document::parse(&bytes),
        Ok(None) => Err("it was removed while it was read".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// Opens the folder of an agent, component by component; `None` if it does not exist.
pub fn open_folder(root: &Directory, agent: &AgentId) -> io::Result<Option<Directory>> {
    let mut directory = root.clone();
    for segment in agent.as_str().split('/') {
        match directory.below(segment)? {
            Some(below) => directory = below,
            None => return Ok(None),
        }
    }
    Ok(Some(directory))
}

/// Opens the folder of an agent and creates it if it does not exist.
pub fn create_folder(root: &Directory, agent: &AgentId) -> io::Result<Directory> {
    agent.as_str().split('/').try_fold(root.clone(), |directory, segment| directory.create_below(segment))
}

/// Path of an agent's folder.
pub fn path_of(root: &Path, agent: &AgentId) -> PathBuf {
    root.join(agent.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    struct Root(tempfile::TempDir);

    impl Root {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn write(&self, path: &str, content: &str) -> &Self {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
            self
        }

        fn scan(&self) -> Scan {
            scan(&Directory::open(self.0.path()).unwrap()).unwrap()
        }

        /// Requires that the agents are exactly these, and that one problem concerns this path for this reason.
        #[track_caller]
        fn check(&self, agents: &[&str], path: &str, reason: &str) {
            let scan = self.scan();
            let valid = scan.agents.iter().filter(|(_, found)| found.is_some());
            assert_eq!(valid.map(|(id, _)| id.as_str()).collect::<Vec<_>>(), agents);
            let expected = self.0.path().join(path);
            let problem = scan.problems.iter().find(|problem| problem.path == expected);
            let problem = problem.unwrap_or_else(|| panic!("{:?}", scan.problems));
            assert!(problem.reason.contains(reason), "{}", problem.reason);
        }
    }

    #[test]
    fn every_directory_with_a_file_is_an_agent_except_some_names() {
        let root = Root::new();
        for path in [
            "lead",
            "plain/deep/coder",
            "lead/writer",
            ".hidden",
            "lead/sessions/x",
            "lead/tools/x",
            "workspace/a",
            "tmp/a",
            "lead/memory/a",
            "node_modules/a",
            "1/2/3/4/5/6/7/8",
            "1/2/3/4/5/6/7/8/9",
        ] {
            root.write(&format!("{path}/{AGENT_FILE}"), "{}");
        }
        root.write("jvAgent.json", "{}").write("lead/CLAUDE.md", "x").write("lead/sessions/s.json", "{}");
        let scan = root.scan();
        let ids: Vec<_> = scan.agents.keys().map(AgentId::as_str).collect();
        assert_eq!(ids, ["1/2/3/4/5/6/7/8", "lead", "lead/writer", "plain/deep/coder"]);
        assert_eq!(scan.problems, BTreeSet::new());
        let lead = scan.agents[&AgentId::stored("lead")].as_ref().unwrap();
        assert!(lead.has_claude_md && lead.sessions.contains_key(&SessionId::stored("s")));
        assert!(scan.has_tools(&AgentId::stored("lead/writer")), "inherited");
        assert!(!scan.has_tools(&AgentId::stored("plain/deep/coder")));
    }

    #[test]
    fn hostile_names_and_ids_are_rejected() {
        let root = Root::new();
        root.write("ok/jvAgent.json", "{}").write("bad name/jvAgent.json", "{}");
        root.check(&["ok"], "bad name/jvAgent.json", "not the name of an agent");
        let root = Root::new();
        root.write("ok/jvAgent.json", r#"{"id":"../../etc"}"#);
        root.check(&[], "ok/jvAgent.json", "not the id of an agent");
        assert!(
            root.scan().agents.contains_key(&AgentId::stored("ok")),
            "present, so that it is not missing"
        );
        let root = Root::new();
        root.write("ok/jvAgent.json", "{}").write("ok/sessions/a b.json", "{}");
        root.check(&["ok"], "ok/sessions/a b.json", "not the id of a session");
    }

    #[test]
    fn a_copied_folder_is_rejected_and_a_renamed_one_is_not() {
        let root = Root::new();
        root.write("coder/jvAgent.json", r#"{"id":"coder"}"#).write("copy/jvAgent.json", r#"{"id":"coder"}"#);
        root.check(&["coder"], "copy/jvAgent.json", "another folder");
        fs::remove_dir_all(root.0.path().join("coder")).unwrap();
        let scan = root.scan();
        assert!(scan.problems.is_empty() && scan.agents[&AgentId::stored("copy")].is_some());
    }

    #[test]
    fn a_directory_with_too_many_entries_hides_no_other_agent() {
        let root = Root::new();
        root.write("coder/jvAgent.json", "{}").write("other/jvAgent.json", "{}");
        for number in 0..=MAX_ENTRIES {
            root.write(&format!("coder/out/{number}"), "");
        }
        root.check(&["coder", "other"], "coder/out", "more than 10000 entries");
        for number in 0..=MAX_ENTRIES {
            root.write(&format!("other/{number}"), "");
        }
        let scan = root.scan();
        assert!(
            scan.is_present(&AgentId::stored("other")) && scan.is_present(&AgentId::stored("other/below"))
        );
        assert!(!scan.is_present(&AgentId::stored("third")));
        assert!(scan.agents[&AgentId::stored("coder")].is_some());
    }

    #[test]
    fn symbolic_links_are_rejected() {
        let outside = Root::new();
        outside.write("agent/jvAgent.json", "{}").write("file", "{}").write("sessions/s.json", "{}");
        let target = |name: &str| outside.0.path().join(name);
        let root = Root::new();
        root.write("ok/jvAgent.json", "{}");
        symlink(target("agent"), root.0.path().join("linked")).unwrap();
        root.check(&["ok"], "linked", "symbolic link");
        let root = Root::new();
        root.write("ok/CLAUDE.md", "x");
        symlink(target("file"), root.0.path().join("ok/jvAgent.json")).unwrap();
        root.check(&[], "ok/jvAgent.json", "symbolic link");
        let root = Root::new();
        root.write("ok/jvAgent.json", "{}");
        symlink(target("sessions"), root.0.path().join("ok/sessions")).unwrap();
        root.check(&["ok"], "ok/sessions", "symbolic link");
        let root = Root::new();
        root.write("ok/jvAgent.json", "{}").write("ok/sessions/a.json", "{}");
        symlink(target("file"), root.0.path().join("ok/sessions/b.json")).unwrap();
        root.check(&["ok"], "ok/sessions/b.json", "symbolic link");
    }

    #[test]
    fn invalid_and_huge_files_are_rejected() {
        let root = Root::new();
        root.write("ok/jvAgent.json", "{").write("ok/sessions/s.json", "{}");
        root.check(&[], "ok/jvAgent.json", "not valid JSON");
        root.write("ok/jvAgent.json", &format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_FILE_BYTES as usize)));
        root.check(&[], "ok/jvAgent.json", "larger than");
        root.write("ok/jvAgent.json", "{}").write("ok/sessions/s.json", "[]");
        root.check(&["ok"], "ok/sessions/s.json", "not a JSON object");
    }
}
