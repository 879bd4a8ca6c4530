//! Tests of the cursor file: lock, damaged files, and cursors that do not fit the file.

use crate::scene::Project;
use parlor_chatmd::{Cursor, CursorFile, Notice, Start};
use std::fs;
use std::io::ErrorKind;

const NAME: &str = ".parlor-cursor";

fn a_cursor(project: &Project) -> Cursor {
    project.follow(Start::End).follower.cursor()
}

#[test]
fn a_saved_cursor_is_read_back_and_no_temporary_file_remains() {
    let project = Project::with_chat("[a-to-b]: one\n");
    let cursor = a_cursor(&project);
    let file = CursorFile::lock(&project.workplace(), NAME).unwrap();
    assert_eq!(file.read().unwrap(), None);
    for _ in 0..3 {
        file.save(&cursor).unwrap();
        assert_eq!(file.read().unwrap(), Some(cursor.clone()));
    }
    let mut names: Vec<_> = fs::read_dir(project.root().join(".workplace"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, [".parlor-cursor", ".parlor-cursor.lock", "chat.md"]);
}

#[test]
fn a_cursor_file_has_one_user() {
    let project = Project::new();
    let file = CursorFile::lock(&project.workplace(), NAME).unwrap();
    let refused = CursorFile::lock(&project.workplace(), NAME).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::WouldBlock);
    assert!(refused.to_string().contains("another watch"), "{refused}");
    CursorFile::lock(&project.workplace(), ".another-cursor").unwrap();
    drop(file);
    CursorFile::lock(&project.workplace(), NAME).unwrap();
}

#[test]
fn a_damaged_cursor_file_is_an_error() {
    let project = Project::new();
    let good = serde_json::to_string(&a_cursor(&project)).unwrap();
    let file = CursorFile::lock(&project.workplace(), NAME).unwrap();
    for damaged in [
        "",
        "{}",
        "null",
        "[]",
        "\u{0}",
        &good[..good.len() - 1],
        &good.replace("\"offset\":0", "\"offset\":-1"),
        &good.replace("\"offset\":0", "\"offset\":18446744073709551616"),
        &good.replace("\"offset\":0", "\"offset\":1e3"),
        &good.replace("\"tail\":\"", "\"tail\":[\""),
        &"[".repeat(100_000),
        &format!("{}{good}", " ".repeat(1_000_000)),
    ] {
        fs::write(project.path(NAME), damaged).unwrap();
        let error = file.read().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{damaged:.40}: {error}");
    }
    fs::write(project.path(NAME), b"\xff\xfe").unwrap();
    assert_eq!(file.read().unwrap_err().kind(), ErrorKind::InvalidData);
}

#[test]
fn a_cursor_that_does_not_fit_the_file_starts_at_the_beginning() {
    let project = Project::with_chat("[a-to-b]: one\n[a-to-b]: two\n");
    let good = a_cursor(&project);
    assert_eq!(project.resume(good.clone()).texts(), [""; 0]);
    for hostile in [
        Cursor { offset: 1_000, ..good.clone() },
        Cursor { offset: u64::MAX, ..good.clone() },
        Cursor { offset: i64::MAX as u64, ..good.clone() },
        Cursor { offset: 5, ..good.clone() },
        Cursor { offset: 0, ..good.clone() },
        Cursor { lines: u64::MAX, ..good.clone() },
        Cursor { tail: String::new(), ..good.clone() },
        Cursor { tail: "é".repeat(1_000), ..good.clone() },
    ] {
        let mut tester = project.resume(hostile.clone());
        assert_eq!(tester.texts(), ["1 one", "2 two"], "{hostile:?}");
    }
    for hostile in [Cursor { inode: 0, ..good.clone() }, Cursor { device: u64::MAX, ..good.clone() }] {
        let batch = project.resume(hostile).settle();
        assert_eq!(batch.messages.len(), 2);
        assert_eq!(batch.notices, [Notice::PreviousFileMissing, Notice::Replaced]);
    }
}

#[test]
fn a_new_file_with_the_same_content_is_not_mistaken_for_the_old_one() {
    let project = Project::with_chat("[a-to-b]: one\n");
    let cursor = a_cursor(&project);
    // The file system may give the new file the same inode.
    fs::remove_file(project.chat()).unwrap();
    project.append("[a-to-b]: one\n");
    assert_eq!(project.resume(cursor).texts(), ["1 one"]);
}
