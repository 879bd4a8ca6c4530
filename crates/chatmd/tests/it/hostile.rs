//! Attacks on the files of a workplace: links, special files, exchanged files and hostile lines.

use crate::scene::{Project, texts};
use parlor_chatmd::{CursorFile, Follower, Notice, Start, Workplace, append, archive};
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

const SECRET: &str = "[a-to-b]: secret\n";

/// Puts something at the first path. The second one is a file outside of the workplace.
type Swap = fn(&Path, &Path);

/// Every way to put something else in the place of a file, with a part of the refusal.
const SWAPS: &[(Swap, &str)] = &[
    (|at, secret| symlink(secret, at).unwrap(), "symbolic link"),
    (|at, _| symlink("/nonexistent", at).unwrap(), "symbolic link"),
    (|at, secret| fs::hard_link(secret, at).unwrap(), "hard link"),
    (|at, _| mknodat(CWD, at, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap(), "FIFO"),
    (device, "FIFO, a socket or a device"),
    (|at, _| fs::create_dir(at).unwrap(), "directory"),
    (|at, _| drop(UnixListener::bind(at).unwrap()), "socket"),
];

/// Creates a device like /dev/zero. That is reserved to root; other users get a FIFO, which has the same refusal.
fn device(at: &Path, _: &Path) {
    let mode = Mode::from_raw_mode(0o600);
    mknodat(CWD, at, FileType::CharacterDevice, mode, makedev(1, 5))
        .or_else(|_| mknodat(CWD, at, FileType::Fifo, mode, 0))
        .unwrap();
}

struct Attack {
    project: Project,
    outside: tempfile::TempDir,
}

impl Attack {
    fn new() -> Self {
        // On the same file system, so that a hard link is possible.
        let (project, outside) = (Project::new(), tempfile::tempdir().unwrap());
        fs::write(outside.path().join("secret"), SECRET).unwrap();
        Self { project, outside }
    }

    fn swap(&self, name: &str, swap: Swap) {
        swap(&self.project.path(name), &self.outside.path().join("secret"));
    }

    fn remove(&self, name: &str) {
        let path = self.project.path(name);
        let removed =
            if path.is_dir() && !path.is_symlink() { fs::remove_dir(path) } else { fs::remove_file(path) };
        removed.unwrap();
    }
}

impl Drop for Attack {
    /// Nothing outside of the workplace was changed or created.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(fs::read_to_string(self.outside.path().join("secret")).unwrap(), SECRET);
            assert_eq!(fs::read_dir(self.outside.path()).unwrap().count(), 1);
            assert_eq!(fs::read_dir(self.project.root()).unwrap().count(), 1);
        }
    }
}

#[test]
fn a_chat_file_that_is_no_regular_file_is_refused() {
    for (swap, reason) in SWAPS {
        let attack = Attack::new();
        attack.swap("chat.md", *swap);
        let workplace = attack.project.workplace();
        let check = |error: std::io::Error| {
            assert!(error.to_string().contains(reason), "{reason}: {error}");
        };
        for start in [Start::Beginning, Start::End, Start::Cursor(None)] {
            check(Follower::open(workplace.clone(), start).err().unwrap());
        }
        check(append(&workplace, b"[a-to-b]: x\n", true).unwrap_err());
        check(archive(&workplace, "2026-01-01").unwrap_err());
    }
}

#[test]
fn a_chat_file_that_is_exchanged_while_it_is_followed_is_reported_once_and_never_read() {
    for (swap, reason) in SWAPS {
        let attack = Attack::new();
        attack.project.append("[a-to-b]: one\n");
        let mut tester = attack.project.follow(Start::Beginning);
        assert_eq!(tester.texts(), ["1 one"]);
        attack.remove("chat.md");
        attack.swap("chat.md", *swap);
        let batch = tester.settle();
        assert_eq!(batch.messages, [], "{reason}");
        assert!(
            matches!(&*batch.notices, [Notice::Unusable(text)] if text.contains(reason)),
            "{:?}",
            batch.notices
        );
        tester.pass(5_000);
        let batch = tester.settle();
        assert_eq!((batch.messages, batch.notices), (vec![], vec![]), "{reason}");
        // A regular file in its place is followed again.
        attack.remove("chat.md");
        attack.project.append("[a-to-b]: two\n");
        assert_eq!(tester.texts(), ["1 two"], "{reason}");
    }
}

#[test]
fn a_file_that_gets_a_second_link_is_not_read_until_it_is_gone() {
    let project = Project::with_chat("[a-to-b]: one\n");
    let mut tester = project.follow(Start::Beginning);
    assert_eq!(tester.texts(), ["1 one"]);
    fs::hard_link(project.chat(), project.path("link")).unwrap();
    project.append("[a-to-b]: two\n");
    let batch = tester.settle();
    assert_eq!(batch.messages, []);
    assert!(matches!(&*batch.notices, [Notice::Unusable(_)]), "{:?}", batch.notices);
    fs::remove_file(project.path("link")).unwrap();
    assert_eq!(tester.texts(), ["2 two"]);
}

#[test]
fn a_workplace_that_is_missing_or_a_link_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().join(".workplace");
    let refusal = || Workplace::open(directory.path()).unwrap_err().to_string();
    assert!(refusal().contains("does not exist"), "{}", refusal());
    fs::write(&at, "").unwrap();
    assert!(refusal().contains("not a directory"), "{}", refusal());
    fs::remove_file(&at).unwrap();
    let other = tempfile::tempdir().unwrap();
    symlink(other.path(), &at).unwrap();
    assert!(refusal().contains("not a directory"), "{}", refusal());
    assert!(Workplace::open(Path::new("/nonexistent")).is_err());
    assert_eq!(fs::read_dir(other.path()).unwrap().count(), 0);
}

#[test]
fn the_directory_that_was_opened_is_used_whatever_its_name_leads_to() {
    let attack = Attack::new();
    attack.project.append("[a-to-b]: one\n");
    let workplace = attack.project.workplace();
    let mut tester = attack.project.follow(Start::Beginning);
    assert_eq!(tester.texts(), ["1 one"]);
    // The directory is moved away, and a link to a directory outside takes its place.
    let moved = tempfile::tempdir().unwrap();
    let (path, away) = (attack.project.root().join(".workplace"), moved.path().join("moved"));
    fs::rename(&path, &away).unwrap();
    symlink(attack.outside.path(), &path).unwrap();
    append(&workplace, b"[a-to-b]: two\n", false).unwrap();
    assert_eq!(tester.texts(), ["2 two"]);
    archive(&workplace, "2026-01-01").unwrap().unwrap();
    assert!(away.join("memory/chat-2026-01-01.md").exists());
}

#[test]
fn links_in_the_place_of_other_files_are_not_followed() {
    let attack = Attack::new();
    attack.project.append("[a-to-b]: one\n");
    let secret = attack.outside.path();
    // The directory of archives.
    symlink(secret, attack.project.path("memory")).unwrap();
    assert!(archive(&attack.project.workplace(), "2026-01-01").is_err());
    assert_eq!(fs::read_to_string(attack.project.chat()).unwrap(), "[a-to-b]: one\n");
    fs::remove_file(attack.project.path("memory")).unwrap();
    // An archive name that is taken by a link is not replaced.
    fs::create_dir(attack.project.path("memory")).unwrap();
    symlink(secret.join("secret"), attack.project.path("memory/chat-2026-01-01.md")).unwrap();
    let archived = archive(&attack.project.workplace(), "2026-01-01").unwrap().unwrap();
    assert!(archived.ends_with("memory/chat-2026-01-01-2.md"), "{archived:?}");

    // The cursor, its lock and its temporary file.
    let cursor = attack.project.follow(Start::End).follower.cursor();
    for name in [".parlor-cursor", ".parlor-cursor.tmp"] {
        symlink(secret.join("secret"), attack.project.path(name)).unwrap();
    }
    let file = CursorFile::lock(&attack.project.workplace(), ".parlor-cursor").unwrap();
    assert!(file.read().unwrap_err().to_string().contains("symbolic link"));
    file.save(&cursor).unwrap();
    assert_eq!(file.read().unwrap(), Some(cursor));
    drop(file);
    fs::remove_file(attack.project.path(".parlor-cursor.lock")).unwrap();
    symlink(secret.join("new"), attack.project.path(".parlor-cursor.lock")).unwrap();
    assert!(CursorFile::lock(&attack.project.workplace(), ".parlor-cursor").is_err());

    // The descriptions of agents.
    symlink(secret, attack.project.path("agents")).unwrap();
    let mut tester = attack.project.follow(Start::End);
    attack.project.append("[a-to-b-to-secret]: x\n");
    assert_eq!(tester.settle().messages[0].line.sender, "a-to-b");
}

#[test]
fn hostile_bytes_are_harmless() {
    let mut content = Vec::new();
    // Every byte at the start, in a header and in a text; no line feed among them.
    for byte in (0..=255).filter(|byte| *byte != b'\n') {
        content.extend([byte, b'\n', b'[', byte, b']', b':', b'x', b'\n']);
        content.extend(b"[a-to-b]: text ");
        content.extend([byte, b'.', b'\n']);
    }
    let project = Project::with_chat(&content);
    let messages = project.follow(Start::Beginning).settle().messages;
    assert_eq!(messages.len(), 255);
    assert!(messages.iter().all(|message| message.line.message.starts_with("text ")));

    for hostile in [
        "[".repeat(100_000),
        format!("[{}", "-to-".repeat(100_000)),
        format!("[a{}b]: x", "-to-".repeat(100_000)),
        format!("[a-to-b] @ [{}]: x", ",".repeat(100_000)),
        format!("[a-to-b]{}:{}x", " ".repeat(100_000), "\u{2003}".repeat(100_000)),
        "\0".repeat(100_000),
    ] {
        let project = Project::with_chat(format!("{hostile}\n[a-to-b]: good\n"));
        let read = texts(&project.follow(Start::Beginning).settle().messages);
        assert_eq!(read.last().unwrap(), "2 good");
    }
}
