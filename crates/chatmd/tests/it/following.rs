//! Tests of a follower on one file: starts, continuation lines, limits and known names.

use crate::scene::{Project, texts};
use parlor_chatmd::follow::{MAX_BODY_BYTES, MAX_LINE_BYTES};
use parlor_chatmd::{Notice, Start};
use std::fs;

#[test]
fn a_follower_starts_at_the_beginning_the_end_or_a_cursor() {
    let project = Project::with_chat("# intro\n[a-to-b]: one\n");
    let mut from_end = project.follow(Start::End);
    let mut without_cursor = project.follow(Start::Cursor(None));
    project.append("[a-to-b]: two\n");
    assert_eq!(from_end.texts(), ["3 two"]);
    assert_eq!(without_cursor.texts(), ["3 two"]);
    assert_eq!(project.follow(Start::Beginning).texts(), ["2 one", "3 two"]);
    let cursor = from_end.follower.cursor();
    project.append("[a-to-b]: three\n");
    assert_eq!(project.resume(cursor.clone()).texts(), ["4 three"]);
    assert_eq!(project.resume(cursor).texts(), ["4 three"]);
}

#[test]
fn a_missing_file_is_created() {
    let project = Project::new();
    let mut tester = project.follow(Start::Cursor(None));
    assert_eq!(fs::read(project.chat()).unwrap(), b"");
    project.append("[a-to-b]: one\n");
    assert_eq!(tester.texts(), ["1 one"]);
}

#[test]
fn an_incomplete_line_waits_for_its_end_also_across_a_restart() {
    let project = Project::with_chat("[a-to-b]: one\n[a-to");
    let mut tester = project.follow(Start::End);
    assert_eq!(tester.texts(), [""; 0]);
    project.append("-b]: t");
    assert_eq!(tester.texts(), [""; 0]);
    let mut tester = project.resume(tester.follower.cursor());
    project.append("wo\n");
    assert_eq!(tester.texts(), ["2 two"]);
}

#[test]
fn a_message_is_complete_with_the_next_line_or_after_the_quiet_period() {
    let project = Project::new();
    let mut tester = project.follow(Start::End);
    project.append("[a-to-b]: one\n  more\n");
    let batch = tester.glance();
    assert_eq!(batch.messages, []);
    let wake_at = batch.wake_at.unwrap();
    tester.pass(100);
    project.append("  again\n");
    assert_eq!(tester.glance().messages, []);
    tester.pass(150);
    assert!(tester.now > wake_at);
    // Data arrived 150 ms ago.
    assert_eq!(tester.glance().messages, []);
    tester.pass(50);
    assert_eq!(texts(&tester.glance().messages), ["1 one\nmore\nagain"]);

    // The first byte of the next line is enough.
    project.append("[a-to-b]: two\n");
    assert_eq!(tester.glance().messages, []);
    project.append("[");
    assert_eq!(texts(&tester.glance().messages), ["4 two"]);
    // An empty line ends a message as well.
    project.append("a-to-b]: three\n\n  no continuation\n");
    assert_eq!(texts(&tester.glance().messages), ["5 three"]);
}

#[test]
fn a_message_has_a_cursor_behind_its_continuation_lines() {
    let project = Project::with_chat("[a-to-b]: one\n  more\n# comment\n[a-to-b]: two\n");
    let mut tester = project.follow(Start::Beginning);
    let batch = tester.glance();
    assert_eq!(texts(&batch.messages), ["1 one\nmore"]);
    let after_one = &batch.messages[0].cursor;
    assert_eq!((batch.messages[0].offset, after_one.offset, after_one.lines), (0, 21, 2));
    // The second message is not returned yet: the cursor is before it, and behind the comment.
    let cursor = tester.follower.cursor();
    assert_eq!((cursor.offset, cursor.lines), (31, 3));
    for cursor in [after_one, &cursor] {
        assert_eq!(project.resume(cursor.clone()).texts(), ["4 two"]);
    }
    let last = tester.settle().messages.remove(0);
    assert_eq!((last.offset, last.cursor.offset, last.cursor.lines), (31, 45, 4));
    assert_eq!(last.cursor, tester.follower.cursor());
}

#[test]
fn a_late_continuation_is_reported_and_never_a_message() {
    let project = Project::with_chat("[a-to-b]: one\n");
    let mut tester = project.follow(Start::Beginning);
    assert_eq!(tester.texts(), ["1 one"]);
    project.append("  late\n  \n  [x-to-y]: late too\n[a-to-b]: two\n");
    let batch = tester.settle();
    assert_eq!(texts(&batch.messages), ["5 two"]);
    let late = |line_number| Notice::LateContinuation { line_number };
    assert_eq!(batch.notices, [late(2), late(4)]);
    // A restart in between makes no difference.
    let mut tester = project.resume(tester.follower.cursor());
    project.append("\tlate\n");
    assert_eq!(tester.notices(), [late(6)]);
}

#[test]
fn an_indented_message_that_continues_nothing_is_reported() {
    let project =
        Project::with_chat("# notes\n  [a-to-b]: indented\n  plain\n\n[a-to-b]: one\n\n\t[a-to-b]: again\n");
    let batch = project.follow(Start::Beginning).settle();
    assert_eq!(texts(&batch.messages), ["5 one"]);
    let ignored = |line_number| Notice::IgnoredIndented { line_number };
    assert_eq!(batch.notices, [ignored(2), ignored(7)]);
}

#[test]
fn a_line_up_to_the_limit_is_read_and_a_longer_one_is_skipped() {
    let project = Project::new();
    let mut tester = project.follow(Start::End);
    let limit = MAX_LINE_BYTES as usize;
    let header = "[a-to-b]: ";
    let line = |length: usize| format!("{header}{}\n", "x".repeat(length - header.len()));
    project.append(line(limit));
    let batch = tester.settle();
    assert_eq!(batch.messages[0].line.message.len(), limit - header.len());

    project.append("[a-to-b]: before\n");
    project.append(line(limit + 1));
    project.append("[a-to-b]: between\n  more\n");
    // This line arrives in many parts, and the follower never holds all of it.
    for _ in 0..200 {
        project.append("  ".repeat(64 * 1024));
        assert_eq!(tester.glance().messages.iter().filter(|message| message.line_number > 4).count(), 0);
    }
    let cursor = tester.follower.cursor();
    project.append("\n[a-to-b]: after\n");
    let batch = tester.settle();
    assert_eq!(texts(&batch.messages), ["7 after"]);
    let bytes = 200 * 2 * 64 * 1024;
    assert_eq!(batch.notices, [Notice::LineTooLong { line_number: 6, bytes }]);
    // The cursor stays before the incomplete line.
    let mut resumed = project.resume(cursor);
    let batch = resumed.settle();
    assert_eq!(texts(&batch.messages), ["7 after"]);
    assert_eq!(batch.notices, [Notice::LineTooLong { line_number: 6, bytes }]);
}

#[test]
fn a_body_over_the_limit_is_cut() {
    let project = Project::new();
    let mut tester = project.follow(Start::End);
    let line = format!("  {}\n", "y".repeat(1024 * 1024 - 3));
    project.append("[a-to-b]: one\n");
    for _ in 0..6 {
        project.append(&line);
    }
    project.append("[a-to-b]: two\n");
    let batch = tester.settle();
    assert_eq!(batch.messages.len(), 2);
    let body = batch.messages[0].line.text().len();
    assert!(body <= MAX_BODY_BYTES + 64 && body > MAX_BODY_BYTES - 1024 * 1024, "{body}");
    assert_eq!(batch.notices, [Notice::BodyTooLong { line_number: 6 }]);
}

#[test]
fn known_names_and_described_agents_decide_an_ambiguous_split() {
    let project = Project::new();
    let mut tester = project.follow(Start::End);
    let mut split = |text: &str| {
        project.append(format!("[{text}]: x\n"));
        let message = tester.settle().messages.remove(0).line;
        (message.sender, message.recipient)
    };
    let names = |sender: &str, recipient: &str| (sender.to_owned(), recipient.to_owned());
    assert_eq!(split("a-to-b-to-c"), names("a-to-b", "c"));
    let agents = project.path("agents");
    fs::create_dir(&agents).unwrap();
    fs::write(agents.join("a.md"), "").unwrap();
    assert_eq!(split("a-to-b-to-c"), names("a-to-b", "c"));
    fs::write(agents.join("b-to-c.md"), "").unwrap();
    assert_eq!(split("a-to-b-to-c"), names("a", "b-to-c"));
    fs::remove_file(agents.join("a.md")).unwrap();
    assert_eq!(split("a-to-b-to-c"), names("a-to-b", "c"));

    let mut tester = project.follow(Start::End);
    tester.follower.set_known_names(["a".to_owned()]);
    project.append("[a-to-b-to-c]: x\n");
    let message = tester.settle().messages.remove(0).line;
    assert_eq!((message.sender, message.recipient), names("a", "b-to-c"));
}

#[test]
fn input_beyond_one_chunk_is_read_in_several_polls() {
    let project = Project::new();
    let mut tester = project.follow(Start::End);
    let lines: String = (0..100_000).map(|number| format!("[a-to-b]: {number}\n")).collect();
    project.append(&lines);
    let first = tester.follower.poll(tester.now);
    assert!(first.more && !first.messages.is_empty() && first.messages.len() < 100_000);
    let rest = tester.settle().messages;
    assert_eq!(first.messages.len() + rest.len(), 100_000);
    let all = first.messages.iter().chain(&rest).enumerate();
    for (number, message) in all {
        assert_eq!((message.line_number, message.line.message.parse()), (number as u64 + 1, Ok(number)));
    }
}

#[test]
fn a_file_that_an_editor_saved_is_continued_if_its_content_is_the_same() {
    let chat = "# intro\n[a-to-b]: one\n[a-to-b]: two\n";
    let project = Project::with_chat(chat);
    let mut tester = project.follow(Start::Content(None));
    assert_eq!(tester.texts(), [""; 0]);
    project.replace(chat);
    let batch = tester.settle();
    assert_eq!((batch.messages, batch.notices), (vec![], vec![Notice::Continued]));
    project.replace(format!("{chat}[a-to-b]: three\n"));
    assert_eq!(tester.texts(), ["4 three"]);
    let cursor = tester.follower.cursor();

    // While no follower runs, and in a copy of the project.
    drop(tester);
    let content = fs::read_to_string(project.chat()).unwrap();
    for project in [project, Project::with_chat("")] {
        fs::remove_file(project.chat()).unwrap();
        fs::write(project.path("other.md"), "").unwrap();
        fs::write(project.chat(), format!("{content}[a-to-b]: four\n")).unwrap();
        let mut tester = project.follow(Start::Content(Some(cursor.clone())));
        assert_ne!(tester.follower.cursor().generation, cursor.generation);
        assert_eq!(tester.texts(), ["5 four"]);
        // Other content is read from its beginning.
        project.replace("[a-to-b]: one\n[a-to-b]: five\n");
        assert_eq!(tester.texts(), ["1 one", "2 five"]);
    }
}
