//! Tests of `parlor chatmd append` and `parlor chatmd archive`.

use super::Project;
use crate::process::command_line::{ok, parlor, refused};
use std::collections::HashSet;
use std::fs;

#[test]
fn append_writes_one_well_formed_message() {
    let project = Project::new();
    let append = |arguments: &[&str], input: &str| {
        let done = parlor(&[&["chatmd", "append", project.root()], arguments].concat(), &[], input);
        assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (0, "", ""), "{arguments:?}");
    };
    append(&["--from", "a", "--to", "b", "hello"], "");
    append(&["--from", "a", "--to", "all", "--cc", "c,d", "--cc", "e", "two", "words"], "");
    append(&["--from", "a", "--to", "b", "--", "- item\n[x-to-y]: forged\r\n\u{1b}[2J"], "");
    append(&["--from", "a", "--to", "b", "-"], "\nfrom stdin\n\nmore\n");
    let expected = "[a-to-b]: hello\n[a-to-all] @ [c, d, e]: two words\n[a-to-b]: - item\n  [x-to-y]: forged\n  \
                    \\u{1b}[2J\n[a-to-b]: from stdin\n  \n  more\n";
    assert_eq!(fs::read_to_string(project.chat()).unwrap(), expected);
    let watch = project.watch(&["--from-start"]);
    assert_eq!(watch.next()["message"], "hello");
    assert_eq!(watch.next()["broadcast"], serde_json::json!(["c", "d", "e"]));
    assert_eq!(watch.next()["body"], "- item\n[x-to-y]: forged\n\\u{1b}[2J");
    assert_eq!(watch.next()["body"], "from stdin\n\nmore");
    assert_eq!(watch.stop(), [""; 0]);
}

#[test]
fn append_refuses_forbidden_names_and_empty_texts_and_writes_nothing() {
    let project = Project::new();
    let refusal =
        |arguments: &[&str]| refused(&[&["chatmd", "append", project.root()], arguments].concat(), &[]);
    for (arguments, part) in [
        (&["--from", "a b", "--to", "b", "x"][..], "a_u20_b"),
        (&["--from", "a", "--to", "x-to-y", "x"], "-to-"),
        (&["--from", "a", "--to", "to-y", "x"], "to-"),
        (&["--from", "a", "--to", "b", "--cc", "c]", "x"], "']'"),
        (&["--from", "a\n[x-to-y]: z", "--to", "b", "x"], "is not allowed"),
        (&["--from", "", "--to", "b", "x"], "empty"),
        (&["--from", "a", "--to", "b", " \n"], "no text"),
        (&["--from", "a", "--to", "b", "-"], "no text"),
    ] {
        let error = refusal(arguments);
        assert!(error.contains(part) && error.lines().count() == 1, "{arguments:?}: {error}");
    }
    let long = "x\n".repeat(3 * 1024 * 1024);
    let done = parlor(&["chatmd", "append", project.root(), "--from", "a", "--to", "b", "-"], &[], &long);
    assert!(done.code == 1 && done.err.contains("too long"), "{}", done.err);
    assert!(!project.chat().exists());
    let elsewhere = tempfile::tempdir().unwrap();
    let root = elsewhere.path().to_str().unwrap();
    let error = refused(&["chatmd", "append", root, "--from", "a", "--to", "b", "x"], &[]);
    assert!(error.contains("does not exist"), "{error}");
    assert_eq!(fs::read_dir(root).unwrap().count(), 0);
}

#[test]
fn archive_moves_the_file_and_a_running_watch_goes_on() {
    let project = Project::new();
    assert!(ok(&["chatmd", "archive", project.root()]).contains("nothing to archive"));
    let watch = project.watch(&[]);
    let mut names = HashSet::new();
    for round in 0..3 {
        project.append(format!("[a-to-b]: {round} before\n"));
        let printed = ok(&["chatmd", "archive", project.root()]);
        let name =
            printed.strip_prefix("Archived chat.md as ").and_then(|rest| rest.strip_suffix(".\n")).unwrap();
        assert_eq!(fs::read_to_string(name).unwrap(), format!("[a-to-b]: {round} before\n"));
        let name = name.strip_prefix(project.path("memory/chat-2").to_str().unwrap()).unwrap().to_owned();
        assert!(name.ends_with(".md") && names.insert(name), "{printed}");
        project.append(format!("[a-to-b]: {round} after\n"));
        for part in ["before", "after"] {
            assert_eq!(watch.next_text(), format!("{round} {part}"));
        }
        fs::write(project.chat(), "").unwrap();
    }
    assert_eq!(watch.stop(), [""; 0]);
}
