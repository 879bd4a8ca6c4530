//! Scans a project root: names, sizes and times of its files, without their contents.
//!
//! Never leaves the folder, even if symbolic links are created during the scan: each step opens a child
//! relative to an open folder and does not follow links. Result size, number of scanned entries and time are
//! limited.

mod gitignore;

use gitignore::Gitignore;
use parlor_wire::events::tree::TreeNode;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fstat, openat, statat};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum files and folders in one result.
const MAX_ENTRIES: usize = 5_000;
/// Maximum total bytes of the names and paths in one result.
const MAX_PATH_BYTES: usize = 512 * 1024;
/// Maximum entries scanned for one result, including ignored ones.
const MAX_SCANNED: usize = 100_000;
/// Timeout for one scan.
const SCAN_TIMEOUT: Duration = Duration::from_secs(5);
/// Depth of a scan if the request sets none.
pub const DEFAULT_DEPTH: usize = 6;
/// Maximum depth of a scan.
pub const MAX_DEPTH: usize = 20;
/// Ignore files of a folder. Rules of a later file override those of an earlier one.
const IGNORE_FILES: [&str; 2] = [".gitignore", ".ignore"];
/// Maximum bytes read from an ignore file.
const MAX_IGNORE_FILE_BYTES: u64 = 64 * 1024;

/// The folder does not exist, or its path contains a symbolic link.
#[derive(Debug, PartialEq, Eq)]
pub struct Missing;

/// Scans the folder `below` the project root, or the root itself if `below` is empty. Blocks.
pub fn scan(root: &str, below: &str, depth: usize) -> Result<TreeNode, Missing> {
    let mut start = OpenFolder::root(Path::new(root))?;
    for step in Path::new(below).components() {
        match step {
            Component::Normal(name) if !start.is_ignored(name, true) => start = start.folder(name)?,
            Component::CurDir => {}
            _ => return Err(Missing),
        }
    }
    let path = if start.path == Path::new("") { root.to_owned() } else { printable_path(&start.path) };
    let mut scan =
        TreeScan { entries: 0, bytes: 0, scanned: 0, deadline: Instant::now() + SCAN_TIMEOUT, full: false };
    let children = scan.children(&start, depth);
    Ok(TreeNode { children: Some(children), truncated: scan.full.then_some(true), ..TreeNode::folder(path) })
}

/// An open folder below the project root.
struct OpenFolder {
    folder: OwnedFd,
    /// Path relative to the project root.
    path: PathBuf,
    /// Rules of the ignore files of this folder and its ancestors, each with the path of its folder.
    ignored: Vec<(PathBuf, Arc<Gitignore>)>,
}

impl OpenFolder {
    fn root(root: &Path) -> Result<Self, Missing> {
        let mut folder = open_folder(CWD, OsStr::new("/"))?;
        for step in root.components() {
            match step {
                Component::RootDir => {}
                Component::Normal(name) => folder = open_folder(&folder, name)?,
                _ => return Err(Missing),
            }
        }
        Ok(Self { folder, path: PathBuf::new(), ignored: Vec::new() }.with_ignore_files())
    }

    fn folder(&self, name: &OsStr) -> Result<Self, Missing> {
        let folder = open_folder(&self.folder, name)?;
        Ok(Self { folder, path: self.path.join(name), ignored: self.ignored.clone() }.with_ignore_files())
    }

    fn with_ignore_files(mut self) -> Self {
        for name in IGNORE_FILES {
            if let Some(ignored) = ignore_file(&self.folder, name) {
                self.ignored.push((self.path.clone(), Arc::new(ignored)));
            }
        }
        self
    }

    /// Whether an entry is hidden or matched by an ignore file.
    fn is_ignored(&self, name: &OsStr, is_folder: bool) -> bool {
        let path = self.path.join(name);
        let matched = self
            .ignored
            .iter()
            .rev()
            .find_map(|(from, ignored)| ignored.ignores(path.strip_prefix(from).ok()?, is_folder));
        name.as_bytes().starts_with(b".") || matched.unwrap_or(false)
    }
}

struct TreeScan {
    entries: usize,
    bytes: usize,
    scanned: usize,
    deadline: Instant,
    full: bool,
}

impl TreeScan {
    fn children(&mut self, folder: &OpenFolder, depth: usize) -> BTreeMap<String, TreeNode> {
        let mut children = BTreeMap::new();
        // An unreadable folder is listed without its children.
        let Ok(entries) = Dir::read_from(&folder.folder) else { return children };
        for entry in entries.flatten() {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            self.scanned += 1;
            self.full |= self.scanned > MAX_SCANNED || Instant::now() > self.deadline;
            if self.full {
                break;
            }
            let Ok(stat) = statat(&folder.folder, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            let kind = FileType::from_raw_mode(stat.st_mode);
            if folder.is_ignored(name, kind == FileType::Directory) {
                continue;
            }
            let path = printable_path(&folder.path.join(name));
            let mut display_name = printable_path(Path::new(name));
            if children.contains_key(&display_name) {
                // Two names can only look alike if one of them is not valid UTF-8.
                display_name = format!("{display_name}{}{}", char::REPLACEMENT_CHARACTER, self.entries);
            }
            let length = path.len() + display_name.len();
            let last_modified = Some(stat.st_mtime);
            let size = Some(stat.st_size as u64);
            let mut node = match kind {
                FileType::Directory => TreeNode { last_modified, ..TreeNode::folder(path) },
                FileType::RegularFile => {
                    TreeNode { kind: "file", path, size, last_modified, ..TreeNode::default() }
                }
                FileType::Symlink => {
                    TreeNode { kind: "link", path, size, last_modified, ..TreeNode::default() }
                }
                _ => continue,
            };
            self.full |= self.entries == MAX_ENTRIES || self.bytes + length > MAX_PATH_BYTES;
            if self.full {
                break;
            }
            self.entries += 1;
            self.bytes += length;
            if kind == FileType::Directory {
                match folder.folder(name) {
                    _ if depth <= 1 => node.truncated = Some(true),
                    Ok(below) => node.children = Some(self.children(&below, depth - 1)),
                    Err(Missing) => {}
                }
            }
            children.insert(display_name, node);
        }
        children
    }
}

fn open_folder(from: impl AsFd, name: &OsStr) -> Result<OwnedFd, Missing> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(from, name, flags, Mode::empty()).map_err(|_| Missing)
}

/// Parses an ignore file if it is a regular file. Links are not followed, and a pipe cannot block the scan.
fn ignore_file(folder: &OwnedFd, name: &str) -> Option<Gitignore> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(folder, name, flags, Mode::empty()).ok()?;
    let stat = fstat(&file).ok()?;
    let is_regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    let mut text = Vec::new();
    File::from(file).take(MAX_IGNORE_FILE_BYTES).read_to_end(&mut text).ok().filter(|_| is_regular)?;
    Some(Gitignore::parse(&String::from_utf8_lossy(&text)))
}

/// Path as text. Bytes that are not valid UTF-8 are escaped as `\xff`, so that different names stay
/// different.
fn printable_path(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_scan_never_leaves_the_folder_and_leaves_out_ignored_files() {
        let home = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(home.path()).unwrap();
        let root = home.join("app");
        for folder in ["app/src/deep", "app/target", "app/.hidden", "secret"] {
            fs::create_dir_all(home.join(folder)).unwrap();
        }
        for file in ["app/src/a.rs", "app/src/deep/b.rs", "app/target/x", "app/.hidden/y", "secret/canary"] {
            fs::write(home.join(file), "12345").unwrap();
        }
        fs::write(root.join(".gitignore"), "target/\n").unwrap();
        // An ignore file above the project root has no effect.
        fs::write(home.join(".gitignore"), "*.rs\n").unwrap();
        std::os::unix::fs::symlink(home.join("secret"), root.join("out")).unwrap();
        let text = root.to_str().unwrap();
        let tree = scan(text, "", DEFAULT_DEPTH).unwrap();
        let json = serde_json::to_value(&tree).unwrap();
        let names = |node: &serde_json::Value| -> Vec<String> {
            node["children"].as_object().unwrap().keys().cloned().collect()
        };
        assert_eq!(names(&json), ["out", "src"]);
        assert_eq!((&json["path"], &json["children"]["out"]["type"]), (&text.into(), &"link".into()));
        let source = &json["children"]["src"]["children"];
        assert_eq!((&source["a.rs"]["path"], &source["a.rs"]["size"]), (&"src/a.rs".into(), &5.into()));
        assert_eq!(source["deep"]["children"]["b.rs"]["path"], "src/deep/b.rs");

        let below = serde_json::to_value(scan(text, "src", 1).unwrap()).unwrap();
        assert_eq!((names(&below), &below["path"]), (vec!["a.rs".into(), "deep".into()], &"src".into()));
        assert_eq!(
            below["children"]["deep"]["truncated"], true,
            "the folder has children below the depth limit"
        );
        for outside in ["..", "out", "../secret", "/etc", "src/a.rs", "nowhere"] {
            assert_eq!(scan(text, outside, DEFAULT_DEPTH).err(), Some(Missing), "{outside}");
        }
        // Replace the folder by a symbolic link.
        fs::rename(&root, home.join("moved")).unwrap();
        std::os::unix::fs::symlink(home.join("secret"), &root).unwrap();
        assert_eq!(scan(text, "", DEFAULT_DEPTH).err(), Some(Missing));
    }

    #[test]
    fn ignore_files_that_are_not_regular_files_are_skipped() {
        let home = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(home.path()).unwrap();
        for folder in ["pipe", "endless", "elsewhere"] {
            fs::create_dir(root.join(folder)).unwrap();
            fs::write(root.join(folder).join("a.rs"), "").unwrap();
        }
        let created =
            std::process::Command::new("mkfifo").arg(root.join("pipe/.gitignore")).status().unwrap();
        assert!(created.success());
        std::os::unix::fs::symlink("/dev/zero", root.join("endless/.gitignore")).unwrap();
        fs::write(root.join("names"), "*.rs\n").unwrap();
        std::os::unix::fs::symlink(root.join("names"), root.join("elsewhere/.ignore")).unwrap();
        let tree = scan(root.to_str().unwrap(), "", DEFAULT_DEPTH).unwrap();
        let json = serde_json::to_value(&tree).unwrap();
        for folder in ["pipe", "endless", "elsewhere"] {
            assert_eq!(json["children"][folder]["children"]["a.rs"]["type"], "file", "{json}");
        }
    }

    #[test]
    fn names_that_are_not_utf8_stay_different() {
        let home = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(home.path()).unwrap();
        for name in [&b"a\xff"[..], b"a\xfe", b"a\\xff", "ä".as_bytes()] {
            fs::write(root.join(OsStr::from_bytes(name)), "").unwrap();
        }
        let tree = scan(root.to_str().unwrap(), "", DEFAULT_DEPTH).unwrap();
        let names: Vec<String> = tree.children.unwrap().into_keys().collect();
        // The suffix of an ambiguous name ends with the index of the entry.
        let names = names.iter().map(|name| name.trim_end_matches(|c: char| c.is_ascii_digit()));
        assert_eq!(names.collect::<Vec<_>>(), ["a\\xfe", "a\\xff", "a\\xff\u{fffd}", "ä"]);
    }

    #[test]
    fn a_result_is_limited_in_a_large_folder() {
        let home = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(home.path()).unwrap();
        for number in 0..MAX_ENTRIES + 10 {
            fs::write(root.join(number.to_string()), "").unwrap();
        }
        let tree = scan(root.to_str().unwrap(), "", DEFAULT_DEPTH).unwrap();
        assert_eq!((tree.truncated, tree.children.unwrap().len()), (Some(true), MAX_ENTRIES));
    }
}
