//! What people may see of the folder that an agent works in: what is below it, and nothing a link leads to outside.

use crate::process::Program;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Of a file, so much is shown, and of a folder.
const SHOWN: u64 = 100 * 1024;
const ENTRIES: usize = 500;
const CHANGED: usize = 100;
/// Of what git says, so much is heard, and for so long.
const HEARD: u64 = 256 * 1024;
const PATIENCE: Duration = Duration::from_secs(3);

pub async fn show(root: PathBuf, wanted: &str) -> Value {
    let wanted: Value = serde_json::from_str(wanted).unwrap_or_default();
    let path = wanted["path"].as_str().filter(|path| !path.is_empty()).unwrap_or(".").to_owned();
    let look = match wanted["kind"].as_str() {
        Some("status") => return json!({ "kind": "status", "data": status(&root).await }),
        Some("tree") => tree,
        Some("file") => file,
        _ => return error("This cannot be shown."),
    };
    let looked = spawn_blocking(move || look(&root, &path)).await;
    looked.unwrap_or(Err(UNREADABLE)).unwrap_or_else(error)
}

pub fn error(message: &str) -> Value {
    json!({ "kind": "error", "message": message })
}

/// Where a path leads, if that is below the root with every link followed.
fn below(root: &Path, path: &str) -> Option<PathBuf> {
    let path = Path::new(path);
    let plain = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let (root, found) = (root.canonicalize().ok()?, root.join(path).canonicalize().ok()?);
    (plain && found.starts_with(&root)).then_some(found)
}

const NOT_THERE: &str = "There is no such thing in the agent's folder.";
const UNREADABLE: &str = "It cannot be read.";

fn tree(root: &Path, path: &str) -> Result<Value, &'static str> {
    let folder = below(root, path).ok_or(NOT_THERE)?;
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder).map_err(|_| NOT_THERE)?.flatten().take(ENTRIES) {
        let Ok(about) = entry.metadata() else { continue };
        let name = entry.file_name().to_string_lossy().into_owned();
        entries.push(match about.is_dir() {
            true => json!({ "name": name, "type": "directory" }),
            false => json!({ "name": name, "type": "file", "size": about.len() }),
        });
    }
    entries.sort_by_key(|entry| (entry["type"] != "directory", entry["name"].as_str().map(str::to_owned)));
    Ok(json!({ "kind": "tree", "path": path, "entries": entries }))
}

fn file(root: &Path, path: &str) -> Result<Value, &'static str> {
    let found = below(root, path).ok_or(NOT_THERE)?;
    // A pipe or a device would make its reader wait.
    let about = found.metadata().ok().filter(|about| about.is_file()).ok_or(NOT_THERE)?;
    let mut content = Vec::new();
    let opened = File::open(found).map_err(|_| UNREADABLE)?;
    opened.take(SHOWN).read_to_end(&mut content).map_err(|_| UNREADABLE)?;
    if content.contains(&0) {
        return Err("It is not a text.");
    }
    let text = String::from_utf8_lossy(&content);
    Ok(json!({ "kind": "file", "path": path, "content": text, "size": about.len(),
        "truncated": about.len() > SHOWN }))
}

/// The branch and what changed in the folder, if it is kept by git; `null` else, as the protocol has it.
async fn status(root: &Path) -> Value {
    let Some(git) = Git::of(root).await else { return Value::Null };
    let Some(branch) = git.says(&["rev-parse", "--abbrev-ref", "HEAD"]).await else { return Value::Null };
    let compare = ["status", "--porcelain=v1", "-z", "--no-renames", "--ignore-submodules=all", "--", "."];
    let changed = git.says(&compare).await;
    let changed = changed.unwrap_or_default();
    let changed = changed.split('\0').filter(|line| line.len() > 3).take(CHANGED).map(|line| {
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

/// Git in the folder of an agent. It is run like a program of an agent, for the folder is theirs: what a repository of
/// others sets must run nothing, and lead nowhere else.
pub struct Git {
    folder: PathBuf,
    environment: BTreeMap<String, String>,
}

impl Git {
    /// `None` if git does not keep the folder.
    pub async fn of(folder: &Path) -> Option<Self> {
        let tree = folder.ancestors().find(|above| above.join(".git").exists())?;
        let fixed = [
            ("core.fsmonitor", "false"),
            ("core.hooksPath", "/dev/null"),
            ("safe.bareRepository", "explicit"),
            ("diff.ignoreSubmodules", "all"),
        ];
        let mut settings: Vec<(String, &str)> = fixed.map(|(key, value)| (key.to_owned(), value)).into();
        let with = |settings: &[(String, &str)]| {
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
        // Programs through which files go before they are compared. None is set where this says nothing.
        let asked = ["config", "-z", "--name-only", "--get-regexp", r"^filter\."];
        let filters = with(&settings).says(&asked).await.unwrap_or_default();
        for key in filters.split_terminator('\0') {
            settings.push((key.to_owned(), if key.ends_with(".required") { "false" } else { "" }));
        }
        Some(with(&settings))
    }

    /// What it says, or the beginning of it, unless it fails or is kept waiting.
    pub async fn says(&self, arguments: &[&str]) -> Option<String> {
        self.begins(arguments).await.map(|(said, _)| said)
    }

    /// The same, and whether that is all.
    pub async fn begins(&self, arguments: &[&str]) -> Option<(String, bool)> {
        let program = Program {
            program: "git".into(),
            arguments: ["--literal-pathspecs"].iter().chain(arguments).map(Into::into).collect(),
            environment: self.environment.iter().map(|(key, value)| (key.into(), value.into())).collect(),
            directory: Some(self.folder.clone()),
        };
        let mut running = program.start().ok()?;
        running.stdin = None;
        let stdout = running.stdout.take()?;
        let heard = async {
            let mut said = Vec::new();
            stdout.take(HEARD).read_to_end(&mut said).await.ok()?;
            let cut = said.len() as u64 == HEARD;
            let done = cut || running.wait().await.ok()?.success();
            done.then(|| (String::from_utf8_lossy(&said).into_owned(), !cut))
        };
        let heard = timeout(PATIENCE, heard).await.ok().flatten();
        running.stop().await;
        heard
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    async fn shown(root: &Path, kind: &str, path: &str) -> Value {
        show(root.to_owned(), &json!({ "kind": kind, "path": path }).to_string()).await
    }

    fn run(root: &Path, program: &str, arguments: &[&str]) {
        let mut command = std::process::Command::new(program);
        assert!(command.args(arguments).current_dir(root).status().unwrap().success(), "{program}");
    }

    #[tokio::test]
    async fn of_a_repository_what_changed_in_the_folder_is_shown_and_nothing_waits_for_a_pipe() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("work");
        fs::create_dir_all(root.join("src")).unwrap();
        assert_eq!(shown(&root, "status", "").await["data"], Value::Null);
        run(place.path(), "git", &["init", "-q", "-b", "main"]);
        let commit =
            ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x"];
        run(place.path(), "git", &commit);
        fs::write(place.path().join("merger.doc"), "s").unwrap();
        fs::write(root.join("a.txt"), "a").unwrap();
        let told = shown(&root, "status", "").await;
        let changed = json!([{ "path": "work/", "status": "added" }]);
        assert_eq!(told["data"], json!({ "branch": "main", "changedFiles": changed }));
        fs::write(root.join("src/b.txt"), "b").unwrap();
        run(&root, "mkfifo", &["src/.gitignore"]);
        assert_eq!(shown(&root, "status", "").await["data"]["branch"], "main");
    }

    #[tokio::test]
    async fn only_what_is_below_the_folder_is_shown() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("work");
        fs::create_dir_all(root.join("src")).unwrap();
        fs::write(place.path().join("secret"), "s").unwrap();
        fs::write(root.join("src/a.txt"), "hello").unwrap();
        fs::write(root.join("b.bin"), [0, 1]).unwrap();
        symlink(place.path(), root.join("out")).unwrap();
        symlink("src/a.txt", root.join("in")).unwrap();
        let show = async |kind: &str, path: &str| shown(&root, kind, path).await;
        assert_eq!(show("file", "src/a.txt").await["content"], "hello");
        assert_eq!(show("file", "in").await["content"], "hello");
        let tree = show("tree", "").await;
        let names: Vec<&str> =
            tree["entries"].as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["src", "b.bin", "in", "out"]);
        let secret = place.path().join("secret").display().to_string();
        for path in ["../secret", "out/secret", &secret, "src/../../secret", "nothing", "src", "b.bin"] {
            assert_eq!(show("file", path).await["kind"], "error", "{path}");
        }
        for path in ["..", "out", "/", "src/a.txt"] {
            assert_eq!(show("tree", path).await["kind"], "error", "{path}");
        }
        assert_eq!(show("else", "").await["kind"], "error");
    }
}
