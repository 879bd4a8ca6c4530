//! Tests of truncation, rewriting, renaming and recreation under a follower and between two starts.

use crate::scene::{Project, texts};
use parlor_chatmd::{Notice, Start};
use std::fs::{self, OpenOptions};
use std::io::Write;

#[test]
fn a_truncated_file_is_read_from_its_beginning() {
    let project = Project::with_chat("[a-to-b]: one\n[a-to-b]: two\n");
    let mut tester = project.follow(Start::Beginning);
    assert_eq!(tester.texts(), ["1 one", "2 two"]);
    let generation = tester.follower.cursor().generation;
    fs::write(project.chat(), "[a-to-b]: new\n").unwrap();
    let batch = tester.settle();
    assert_eq!(batch.notices, [Notice::Truncated]);
    assert_eq!(texts(&batch.messages), ["1 new"]);
    assert_ne!(batch.messages[0].cursor.generation, generation);
}

#[test]
fn a_truncation_between_two_polls_is_noticed_by_the_content() {
    for content in ["[a-to-b]: new\n[a-to-b]: newer\n[a-to-b]: newest\n", "[a-to-b]: six\n[a-to-b]: ten\n"] {
        let project = Project::with_chat("[a-to-b]: one\n[a-to-b]: two\n");
        let mut tester = project.follow(Start::Beginning);
        assert_eq!(tester.texts(), ["1 one", "2 two"]);
        fs::write(project.chat(), content).unwrap();
        let batch = tester.settle();
        assert_eq!(batch.notices, [Notice::Rewritten], "{content}");
        assert_eq!(batch.messages.len(), content.lines().count(), "{content}");
    }
}

#[test]
fn an_edit_of_an_old_line_is_reported_and_repeats_nothing() {
    let project = Project::with_chat("[a-to-b]: one\n[a-to-b]: two\n");
    let mut tester = project.follow(Start::Beginning);
    tester.settle();
    let mut file = OpenOptions::new().write(true).open(project.chat()).unwrap();
    file.write_all(b"[a-to-b]: ONE").unwrap();
    let batch = tester.settle();
    assert_eq!((batch.messages, batch.notices), (vec![], vec![Notice::Edited]));
    let batch = project.resume(tester.follower.cursor()).settle();
    assert_eq!((batch.messages, batch.notices), (vec![], vec![]));
    project.append("[a-to-b]: three\n");
    assert_eq!(tester.texts(), ["3 three"]);
    assert_eq!(project.resume(tester.follower.cursor()).texts(), [""; 0]);
}

#[test]
fn a_writer_may_take_back_an_incomplete_line() {
    let project = Project::with_chat("[a-to-b]: one\n[a-to-b]: incompl");
    let mut tester = project.follow(Start::Beginning);
    assert_eq!(tester.texts(), ["1 one"]);
    OpenOptions::new().write(true).open(project.chat()).unwrap().set_len(18).unwrap();
    project.append("x");
    let batch = tester.settle();
    assert_eq!((batch.messages, batch.notices), (vec![], vec![]));
    OpenOptions::new().write(true).open(project.chat()).unwrap().set_len(14).unwrap();
    let batch = tester.settle();
    assert_eq!((batch.messages, batch.notices), (vec![], vec![]));
    project.append("[a-to-b]: two\n");
    assert_eq!(tester.texts(), ["2 two"]);
}

#[test]
fn the_rest_of_a_replaced_file_is_read_before_the_new_one() {
    let project = Project::with_chat("[a-to-b]: one\n");
    let mut tester = project.follow(Start::Beginning);
    tester.settle();
    let mut writer = OpenOptions::new().append(true).open(project.chat()).unwrap();
    project.append("[a-to-b]: two\n");
    project.replace("[a-to-b]: new\n");
    let batch = tester.glance();
    assert_eq!(texts(&batch.messages), [""; 0]);
    // A writer that opened the old file before the replacement writes to it afterwards.
    tester.pass(150);
    writer.write_all(b"  more\n[a-to-b]: three\n[a-to-b]: inc").unwrap();
    let batch = tester.settle();
    assert_eq!(texts(&batch.messages), ["2 two\nmore", "4 three", "1 new"]);
    assert_eq!(batch.notices, [Notice::UnreadRemainder { line_number: 5, bytes: 13 }, Notice::Replaced]);
}

#[test]
fn a_busy_old_file_does_not_keep_the_new_one_waiting_for_ever() {
    let project = Project::with_chat("[a-to-b]: one\n");
    let mut tester = project.follow(Start::Beginning);
    tester.settle();
    let mut writer = OpenOptions::new().append(true).open(project.chat()).unwrap();
    project.replace("[a-to-b]: new\n");
    let mut read = Vec::new();
    for number in 0..100 {
        writer.write_all(format!("[a-to-b]: {number}\n").as_bytes()).unwrap();
        read.extend(texts(&tester.glance().messages));
        tester.pass(50);
    }
    assert_eq!(read.last().unwrap(), "1 new");
    assert!((20..60).contains(&read.len()), "{read:?}");
}

#[test]
fn every_file_that_was_noticed_is_read_even_if_it_is_replaced_again() {
    let project = Project::with_chat("[a-to-b]: one\n");
    let mut tester = project.follow(Start::Beginning);
    let mut read = texts(&tester.glance().messages);
    for number in 0..10 {
        project.replace(format!("[a-to-b]: file {number}\n"));
        read.extend(texts(&tester.glance().messages));
    }
    read.extend(tester.texts());
    let expected = (0..10).map(|number| format!("1 file {number}"));
    assert_eq!(read, ["1 one".to_owned()].into_iter().chain(expected).collect::<Vec<_>>());
}

#[test]
fn a_file_that_is_moved_away_and_back_is_continued() {
    let project = Project::with_chat("[a-to-b]: one\n");
    let mut tester = project.follow(Start::Beginning);
    assert_eq!(tester.texts(), ["1 one"]);
    fs::rename(project.chat(), project.path("old.md")).unwrap();
    assert_eq!(tester.texts(), [""; 0]);
    project.append("[a-to-b]: other\n");
    assert_eq!(tester.texts(), ["1 other"]);
    fs::rename(project.path("old.md"), project.chat()).unwrap();
    project.append("[a-to-b]: two\n");
    assert_eq!(tester.texts(), ["2 two"]);
}

#[test]
fn a_deleted_and_recreated_file_is_read_from_its_beginning() {
    let project = Project::with_chat("[a-to-b]: one\n");
    let mut tester = project.follow(Start::Beginning);
    assert_eq!(tester.texts(), ["1 one"]);
    fs::remove_file(project.chat()).unwrap();
    assert_eq!(tester.texts(), [""; 0]);
    // The same line in a new file is a new message.
    project.append("[a-to-b]: one\n");
    assert_eq!(tester.texts(), ["1 one"]);
}

#[test]
fn a_file_that_was_renamed_while_no_follower_ran_is_found_and_read_first() {
    for name in ["chat.md.1", "memory/chat-2026-01-01.md"] {
        let project = Project::with_chat("[a-to-b]: one\n");
        let mut tester = project.follow(Start::Beginning);
        assert_eq!(tester.texts(), ["1 one"]);
        project.append("[a-to-b]: two\n");
        fs::create_dir(project.path("memory")).unwrap();
        fs::rename(project.chat(), project.path(name)).unwrap();
        project.append("[a-to-b]: new\n");
        let batch = project.resume(tester.follower.cursor()).settle();
        assert_eq!(texts(&batch.messages), ["2 two", "1 new"], "{name}");
        assert_eq!(batch.notices, [Notice::Replaced]);
    }
}

#[test]
fn a_start_after_the_file_was_deleted_reads_the_new_file_and_reports_it() {
    let project = Project::with_chat("[a-to-b]: one\n");
    let keep_inode = fs::File::open(project.chat()).unwrap();
    let mut tester = project.follow(Start::Beginning);
    tester.settle();
    fs::remove_file(project.chat()).unwrap();
    project.append("[a-to-b]: new\n");
    let batch = project.resume(tester.follower.cursor()).settle();
    assert_eq!(texts(&batch.messages), ["1 new"]);
    assert_eq!(batch.notices, [Notice::PreviousFileMissing, Notice::Replaced]);
    drop(keep_inode);
}

#[test]
fn a_start_after_a_rewrite_reads_the_file_from_its_beginning() {
    for content in
        ["", "[a-to-b]: new\n", "[a-to-b]: six\n[a-to-b]: ten\n", "[a-to-b]: 1\n[a-to-b]: 2\n[a-to-b]: 3\n"]
    {
        let project = Project::with_chat("[a-to-b]: one\n[a-to-b]: two\n");
        let mut tester = project.follow(Start::Beginning);
        tester.settle();
        fs::write(project.chat(), content).unwrap();
        let batch = project.resume(tester.follower.cursor()).settle();
        assert_eq!(batch.messages.len(), content.lines().count(), "{content:?}");
        assert_eq!(batch.notices, [Notice::Rewritten], "{content:?}");
    }
}
