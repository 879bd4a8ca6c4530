//! Tests of SQLite in WAL mode on the faulty disk: another process writes and is killed, then its reported
//! commits are looked up.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use parlor_testkit::faultfs::{Errno, FaultyDirectory};

#[test]
fn a_reader_in_another_process_sees_each_commit() {
    let Some(directory) = FaultyDirectory::new_or_skip() else { return };
    let mut writer = Writer::start(&directory, "full");
    for row in 1..=20 {
        assert_eq!(writer.commit(), row.to_string());
        assert_eq!(read(&directory), Found { rows: row, last: row });
    }
}

#[test]
fn committed_rows_survive_a_power_loss_when_synchronous_is_full() {
    let Some(directory) = FaultyDirectory::new_or_skip() else { return };
    let mut committed = 0;
    for round in 0..6 {
        let mut writer = Writer::start(&directory, "full");
        // Enough commits that some rounds checkpoint the write-ahead log into the database.
        committed = (0..400).map(|_| writer.commit()).last().unwrap().parse().unwrap();
        drop(writer);
        match round % 2 {
            0 => directory.disk.drop_unsynced(),
            _ => directory.disk.tear_unsynced(round),
        }
        assert_eq!(read(&directory), Found { rows: committed, last: committed });
    }
    assert_eq!(committed, 2400);
}

#[test]
fn committed_rows_are_lost_in_a_power_loss_when_synchronous_is_off() {
    let Some(directory) = FaultyDirectory::new_or_skip() else { return };
    let mut writer = Writer::start(&directory, "full");
    writer.commit();
    drop(writer);
    let mut writer = Writer::start(&directory, "off");
    let committed: u64 = (0..50).map(|_| writer.commit()).last().unwrap().parse().unwrap();
    drop(writer);
    directory.disk.drop_unsynced();
    assert_eq!(committed, 51);
    assert_eq!(read(&directory), Found { rows: 1, last: 1 });
}

#[test]
fn a_commit_whose_fsync_fails_is_not_reported() {
    let Some(directory) = FaultyDirectory::new_or_skip() else { return };
    let mut writer = Writer::start(&directory, "full");
    let last = (0..3).map(|_| writer.commit()).last().unwrap().parse().unwrap();
    directory.disk.fail_fsyncs(Errno::EIO, 0);
    assert!(writer.commit().contains("disk I/O error"));
    drop(writer);
    directory.disk.heal();
    directory.disk.drop_unsynced();
    assert_eq!(read(&directory), Found { rows: last, last });
}

#[test]
fn a_full_disk_rejects_commits_until_there_is_space() {
    let Some(directory) = FaultyDirectory::new_or_skip() else { return };
    let mut writer = Writer::start(&directory, "full");
    assert_eq!(writer.commit(), "1");
    directory.disk.capacity(directory.disk.used());
    assert!(writer.commit().contains("full"));
    directory.disk.heal();
    assert_eq!(writer.commit(), "2");
    drop(writer);
    directory.disk.drop_unsynced();
    assert_eq!(read(&directory), Found { rows: 2, last: 2 });
}

#[derive(Debug, PartialEq)]
struct Found {
    rows: u64,
    last: u64,
}

fn read(directory: &FaultyDirectory) -> Found {
    let output = probe().arg("read").arg(directory.file("db")).output().unwrap();
    let text = str::from_utf8(&output.stdout).unwrap();
    let mut words = text.split_whitespace();
    let mut number = || words.next().unwrap_or_else(|| panic!("{output:?}")).parse().unwrap();
    let found = Found { rows: number(), last: number() };
    assert_eq!(words.next(), Some("ok"), "integrity");
    found
}

fn probe() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_disk-probe"));
    command.stderr(Stdio::piped());
    command
}

/// A writing process. Dropping it sends SIGKILL.
struct Writer {
    process: Child,
    requests: ChildStdin,
    reports: std::io::Lines<BufReader<ChildStdout>>,
}

impl Writer {
    fn start(directory: &FaultyDirectory, synchronous: &str) -> Self {
        let mut process = probe()
            .arg("write")
            .arg(directory.file("db"))
            .arg(synchronous)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let requests = process.stdin.take().unwrap();
        let reports = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, requests, reports }
    }

    fn commit(&mut self) -> String {
        writeln!(self.requests).unwrap();
        self.reports.next().expect("the writer prints a line per commit").unwrap()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}
