//! What lies in a folder of this machine: names, sizes and times, and nothing of what is in the files.
//!
//! Owns: nothing outside of the folder is looked at, whatever links there are; an answer is bounded, however much
//! there is.

use ignore::{DirEntry, WalkBuilder};
use parlor_wire::events::tree::TreeNode;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// How much one answer tells: files and folders, and the bytes of their paths.
const MOST_ENTRIES: usize = 5_000;
const MOST_BYTES: usize = 512 * 1024;
/// How deep it looks, where nothing else is said, and at most.
pub const DEPTH: usize = 6;
pub const MOST_DEPTH: usize = 20;

/// There is no such folder, or it is not where it was.
#[derive(Debug, PartialEq, Eq)]
pub struct Missing;

/// Looks through a folder, or one below it. Blocks.
pub fn look(root: &str, below: &str, depth: usize) -> Result<TreeNode, Missing> {
    let root = Path::new(root);
    // A link may have taken its place, or that of a folder above it, since it was set free.
    if std::fs::canonicalize(root).ok().as_deref() != Some(root) {
        return Err(Missing);
    }
    let from = std::fs::canonicalize(root.join(below)).map_err(|_| Missing)?;
    if !from.starts_with(root) || !from.is_dir() {
        return Err(Missing);
    }
    let path = match from == root {
        true => root.to_string_lossy().into_owned(),
        false => relative(root, &from),
    };
    let mut tree = TreeNode::folder(path);
    let (mut entries, mut bytes) = (0, 0);
    let deepest = depth + from.strip_prefix(root).map_or(0, |way| way.components().count());
    for entry in walk(root, &from, deepest) {
        // What cannot be read is left out.
        let Ok(entry) = entry else { continue };
        if from.starts_with(entry.path()) {
            continue;
        }
        let path = relative(root, entry.path());
        entries += 1;
        bytes += path.len();
        if entries > MOST_ENTRIES || bytes > MOST_BYTES {
            tree.truncated = Some(true);
            break;
        }
        let place = relative(&from, entry.path());
        let steps: Vec<&str> = place.split('/').collect();
        tree.put(&steps, node(&entry, path, deepest));
    }
    Ok(tree)
}

/// Hidden files and what ignore files name are left out; those above the folder are not looked at.
fn walk(root: &Path, from: &Path, deepest: usize) -> ignore::Walk {
    let from = from.to_owned();
    let mut walk = WalkBuilder::new(root);
    walk.max_depth(Some(deepest)).follow_links(false).parents(false).require_git(false).git_global(false);
    walk.filter_entry(move |entry| from.starts_with(entry.path()) || entry.path().starts_with(&from));
    walk.build()
}

fn node(entry: &DirEntry, path: String, deepest: usize) -> TreeNode {
    let about = entry.metadata().ok();
    let modified = about.as_ref().and_then(|about| about.modified().ok()?.duration_since(UNIX_EPOCH).ok());
    let last_modified = modified.map(|since| since.as_secs() as i64);
    let kind = entry.file_type();
    if kind.is_some_and(|kind| kind.is_dir()) {
        let truncated = (entry.depth() == deepest).then_some(true);
        return TreeNode { last_modified, truncated, ..TreeNode::folder(path) };
    }
    let kind = if kind.is_some_and(|kind| kind.is_symlink()) { "link" } else { "file" };
    TreeNode { kind, path, size: about.map(|about| about.len()), last_modified, ..TreeNode::default() }
}

fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).map_or_else(|_| PathBuf::new(), Path::to_owned).to_string_lossy().into_owned()
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
        let tree = look(text, "", DEPTH).unwrap();
        let told = serde_json::to_value(&tree).unwrap();
        let names = |node: &serde_json::Value| -> Vec<String> {
            node["children"].as_object().unwrap().keys().cloned().collect()
        };
        assert_eq!(names(&told), ["out", "src"]);
        assert_eq!((&told["path"], &told["children"]["out"]["type"]), (&text.into(), &"link".into()));
        let source = &told["children"]["src"]["children"];
        assert_eq!((&source["a.rs"]["path"], &source["a.rs"]["size"]), (&"src/a.rs".into(), &5.into()));
        assert_eq!(source["deep"]["children"]["b.rs"]["path"], "src/deep/b.rs");

        let below = serde_json::to_value(look(text, "src", 1).unwrap()).unwrap();
        assert_eq!((names(&below), &below["path"]), (vec!["a.rs".into(), "deep".into()], &"src".into()));
        assert_eq!(below["children"]["deep"]["truncated"], true, "it goes on there");
        for outside in ["..", "out", "../secret", "/etc", "src/a.rs", "nowhere"] {
            assert_eq!(look(text, outside, DEPTH).err(), Some(Missing), "{outside}");
        }
        // Somebody puts a link where the folder was.
        fs::rename(&root, home.join("moved")).unwrap();
        std::os::unix::fs::symlink(home.join("secret"), &root).unwrap();
        assert_eq!(look(text, "", DEPTH).err(), Some(Missing));
    }

    #[test]
    fn an_answer_is_bounded_however_much_there_is() {
        let home = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(home.path()).unwrap();
        for number in 0..MOST_ENTRIES + 10 {
            fs::write(root.join(number.to_string()), "").unwrap();
        }
        let tree = look(root.to_str().unwrap(), "", DEPTH).unwrap();
        assert_eq!((tree.truncated, tree.children.unwrap().len()), (Some(true), MOST_ENTRIES));
    }
}
