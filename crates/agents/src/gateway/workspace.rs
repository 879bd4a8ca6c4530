//! Shows users the working directory of an agent: file tree, file contents and git status.
//!
//! Owns: nothing outside of the directory is readable, not even through symbolic links.

use crate::process::Program;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

/// Maximum bytes shown of a file.
const MAX_FILE_BYTES: u64 = 100 * 1024;
/// Maximum number of entries shown of a directory.
const MAX_ENTRIES: usize = 500;
/// Maximum number of changed files in the git status.
const MAX_CHANGED_FILES: usize = 100;
/// Maximum bytes read from git.
const MAX_GIT_BYTES: u64 = 256 * 1024;
/// Timeout for one git command.
const GIT_TIMEOUT: Duration = Duration::from_secs(3);

/// A workspace request, by how it is answered.
pub enum WorkspaceRequest {
    /// Answered by [`status`].
    Status,
    /// Answered by [`DiskRead::answer`].
    Read(DiskRead),
}

/// A request to read a directory or a file.
pub struct DiskRead {
    path: String,
    read: fn(&Path, &str) -> Result<Value, &'static str>,
}

impl WorkspaceRequest {
    /// Parses a JSON object with `kind` and `path`; `None` if the kind is not supported.
    pub fn parse(request: &str) -> Option<Self> {
        let request: Value = serde_json::from_str(request).unwrap_or_default();
        let path = request["path"].as_str().filter(|path| !path.is_empty()).unwrap_or(".").to_owned();
        Some(match request["kind"].as_str()? {
            "status" => Self::Status,
            "tree" => Self::Read(DiskRead { path, read: tree }),
            "file" => Self::Read(DiskRead { path, read: file }),
            _ => return None,
        })
    }
}

impl DiskRead {
    /// Reads the disk and blocks the thread meanwhile.
    pub fn answer(self, root: &Path) -> Value {
        (self.read)(root, &self.path).unwrap_or_else(error)
    }
}

pub fn error(message: &str) -> Value {
    json!({ "kind": "error", "message": message })
}

/// Resolves a path with all links; `None` if the result is not below the root.
fn resolve_below(root: &Path, path: &str) -> Option<PathBuf> {
    let path = Path::new(path);
    let is_relative = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let (root, resolved) = (root.canonicalize().ok()?, root.join(path).canonicalize().ok()?);
    (is_relative && resolved.starts_with(&root)).then_some(resolved)
}

const NOT_FOUND: &str = "There is no such file or folder in the agent's working directory.";
const UNREADABLE: &str = "The file or folder cannot be read.";

fn tree(root: &Path, path: &str) -> Result<Value, &'static str> {
    let folder = resolve_below(root, path).ok_or(NOT_FOUND)?;
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder).map_err(|_| NOT_FOUND)?.flatten().take(MAX_ENTRIES) {
        let Ok(metadata) = entry.metadata() else { continue };
        let name = entry.file_name().to_string_lossy().into_owned();
        entries.push(match metadata.is_dir() {
            true => json!({ "name": name, "type": "directory" }),
            false => json!({ "name": name, "type": "file", "size": metadata.len() }),
        });
    }
    entries.sort_by_key(|entry| (entry["type"] != "directory", entry["name"].as_str().map(str::to_owned)));
    Ok(json!({ "kind": "tree", "path": path, "entries": entries }))
}

fn file(root: &Path, path: &str) -> Result<Value, &'static str> {
    let path_on_disk = resolve_below(root, path).ok_or(NOT_FOUND)?;
    // Reading a pipe or a device could block.
    let metadata = path_on_disk.metadata().ok().filter(|metadata| metadata.is_file()).ok_or(NOT_FOUND)?;
    let mut content = Vec::new();
    let opened = File::open(path_on_disk).map_err(|_| UNREADABLE)?;
    opened.take(MAX_FILE_BYTES).read_to_end(&mut content).map_err(|_| UNREADABLE)?;
    if content.contains(&0) {
        return Err("This is not a text file.");
    }
    let text = String::from_utf8_lossy(&content);
    Ok(json!({ "kind": "file", "path": path, "content": text, "size": metadata.len(),
        "truncated": metadata.len() > MAX_FILE_BYTES }))
}

/// Answers a request for the git status of the directory.
pub async fn status(root: &Path) -> Value {
    json!({ "kind": "status", "data": git_status(root).await })
}

/// The branch and the changed files of the directory; `null` if it is not in a git repository, as the
/// protocol requires.
async fn git_status(root: &Path) -> Value {
    let Some(git) = Git::of(root).await else { return Value::Null };
    let Some(branch) = git.output(&["rev-parse", "--abbrev-ref", "HEAD"]).await else { return Value::Null };
    let compare = ["status", "--porcelain=v1", "-z", "--no-renames", "--ignore-submodules=all", "--", "."];
    let changed = git.output(&compare).await;
    let changed = changed.unwrap_or_default();
    let changed = changed.split('\0').filter(|line| line.len() > 3).take(MAX_CHANGED_FILES).map(|line| {
        let (state, path) = line.split_at(3);
        let status = match state.trim() {
            "??" | "A" => "added",
            "D" => "deleted",
            _ => "modified",
        };
        json!({ "path": path, "status": status })
    });
    json!({ "branch": branch.trim(), "changedFiles": changed.collect::<Vec<_>>() })
}

/// Runs git in the working directory of an agent. The repository is not trusted: its settings must not
/// start programs or point git to other directories, so git runs as an agent program with overridden
/// settings.
pub struct Git {
    folder: PathBuf,
    environment: BTreeMap<String, String>,
}

impl Git {
    /// Prepares git for a directory; `None` if it is not in a git repository.
    pub async fn of(folder: &Path) -> Option<Self> {
        let tree = folder.ancestors().find(|ancestor| ancestor.join(".git").exists())?;
        let fixed = [
            ("core.fsmonitor", "false"),
            ("core.hooksPath", "/dev/null"),
            ("safe.bareRepository", "explicit"),
            ("diff.ignoreSubmodules", "all"),
        ];
        let mut settings: Vec<(String, &str)> = fixed.map(|(key, value)| (key.to_owned(), value)).into();
        let with_settings = |settings: &[(String, &str)]| {
            let mut environment = BTreeMap::from([
                ("GIT_OPTIONAL_LOCKS".to_owned(), "0".to_owned()),
                ("GIT_NO_LAZY_FETCH".to_owned(), "1".to_owned()),
                ("GIT_WORK_TREE".to_owned(), tree.to_string_lossy().into_owned()),
                ("GIT_CONFIG_COUNT".to_owned(), settings.len().to_string()),
            ]);
            for (number, (key, value)) in settings.iter().enumerate() {
                environment.insert(format!("GIT_CONFIG_KEY_{number}"), key.clone());
                environment.insert(format!("GIT_CONFIG_VALUE_{number}"), (*value).to_owned());
            }
            Self { folder: folder.to_owned(), environment }
        };
        // Filters are programs that git runs on files before it compares them, so each one is cleared. If
        // this command prints nothing, no filter is set.
        let list_filters = ["config", "-z", "--name-only", "--get-regexp", r"^filter\."];
        let filters = with_settings(&settings).output(&list_filters).await.unwrap_or_default();
        for key in filters.split_terminator('\0') {
            settings.push((key.to_owned(), if key.ends_with(".required") { "false" } else { "" }));
        }
        Some(with_settings(&settings))
    }

    /// Runs git and returns its output, cut to the maximum size; `None` if it fails or times out.
    pub async fn output(&self, arguments: &[&str]) -> Option<String> {
        self.bounded_output(arguments).await.map(|(output, _)| output)
    }

    /// Like [`Git::output`], and also returns whether the output is complete.
    pub async fn bounded_output(&self, arguments: &[&str]) -> Option<(String, bool)> {
        let program = Program {
            program: "git".into(),
            arguments: ["--literal-pathspecs"].iter().chain(arguments).map(Into::into).collect(),
            environment: self.environment.iter().map(|(key, value)| (key.into(), value.into())).collect(),
            directory: Some(self.folder.clone()),
            inherited: None,
        };
        let mut running = program.start().ok()?;
        running.stdin = None;
        let stdout = running.stdout.take()?;
        let result = async {
            let mut output = Vec::new();
            stdout.take(MAX_GIT_BYTES).read_to_end(&mut output).await.ok()?;
            let cut = output.len() as u64 == MAX_GIT_BYTES;
            let succeeded = cut || running.wait().await.ok()?.success();
            succeeded.then(|| (String::from_utf8_lossy(&output).into_owned(), !cut))
        };
        let result = timeout(GIT_TIMEOUT, result).await.ok().flatten();
        running.stop().await;
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    async fn shown(root: &Path, kind: &str, path: &str) -> Value {
        match WorkspaceRequest::parse(&json!({ "kind": kind, "path": path }).to_string()).unwrap() {
            WorkspaceRequest::Status => status(root).await,
            WorkspaceRequest::Read(read) => read.answer(root),
        }
    }

    fn run(root: &Path, program: &str, arguments: &[&str]) {
        let mut command = std::process::Command::new(program);
        assert!(command.args(arguments).current_dir(root).status().unwrap().success(), "{program}");
    }

    #[tokio::test]
    async fn the_status_shows_changes_in_the_folder_only_and_does_not_block_on_a_pipe() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("work");
        fs::create_dir_all(root.join("src")).unwrap();
        assert_eq!(shown(&root, "status", "").await["data"], Value::Null);
        run(directory.path(), "git", &["init", "-q", "-b", "main"]);
        let commit =
            ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x"];
        run(directory.path(), "git", &commit);
        fs::write(directory.path().join("merger.doc"), "s").unwrap();
        fs::write(root.join("a.txt"), "a").unwrap();
        let answer = shown(&root, "status", "").await;
        let changed = json!([{ "path": "work/", "status": "added" }]);
        assert_eq!(answer["data"], json!({ "branch": "main", "changedFiles": changed }));
        fs::write(root.join("src/b.txt"), "b").unwrap();
        run(&root, "mkfifo", &["src/.gitignore"]);
        assert_eq!(shown(&root, "status", "").await["data"]["branch"], "main");
    }

    #[tokio::test]
    async fn only_files_below_the_folder_are_readable() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("work");
        fs::create_dir_all(root.join("src")).unwrap();
        fs::write(directory.path().join("secret"), "s").unwrap();
        fs::write(root.join("src/a.txt"), "hello").unwrap();
        fs::write(root.join("b.bin"), [0, 1]).unwrap();
        symlink(directory.path(), root.join("out")).unwrap();
        symlink("src/a.txt", root.join("in")).unwrap();
        let show = async |kind: &str, path: &str| shown(&root, kind, path).await;
        assert_eq!(show("file", "src/a.txt").await["content"], "hello");
        assert_eq!(show("file", "in").await["content"], "hello");
        let tree = show("tree", "").await;
        let names: Vec<&str> =
            tree["entries"].as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["src", "b.bin", "in", "out"]);
        let secret = directory.path().join("secret").display().to_string();
        for path in ["../secret", "out/secret", &secret, "src/../../secret", "nothing", "src", "b.bin"] {
            assert_eq!(show("file", path).await["kind"], "error", "{path}");
        }
        for path in ["..", "out", "/", "src/a.txt"] {
            assert_eq!(show("tree", path).await["kind"], "error", "{path}");
        }
        for unsupported in [r#"{"kind":"else","path":""}"#, "{}", "no JSON"] {
            assert!(WorkspaceRequest::parse(unsupported).is_none(), "{unsupported}");
        }
    }
}
