//! Checks that the engine and the model contain no vocabulary of a protocol.

use crate::root;
use std::fs;
use std::path::{Path, PathBuf};

const FOLDERS: [&str; 2] = ["crates/engine/src", "crates/model/src"];

/// Files with literals that are not yet translated by the protocol adapters, or that are not names.
const ALLOWED: [(&str, &str); 16] = [
    // Names in the audit log are stored text, which must not change.
    ("engine/src/commands/settings/change_settings.rs", "hubName"),
    ("engine/src/commands/settings/change_settings.rs", "lockoutFailures"),
    ("engine/src/commands/settings/change_settings.rs", "lockoutSeconds"),
    // The profile contains its avatar as the path that clients send.
    ("engine/src/commands/accounts/change_profile.rs", "/uploads/"),
    ("engine/src/commands/accounts/change_profile.rs", "/api/"),
    // Settings of agents and sessions are stored JSON with the names that their owners use.
    ("model/src/agent.rs", "autoRun"),
    ("model/src/agent.rs", "defaultModel"),
    ("model/src/session.rs", "camelCase"),
    ("model/src/session.rs", "triageModel"),
    ("model/src/session.rs", "debounceMs"),
    ("model/src/session.rs", "maxBatchSize"),
    // Descriptions of tools are JSON files.
    ("model/src/tool.rs", "camelCase"),
    ("model/src/tool.rs", "inputSchema"),
    ("model/src/tool.rs", "timeoutMs"),
    // The payload of a heartbeat is stored JSON.
    ("engine/src/commands/turns/send_heartbeat.rs", "firedAt"),
    // Final letters of terminal sequences.
    ("engine/src/runs/terminal.rs", "mABCDEFGHfdJK"),
];

#[test]
fn the_engine_and_the_model_contain_no_name_of_a_protocol() {
    let mut sources = Vec::new();
    FOLDERS.iter().for_each(|folder| collect(&root().join(folder), &mut sources));
    assert!(sources.len() > 100, "found only {} files", sources.len());
    let mut used = [false; ALLOWED.len()];
    for source in sources {
        let text = fs::read_to_string(&source).unwrap();
        for literal in production(&text).flat_map(literals).filter(|literal| is_protocol_name(literal)) {
            let allowed = ALLOWED.iter().position(|(file, name)| {
                source.ends_with(format!("crates/{file}")) && literal.contains(name)
            });
            let allowed = allowed.unwrap_or_else(|| panic!("{}: \"{literal}\"", source.display()));
            used[allowed] = true;
        }
    }
    assert_eq!(used, [true; ALLOWED.len()], "an entry of the list is no longer needed");
}

#[test]
fn a_protocol_name_is_camel_case_or_a_path_of_the_server() {
    for name in
        ["replyToId", "config.baseUrl", "must be sent to /api/upload/avatar", "/uploads/", "a/ws/client"]
    {
        assert!(is_protocol_name(name), "{name}");
    }
    for name in
        ["reply_to", "must not be empty", "JPEG, PNG or WebP", "agent/**", "McDonald", "is longer than 64 KB"]
    {
        assert!(!is_protocol_name(name), "{name}");
    }
}

#[test]
fn literals_are_found_between_quotation_marks_and_not_in_comments() {
    let check = |line: &str, expected: &[&str]| assert_eq!(literals(line).collect::<Vec<_>>(), expected);
    check(r#"call("one", x, "two"); // not "three""#, &["one", "two"]);
    check(r#"    /// Not "one"."#, &[]);
    check(r#"let url = "https://one"; let quote = '"'; "two""#, &["https://one", "two"]);
    check(r#""one \" two""#, &[r#"one \" two"#]);
}

/// The lines before the tests of a source.
fn production(source: &str) -> impl Iterator<Item = &str> {
    source.lines().take_while(|line| line.trim() != concat!("#[cfg", "(test)]") || line.starts_with(' '))
}

/// The string literals that begin and end in this line, without those in its comment.
fn literals(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        loop {
            let start = rest.find(['"', '\'', '/'])?;
            let (found, after) = (&rest[start..], &rest[start + 1..]);
            if found.starts_with("//") {
                return None;
            }
            if let Some(after) = found.strip_prefix("'\"'") {
                rest = after;
            } else if found.starts_with('"') {
                let escaped = |at: usize| after[..at].ends_with('\\');
                let (end, _) = after.match_indices('"').find(|(at, _)| !escaped(*at))?;
                rest = &after[end + 1..];
                return Some(&after[..end]);
            } else {
                rest = after;
            }
        }
    })
}

fn is_protocol_name(literal: &str) -> bool {
    // Bytes of a file format.
    if literal.contains("\\x") {
        return false;
    }
    let literal = literal.replace("\\n", " ");
    let is_path = ["/api/", "/uploads/", "/ws/"].iter().any(|path| literal.contains(path));
    let mut words = literal.split(|c: char| !c.is_ascii_alphanumeric());
    is_path
        || words.any(|word| {
            word.starts_with(|c: char| c.is_ascii_lowercase())
                && word.contains(|c: char| c.is_ascii_uppercase())
        })
}

/// Adds the sources of a folder, without those of tests.
pub(super) fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_test = path.file_name().is_some_and(|name| name == "tests" || name == "tests.rs");
        if is_test {
            continue;
        }
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}
