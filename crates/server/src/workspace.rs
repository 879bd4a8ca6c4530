//! What lies in a folder of this machine: names, sizes and times, and nothing of what is in the files.
//!
//! Owns: nothing outside of the folder is looked at, whatever links there are or come to be meanwhile: each step goes
//! from an open folder to one in it, and never over a link. An answer is bounded, and so is the look, however much
//! there is and whatever the ignore files are.

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

/// How much one answer tells: files and folders, and the bytes of their paths.
const MOST_ENTRIES: usize = 5_000;
const MOST_BYTES: usize = 512 * 1024;
/// How much is looked at for it, told or not, and how long.
const MAX_SCANNED: usize = 100_000;
const SCAN_TIMEOUT: Duration = Duration::from_secs(5);
/// How deep it looks, where nothing else is said, and at most.
pub const DEPTH: usize = 6;
pub const MOST_DEPTH: usize = 20;
/// Later ones go before earlier ones. What is longer names nothing.
const IGNORE_FILES: [&str; 2] = [".gitignore", ".ignore"];
const LONGEST_IGNORE_FILE: u64 = 64 * 1024;

/// There is no such folder, or it is not where it was.
#[derive(Debug, PartialEq, Eq)]
pub struct Missing;

/// Looks through a folder, or one below it. Blocks.
pub fn scan(root: &str, below: &str, depth: usize) -> Result<TreeNode, Missing> {
    let mut place = OpenFolder::root(Path::new(root))?;
    for step in Path::new(below).components() {
        match step {
            Component::Normal(name) if !place.leaves_out(name, true) => place = place.folder(name)?,
            Component::CurDir => {}
            _ => return Err(Missing),
        }
    }
    let path = if place.path == Path::new("") { root.to_owned() } else { printable_path(&place.path) };
    let mut walk =
        TreeScan { entries: 0, bytes: 0, seen: 0, until: Instant::now() + SCAN_TIMEOUT, full: false };
    let children = walk.children(&place, depth);
    Ok(TreeNode { children: Some(children), truncated: walk.full.then_some(true), ..TreeNode::folder(path) })
}

/// A folder that is open.
struct OpenFolder {
    folder: OwnedFd,
    /// Below the root.
    path: PathBuf,
    /// What it and those above it leave out, each with where it stands.
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

    /// Hidden files, and what ignore files name.
    fn leaves_out(&self, name: &OsStr, is_folder: bool) -> bool {
        let path = self.path.join(name);
        let named = self
            .ignored
            .iter()
            .rev()
            .find_map(|(from, ignored)| ignored.ignores(path.strip_prefix(from).ok()?, is_folder));
        name.as_bytes().starts_with(b".") || named.unwrap_or(false)
    }
}

struct TreeScan {
    entries: usize,
    bytes: usize,
    seen: usize,
    until: Instant,
    full: bool,
}

impl TreeScan {
    fn children(&mut self, place: &OpenFolder, depth: usize) -> BTreeMap<String, TreeNode> {
        let mut children = BTreeMap::new();
        // What cannot be read is left out.
        let Ok(entries) = Dir::read_from(&place.folder) else { return children };
        for entry in entries.flatten() {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            self.seen += 1;
            self.full |= self.seen > MAX_SCANNED || Instant::now() > self.until;
            if self.full {
                break;
            }
            let Ok(about) = statat(&place.folder, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            let kind = FileType::from_raw_mode(about.st_mode);
            if place.leaves_out(name, kind == FileType::Directory) {
                continue;
            }
            let path = printable_path(&place.path.join(name));
            let mut name_told = printable_path(Path::new(name));
            if children.contains_key(&name_told) {
                // Only what is no text can read like something else.
                name_told = format!("{name_told}{}{}", char::REPLACEMENT_CHARACTER, self.entries);
            }
            let length = path.len() + name_told.len();
            let last_modified = Some(about.st_mtime);
            let size = Some(about.st_size as u64);
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
            self.full |= self.entries == MOST_ENTRIES || self.bytes + length > MOST_BYTES;
            if self.full {
                break;
            }
            self.entries += 1;
            self.bytes += length;
            if kind == FileType::Directory {
                match place.folder(name) {
                    _ if depth <= 1 => node.truncated = Some(true),
                    Ok(below) => node.children = Some(self.children(&below, depth - 1)),
                    Err(Missing) => {}
                }
            }
            children.insert(name_told, node);
        }
        children
    }
}

fn open_folder(from: impl AsFd, name: &OsStr) -> Result<OwnedFd, Missing> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(from, name, flags, Mode::empty()).map_err(|_| Missing)
}

/// Only of a plain file of some length: neither a link to elsewhere nor a pipe, which would keep us waiting.
fn ignore_file(folder: &OwnedFd, name: &str) -> Option<Gitignore> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(folder, name, flags, Mode::empty()).ok()?;
    let about = fstat(&file).ok()?;
    let plain = FileType::from_raw_mode(about.st_mode) == FileType::RegularFile;
    let mut text = Vec::new();
    File::from(file).take(LONGEST_IGNORE_FILE).read_to_end(&mut text).ok().filter(|_| plain)?;
    Some(Gitignore::parse(&String::from_utf8_lossy(&text)))
}

/// Bytes that are no text are told by their numbers, so that different names stay different.
fn printable_path(path: &Path) -> String {
    let mut told = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        told.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| told.push_str(&format!("\\x{byte:02x}")));
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn nothing_outside_is_looked_at_and_nothing_that_is_ignored_is_told() {
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
        // What is above the folder is not its affair.
        fs::write(home.join(".gitignore"), "*.rs\n").unwrap();
        std::os::unix::fs::symlink(home.join("secret"), root.join("out")).unwrap();
        let text = root.to_str().unwrap();
        let tree = scan(text, "", DEPTH).unwrap();
        let told = serde_json::to_value(&tree).unwrap();
        let names = |node: &serde_json::Value| -> Vec<String> {
            node["children"].as_object().unwrap().keys().cloned().collect()
        };
        assert_eq!(names(&told), ["out", "src"]);
        assert_eq!((&told["path"], &told["children"]["out"]["type"]), (&text.into(), &"link".into()));
        let source = &told["children"]["src"]["children"];
        assert_eq!((&source["a.rs"]["path"], &source["a.rs"]["size"]), (&"src/a.rs".into(), &5.into()));
        assert_eq!(source["deep"]["children"]["b.rs"]["path"], "src/deep/b.rs");

        let below = serde_json::to_value(scan(text, "src", 1).unwrap()).unwrap();
        assert_eq!((names(&below), &below["path"]), (vec!["a.rs".into(), "deep".into()], &"src".into()));
        assert_eq!(below["children"]["deep"]["truncated"], true, "it goes on there");
        for outside in ["..", "out", "../secret", "/etc", "src/a.rs", "nowhere"] {
            assert_eq!(scan(text, outside, DEPTH).err(), Some(Missing), "{outside}");
        }
        // Somebody puts a link where the folder was.
        fs::rename(&root, home.join("moved")).unwrap();
        std::os::unix::fs::symlink(home.join("secret"), &root).unwrap();
        assert_eq!(scan(text, "", DEPTH).err(), Some(Missing));
    }

    #[test]
    fn ignore_files_that_are_none_are_left_alone() {
        let home = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(home.path()).unwrap();
        for folder in ["pipe", "endless", "elsewhere"] {
            fs::create_dir(root.join(folder)).unwrap();
            fs::write(root.join(folder).join("a.rs"), "").unwrap();
        }
        let made = std::process::Command::new("mkfifo").arg(root.join("pipe/.gitignore")).status().unwrap();
        assert!(made.success());
        std::os::unix::fs::symlink("/dev/zero", root.join("endless/.gitignore")).unwrap();
        fs::write(root.join("names"), "*.rs\n").unwrap();
        std::os::unix::fs::symlink(root.join("names"), root.join("elsewhere/.ignore")).unwrap();
        let tree = scan(root.to_str().unwrap(), "", DEPTH).unwrap();
        let told = serde_json::to_value(&tree).unwrap();
        for folder in ["pipe", "endless", "elsewhere"] {
            assert_eq!(told["children"][folder]["children"]["a.rs"]["type"], "file", "{told}");
        }
    }

    #[test]
    fn names_that_are_no_text_stay_different() {
        let home = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(home.path()).unwrap();
        for name in [&b"a\xff"[..], b"a\xfe", b"a\\xff", "ä".as_bytes()] {
            fs::write(root.join(OsStr::from_bytes(name)), "").unwrap();
        }
        let tree = scan(root.to_str().unwrap(), "", DEPTH).unwrap();
        let names: Vec<String> = tree.children.unwrap().into_keys().collect();
        // The number is where it was found.
        let names = names.iter().map(|name| name.trim_end_matches(|c: char| c.is_ascii_digit()));
        assert_eq!(names.collect::<Vec<_>>(), ["a\\xfe", "a\\xff", "a\\xff\u{fffd}", "ä"]);
    }

    #[test]
    fn an_answer_is_bounded_however_much_there_is() {
        let home = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(home.path()).unwrap();
        for number in 0..MOST_ENTRIES + 10 {
            fs::write(root.join(number.to_string()), "").unwrap();
        }
        let tree = scan(root.to_str().unwrap(), "", DEPTH).unwrap();
        assert_eq!((tree.truncated, tree.children.unwrap().len()), (Some(true), MOST_ENTRIES));
    }
}
