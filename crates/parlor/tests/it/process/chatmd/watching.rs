//! Output, notices, limits and refusals of `parlor watch`.

use super::{Project, TIMEOUT, Watch};
use crate::process::command_line::{parlor, refused};
use rustix::process::Signal;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::sync::{Arc, Mutex};

#[test]
fn an_object_has_its_keys_in_the_documented_order() {
    let project = Project::with_chat("[a-to-b] @ [c, d]: one\n  more\n[a-to-b]: two\n");
    let watch = project.watch(&["--from-start"]);
    let first = watch.lines.recv_timeout(TIMEOUT).unwrap();
    let (timestamp, rest) = first.split_at(r#"{"timestamp":"2026-01-01T00:00:00.000Z""#.len());
    assert!(timestamp.starts_with(r#"{"timestamp":"2"#) && timestamp.ends_with("Z\""), "{first}");
    assert_eq!(
        rest,
        r#","sender":"a","recipient":"b","broadcast":["c","d"],"message":"one","line_number":1,"body":"one\nmore"}"#
    );
    let second = watch.lines.recv_timeout(TIMEOUT).unwrap();
    assert!(second.ends_with(r#""message":"two","line_number":3}"#), "{second}");
    assert_eq!(watch.stop(), [""; 0]);
}

#[test]
fn four_writers_with_split_writes_lose_and_repeat_nothing() {
    const WRITERS: usize = 4;
    const LINES: usize = 5_000;
    let project = Project::new();
    let watch = project.watch(&[]);
    // Each line is written in two parts; the writers keep their lines apart themselves.
    let turn = Arc::new(Mutex::new(()));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let turn = turn.clone();
            let mut file = OpenOptions::new().append(true).open(project.chat()).unwrap();
            std::thread::spawn(move || {
                for number in 0..LINES {
                    let line = format!("[w-to-r]: {writer} {number}\n");
                    let (first, second) = line.split_at(1 + (writer + number) % (line.len() - 1));
                    let _turn = turn.lock().unwrap();
                    file.write_all(first.as_bytes()).unwrap();
                    file.write_all(second.as_bytes()).unwrap();
                }
            })
        })
        .collect();
    let mut next = [0; WRITERS];
    for index in 0..WRITERS * LINES {
        let printed = watch.next();
        assert_eq!(printed["line_number"], index + 1);
        let (writer, number) = printed["message"].as_str().unwrap().split_once(' ').unwrap();
        let writer: usize = writer.parse().unwrap();
        assert_eq!(number.parse(), Ok(next[writer]), "writer {writer}");
        next[writer] += 1;
    }
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    assert_eq!(watch.stop(), [""; 0]);
}

#[test]
fn a_watch_needs_no_settings_and_ignores_those_of_the_hub() {
    let project = Project::with_chat("[a-to-b]: one\n");
    let mut command = std::process::Command::new(crate::scene::PARLOR);
    command.args(["watch", project.root(), "--from-start"]);
    command
        .env("PARLOR_LISTEN", "no address")
        .env("PARLOR_CONFIG", "/no/such/file.toml")
        .env("PARLOR_NONSENSE", "1");
    let mut process = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let lines = super::lines_of(process.stdout.take().unwrap());
    assert!(lines.recv_timeout(TIMEOUT).unwrap().contains("\"one\""));
    rustix::process::kill_process(rustix::process::Pid::from_child(&process), Signal::INT).unwrap();
    assert!(process.wait().unwrap().success());
    for flag in ["--data", "--config", "--listen"] {
        let done = parlor(&["watch", project.root(), flag, "x"], &[], "");
        assert_eq!(done.code, 2, "{}", done.err);
    }
}

#[test]
fn a_project_without_a_workplace_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().to_str().unwrap();
    let error = refused(&["watch", root], &[]);
    assert!(error.contains(".workplace") && error.contains("does not exist"), "{error}");
    assert_eq!(fs::read_dir(root).unwrap().count(), 0);
    let outside = tempfile::NamedTempFile::new().unwrap();
    fs::create_dir(directory.path().join(".workplace")).unwrap();
    symlink(outside.path(), directory.path().join(".workplace/chat.md")).unwrap();
    let error = refused(&["watch", root], &[]);
    assert!(error.contains("chat.md is not used: it is a symbolic link"), "{error}");
}

#[test]
fn a_missing_file_is_created_and_the_status_is_maintained() {
    let project = Project::new();
    fs::write(project.path("process-status.json"), "{\"coder\": {\"status\":\"idle\", \"n\": 1.0}}").unwrap();
    let watch = project.watch(&[]);
    assert_eq!(fs::read(project.chat()).unwrap(), b"");
    let running = project.status();
    assert_eq!((&running["status"], &running["pid"]), (&"running".into(), &watch.process.id().into()));
    project.append("[a-to-b]: one\n");
    assert_eq!(watch.next_text(), "one");
    assert_eq!(watch.stop(), [""; 0]);
    let stopped = project.status();
    assert_eq!((&stopped["status"], &stopped["error"]), (&"stopped".into(), &serde_json::Value::Null));
    assert_eq!(stopped["startedAt"], running["startedAt"]);
    assert!(stopped["lastEvent"].as_str() > running["lastEvent"].as_str());
    let text = fs::read_to_string(project.path("process-status.json")).unwrap();
    assert!(text.starts_with("{\"coder\": {\"status\":\"idle\", \"n\": 1.0},"), "{text}");
}

#[test]
fn a_second_watch_is_refused_while_the_first_one_runs() {
    let project = Project::new();
    let first = project.watch(&[]);
    let error = refused(&["watch", project.root()], &[]);
    assert!(
        error.contains("another watch runs on this project and uses") && error.contains(".parlor-cursor"),
        "{error}"
    );
    assert_eq!(project.status()["status"], "running");
    assert_eq!(first.stop(), [""; 0]);
    project.watch(&[]).stop();
}

#[test]
fn a_damaged_cursor_is_refused_until_a_flag_replaces_it() {
    let project = Project::with_chat("[a-to-b]: one\n");
    fs::write(project.path(".parlor-cursor"), "\u{1b}[2J{").unwrap();
    let error = refused(&["watch", project.root()], &[]);
    assert!(error.contains("damaged") && error.contains("--from-start"), "{error}");
    let watch = project.watch(&["--from-start"]);
    assert_eq!(watch.next_text(), "one");
    watch.stop();
    project.watch(&[]).stop();
}

#[test]
fn a_closed_output_ends_the_watch_also_without_new_lines() {
    let project = Project::new();
    for with_line in [false, true] {
        let mut command = std::process::Command::new(crate::scene::PARLOR);
        command.args(["watch", project.root()]);
        let mut process = command
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let notices = super::lines_of(process.stderr.take().unwrap());
        assert!(notices.recv_timeout(TIMEOUT).unwrap().contains("watching"));
        drop(process.stdout.take());
        if with_line {
            project.append("[a-to-b]: one\n");
        }
        assert!(process.wait().unwrap().success());
        assert_eq!(notices.iter().collect::<Vec<_>>(), [""; 0]);
    }
    // The line that could not be printed is printed by the next watch.
    let watch = project.watch(&[]);
    assert_eq!(watch.next_text(), "one");
    watch.stop();
}

#[test]
fn late_continuations_and_long_lines_are_reported_with_their_line_numbers() {
    let project = Project::new();
    let watch = project.watch(&[]);
    project.append("[a-to-b]: one\n");
    assert_eq!(watch.next_text(), "one");
    project.append("  [x-to-y]: late\n");
    let notice = watch.notice();
    assert!(notice.contains("line 2 ") && notice.contains("already printed"), "{notice}");
    // 64 MiB in one line: memory stays bounded.
    let part = vec![b'x'; 1024 * 1024];
    for _ in 0..64 {
        project.append(&part);
    }
    project.append("\n[a-to-b]: after\n");
    assert_eq!(watch.next_text(), "after");
    let notice = watch.notice();
    assert!(notice.contains("line 3 ") && notice.contains(&(64 * 1024 * 1024).to_string()), "{notice}");
    let status = fs::read_to_string(format!("/proc/{}/status", watch.process.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 64 * 1024, "{peak} kB");
    watch.stop();
}

#[test]
fn notices_contain_no_control_characters() {
    let directory = tempfile::tempdir().unwrap();
    let hostile = directory.path().join("\u{1b}]0;x\u{7}");
    fs::create_dir_all(hostile.join(".workplace")).unwrap();
    let watch = Watch::start(&hostile, &[]);
    let notice = watch.notice();
    assert!(
        notice.contains("watching") && notice.contains("\\u{1b}") && !notice.contains('\u{1b}'),
        "{notice}"
    );
    watch.stop();
}
