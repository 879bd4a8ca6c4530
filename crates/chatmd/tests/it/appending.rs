//! Tests of appending: complete lines, concurrency and errors.

use crate::scene::Project;
use parlor_chatmd::{Start, append};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

#[test]
fn text_is_appended_and_its_place_returned() {
    let project = Project::new();
    let first = append(&project.workplace(), b"[a-to-b]: one\n", false).unwrap();
    let second = append(&project.workplace(), b"[a-to-b]: two\n  more\n", true).unwrap();
    assert_eq!(fs::read(project.chat()).unwrap(), b"[a-to-b]: one\n[a-to-b]: two\n  more\n");
    assert_eq!((first.range, second.range), (0..14, 14..35));
    let metadata = fs::metadata(project.chat()).unwrap();
    assert_eq!((second.device, second.inode), (metadata.dev(), metadata.ino()));
    assert_eq!(metadata.permissions().mode() & 0o133, 0);
}

#[test]
fn an_incomplete_last_line_is_ended_first() {
    let project = Project::with_chat("[a-to-b]: incomplete");
    let appended = append(&project.workplace(), b"[a-to-b]: one\n", false).unwrap();
    let content = fs::read(project.chat()).unwrap();
    assert_eq!(content, b"[a-to-b]: incomplete\n[a-to-b]: one\n");
    assert_eq!(appended.range, 21..35);
}

#[test]
fn text_without_a_line_feed_at_its_end_is_refused() {
    let project = Project::new();
    for text in ["", "x", "x\ny"] {
        assert!(append(&project.workplace(), text.as_bytes(), false).is_err(), "{text:?}");
    }
    assert!(!project.chat().exists());
}

#[test]
fn appending_waits_for_the_lock_of_the_file() {
    let project = Project::with_chat("");
    let locked = fs::File::open(project.chat()).unwrap();
    flock(&locked, FlockOperation::LockExclusive).unwrap();
    let workplace = project.workplace();
    let (started, waiting) = std::sync::mpsc::channel();
    let appending = std::thread::spawn(move || {
        started.send(()).unwrap();
        append(&workplace, b"[a-to-b]: one\n", false)
    });
    waiting.recv().unwrap();
    assert_eq!(fs::read(project.chat()).unwrap(), b"");
    drop(locked);
    appending.join().unwrap().unwrap();
    assert_eq!(fs::read(project.chat()).unwrap(), b"[a-to-b]: one\n");
}

/// nextest runs each test in a process of its own, so the limit concerns no other test.
#[test]
fn a_line_that_cannot_be_written_completely_is_taken_back() {
    let project = Project::with_chat("[a-to-b]: one\n");
    let mut tester = project.follow(Start::Beginning);
    assert_eq!(tester.texts(), ["1 one"]);
    // Like a full disk: the file cannot grow beyond this size. The kernel also sends a signal.
    let limit = getrlimit(Resource::Fsize);
    ignore_file_size_signal();
    setrlimit(Resource::Fsize, Rlimit { current: Some(100), maximum: limit.maximum }).unwrap();
    let text = format!("[a-to-b]: {}\n", "x".repeat(1_000));
    let failed = append(&project.workplace(), text.as_bytes(), false);
    setrlimit(Resource::Fsize, limit).unwrap();
    assert!(failed.is_err());
    assert_eq!(fs::read(project.chat()).unwrap(), b"[a-to-b]: one\n");
    append(&project.workplace(), b"[a-to-b]: two\n", false).unwrap();
    assert_eq!(tester.texts(), ["2 two"]);
}

fn ignore_file_size_signal() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _guard = runtime.enter();
    // A handler replaces the default action, which ends the process. It stays installed.
    let kind = tokio::signal::unix::SignalKind::from_raw(25);
    std::mem::forget(tokio::signal::unix::signal(kind).unwrap());
    std::mem::forget(runtime);
}
