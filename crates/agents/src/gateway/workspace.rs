//! What people may see of the folder that an agent works in: what is below it, and nothing a link leads to outside.

use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

/// Of a file, so much is shown, and of a folder.
const SHOWN: u64 = 100 * 1024;
const ENTRIES: usize = 500;
const CHANGED: usize = 100;

pub fn show(root: &Path, wanted: &str) -> Value {
    let wanted: Value = serde_json::from_str(wanted).unwrap_or_default();
    let path = wanted["path"].as_str().filter(|path| !path.is_empty()).unwrap_or(".");
    match wanted["kind"].as_str() {
        Some("status") => json!({ "kind": "status", "data": status(root) }),
        Some("tree") => tree(root, path).unwrap_or_else(error),
        Some("file") => file(root, path).unwrap_or_else(error),
        _ => error("This cannot be shown."),
    }
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
    let opened = File::open(found).map_err(|_| "It cannot be read.")?;
    opened.take(SHOWN).read_to_end(&mut content).map_err(|_| "It cannot be read.")?;
    if content.contains(&0) {
        return Err("It is not a text.");
    }
    let text = String::from_utf8_lossy(&content);
    Ok(json!({ "kind": "file", "path": path, "content": text, "size": about.len(),
        "truncated": about.len() > SHOWN }))
}

/// The branch and what changed, if the folder is kept by git; `null` else, as the protocol has it.
fn status(root: &Path) -> Value {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        // What a repository of others sets must run nothing.
        command.args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]).args(arguments);
        let done =
            command.current_dir(root).stdin(Stdio::null()).env("GIT_OPTIONAL_LOCKS", "0").output().ok()?;
        done.status.success().then(|| String::from_utf8_lossy(&done.stdout).into_owned())
    };
    let Some(branch) = git(&["rev-parse", "--abbrev-ref", "HEAD"]) else { return Value::Null };
    let changed = git(&["status", "--porcelain=v1", "-z", "--no-renames"]).unwrap_or_default();
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_what_is_below_the_folder_is_shown() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("work");
        fs::create_dir_all(root.join("src")).unwrap();
        fs::write(place.path().join("secret"), "s").unwrap();
        fs::write(root.join("src/a.txt"), "hello").unwrap();
        fs::write(root.join("b.bin"), [0, 1]).unwrap();
        symlink(place.path(), root.join("out")).unwrap();
        symlink("src/a.txt", root.join("in")).unwrap();
        let show = |kind: &str, path: &str| show(&root, &json!({ "kind": kind, "path": path }).to_string());
        assert_eq!(show("file", "src/a.txt")["content"], "hello");
        assert_eq!(show("file", "in")["content"], "hello");
        let tree = show("tree", "");
        let names: Vec<&str> =
            tree["entries"].as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["src", "b.bin", "in", "out"]);
        let secret = place.path().join("secret").display().to_string();
        for path in ["../secret", "out/secret", &secret, "src/../../secret", "nothing", "src", "b.bin"] {
            assert_eq!(show("file", path)["kind"], "error", "{path}");
        }
        for path in ["..", "out", "/", "src/a.txt"] {
            assert_eq!(show("tree", path)["kind"], "error", "{path}");
        }
        assert_eq!(show("else", "")["kind"], "error");
    }
}
