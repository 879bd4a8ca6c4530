//! Checks the text of the repository: things no compiler or lint looks for.
//!
//! Patterns are put together from halves so that this file does not find itself.

mod authenticator;
mod plain_english;
mod tasks;
mod vocabulary;

use crate::root;
use std::fs;
use std::path::{Path, PathBuf};

const NOT_OURS: &[&str] = &[".git", "target", "node_modules", "dist", "parlor-data"];

/// Left in by accident, and green where it should be red.
const FORBIDDEN_IN_RUST: &[&str] = &[concat!("#[ign", "ore"), concat!("todo", "!("), concat!("dbg", "!(")];

/// Folders under which people and machines keep their own things.
const PRIVATE_FOLDERS: &[&str] =
    &[concat!("/wo", "rk/"), concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/Us", "ers/")];

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    let manifests: Vec<PathBuf> = files().into_iter().filter(|path| path.ends_with("Cargo.toml")).collect();
    assert!(manifests.len() > 2, "found only {manifests:?}");
    for manifest in manifests {
        let text = fs::read_to_string(&manifest).unwrap();
        let is_crate = text.contains("[package]");
        assert!(
            !is_crate || takes_workspace_lints(&text),
            "{} lacks `[lints] workspace = true`",
            manifest.display()
        );
    }
}

#[test]
fn no_source_has_leftovers() {
    let sources: Vec<PathBuf> = files()
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect();
    assert!(sources.len() > 2, "found only {sources:?}");
    for source in sources {
        for (number, line) in fs::read_to_string(&source).unwrap().lines().enumerate() {
            let leftover = FORBIDDEN_IN_RUST.iter().find(|pattern| line.contains(**pattern));
            assert_eq!(leftover, None, "{}:{}", source.display(), number + 1);
        }
    }
}

/// The runner of our tests does not run examples in documentation, so one would look tested and not be.
#[test]
fn no_documentation_has_code_that_looks_tested() {
    for source in
        files().into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
    {
        let text = fs::read_to_string(&source).unwrap();
        assert_eq!(tested_example(&text), None, "{}: write ```text", source.display());
    }
}

#[test]
fn an_example_is_code_of_rust_in_documentation() {
    check_example("/// ```\n/// 1 + 1\n/// ```\n", Some(1));
    check_example("//! Text.\n//! ```rust\n//! ```\n", Some(2));
    check_example("    /// ```should_panic\n    /// ```\n", Some(1));
    check_example("/// ```text\n/// a → b\n/// ```\n/// ```json\n/// {}\n/// ```\n", None);
    check_example("// ```\n// A comment.\n", None);
}

#[track_caller]
fn check_example(source: &str, line: Option<usize>) {
    assert_eq!(tested_example(source), line, "in `{source}`");
}

/// The line in which code of Rust begins in the documentation of this source.
fn tested_example(source: &str) -> Option<usize> {
    let mut inside = false;
    source.lines().enumerate().find_map(|(at, line)| {
        let line = line.trim_start();
        let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?;
        let language = text.trim().strip_prefix("```")?;
        inside = !inside;
        (inside && !["text", "json", "sh", "toml"].contains(&language)).then_some(at + 1)
    })
}

#[test]
fn no_file_names_a_folder_of_a_private_machine() {
    for path in files() {
        // Files that are not text, such as pictures, are not checked.
        let Ok(text) = fs::read_to_string(&path) else { continue };
        for (number, line) in text.lines().enumerate() {
            assert_eq!(private_folder(line), None, "{}:{}", path.display(), number + 1);
        }
    }
}

#[test]
fn a_private_folder_is_an_absolute_path() {
    let [work, home, ..] = PRIVATE_FOLDERS else { panic!("the table has four entries") };
    check(&format!("see {work}main"), Some(work));
    check(&format!("`{home}ada/parlor`"), Some(home));
    check(&format!("https://parlor.example{home}page"), None);
    check(&format!("docs{work}a.md"), None);
    check("target/release/parlor", None);
}

#[track_caller]
fn check(line: &str, expected: Option<&str>) {
    assert_eq!(private_folder(line), expected, "in `{line}`");
}

fn private_folder(line: &str) -> Option<&'static str> {
    PRIVATE_FOLDERS.iter().copied().find(|folder| {
        line.match_indices(folder).any(|(at, _)| {
            // After a letter, a digit or a closing brace it goes on a relative path, an address or a route.
            !line[..at].ends_with(|before: char| before.is_alphanumeric() || "._-~}/*".contains(before))
        })
    })
}

fn takes_workspace_lints(manifest: &str) -> bool {
    let mut lines = manifest.lines().skip_while(|line| line.trim() != "[lints]").skip(1);
    lines.find(|line| !line.trim().is_empty()).is_some_and(|line| line.replace(' ', "") == "workspace=true")
}

fn files() -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(&root(), &mut found);
    found
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        let name = entry.file_name();
        if NOT_OURS.iter().any(|skipped| name == *skipped) {
            continue;
        }
        if kind.is_dir() {
            collect(&entry.path(), found);
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
}
