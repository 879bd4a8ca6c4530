//! Tests of archiving, also while other threads append and a follower reads.

use crate::scene::Project;
use parlor_chatmd::{Start, append, archive};
use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn the_file_is_moved_to_a_free_name_and_an_empty_one_is_created() {
    let project = Project::with_chat("one\n");
    fs::set_permissions(project.chat(), fs::Permissions::from_mode(0o664)).unwrap();
    for (number, name) in
        ["chat-2026-01-31.md", "chat-2026-01-31-2.md", "chat-2026-01-31-3.md"].iter().enumerate()
    {
        fs::write(project.chat(), format!("file {number}\n")).unwrap();
        let archived = archive(&project.workplace(), "2026-01-31").unwrap().unwrap();
        assert_eq!(archived, project.path("memory").join(name));
        assert_eq!(fs::read_to_string(archived).unwrap(), format!("file {number}\n"));
        assert_eq!(fs::read(project.chat()).unwrap(), b"");
        assert_eq!(fs::metadata(project.chat()).unwrap().permissions().mode() & 0o777, 0o664);
    }
}

#[test]
fn an_empty_or_missing_file_is_not_archived() {
    let project = Project::new();
    assert_eq!(archive(&project.workplace(), "2026-01-31").unwrap(), None);
    assert!(!project.chat().exists());
    fs::write(project.chat(), "").unwrap();
    assert_eq!(archive(&project.workplace(), "2026-01-31").unwrap(), None);
    assert!(!project.path("memory").exists());
}

#[test]
fn no_line_is_lost_when_a_file_is_archived_while_it_is_written_and_followed() {
    const WRITERS: usize = 4;
    const LINES: usize = 500;
    let project = Project::new();
    let mut tester = project.follow(Start::Beginning);
    let mut read = Vec::new();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let workplace = project.workplace();
            scope.spawn(move || {
                for line in 0..LINES {
                    let text = format!("[a-to-b]: {writer} {line}\n");
                    append(&workplace, text.as_bytes(), false).unwrap();
                }
            });
        }
        while read.len() < WRITERS * LINES {
            // A follower reads every file that it found at its place, so it looks before each archive.
            read.extend(tester.glance().messages);
            archive(&project.workplace(), "2026-01-31").unwrap();
            tester.pass(250);
        }
    });
    let read: HashSet<String> = read.into_iter().map(|message| message.line.message).collect();
    let expected = (0..WRITERS).flat_map(|writer| (0..LINES).map(move |line| format!("{writer} {line}")));
    assert_eq!(read, expected.collect());

    // Every line is in exactly one file.
    let mut lines = Vec::new();
    for entry in fs::read_dir(project.path("memory")).unwrap() {
        lines.extend(fs::read_to_string(entry.unwrap().path()).unwrap().lines().map(str::to_owned));
    }
    lines.extend(fs::read_to_string(project.chat()).unwrap().lines().map(str::to_owned));
    assert_eq!(lines.len(), WRITERS * LINES);
    assert_eq!(lines.iter().collect::<HashSet<_>>().len(), WRITERS * LINES);
}

#[test]
fn a_follower_reads_every_line_around_an_archive() {
    let project = Project::new();
    let mut tester = project.follow(Start::Beginning);
    let mut read = Vec::new();
    for round in 0..20 {
        append(&project.workplace(), format!("[a-to-b]: {round} before\n").as_bytes(), false).unwrap();
        // The last lines are unread when the file is archived.
        if round % 2 == 0 {
            read.extend(tester.glance().messages);
        }
        append(&project.workplace(), format!("[a-to-b]: {round} late\n").as_bytes(), false).unwrap();
        archive(&project.workplace(), "2026-01-31").unwrap().unwrap();
        append(&project.workplace(), format!("[a-to-b]: {round} after\n").as_bytes(), false).unwrap();
        read.extend(tester.settle().messages);
    }
    let read: Vec<String> = read.into_iter().map(|message| message.line.message).collect();
    let expected =
        (0..20).flat_map(|round| ["before", "late", "after"].map(|text| format!("{round} {text}")));
    assert_eq!(read, expected.collect::<Vec<_>>());
}
