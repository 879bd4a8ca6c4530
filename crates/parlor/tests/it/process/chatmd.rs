//! Tests of `parlor watch` and `parlor chatmd` as processes.

mod commands;
mod recorded;
mod restarts;
mod watching;

use crate::scene::PARLOR;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// A test that waits longer has failed.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A project with a directory `.workplace`.
struct Project(tempfile::TempDir);

impl Project {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join(".workplace")).unwrap();
        Self(directory)
    }

    fn with_chat(content: &str) -> Self {
        let project = Self::new();
        fs::write(project.chat(), content).unwrap();
        project
    }

    fn root(&self) -> &str {
        self.0.path().to_str().unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(".workplace").join(name)
    }

    fn chat(&self) -> PathBuf {
        self.path("chat.md")
    }

    fn append(&self, text: impl AsRef<[u8]>) {
        append(&self.chat(), text.as_ref());
    }

    fn status(&self) -> Value {
        let text = fs::read_to_string(self.path("process-status.json")).unwrap();
        serde_json::from_str::<Value>(&text).unwrap()["server"].clone()
    }

    /// Starts a watch and waits until it follows the file.
    fn watch(&self, arguments: &[&str]) -> Watch {
        let watch = Watch::start(self.0.path(), arguments);
        let first = watch.notice();
        assert!(first.contains("watching"), "{first}");
        watch
    }
}

fn append(path: &Path, text: &[u8]) {
    let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
    file.write_all(text).unwrap();
}

/// A running `parlor watch`.
struct Watch {
    process: Child,
    lines: Receiver<String>,
    notices: Receiver<String>,
}

impl Watch {
    fn start(project: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(PARLOR);
        command.arg("watch").arg(project).args(arguments);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = lines_of(process.stdout.take().unwrap());
        let notices = lines_of(process.stderr.take().unwrap());
        Self { process, lines, notices }
    }

    /// Returns the next printed object.
    fn next(&self) -> Value {
        serde_json::from_str(&self.lines.recv_timeout(TIMEOUT).unwrap()).unwrap()
    }

    fn next_text(&self) -> String {
        self.next()["message"].as_str().unwrap().to_owned()
    }

    /// Returns the next line of standard error.
    fn notice(&self) -> String {
        self.notices.recv_timeout(TIMEOUT).unwrap()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Waits for the end and returns the exit status and all remaining output lines.
    fn wait(mut self) -> (ExitStatus, Vec<String>) {
        let status = self.process.wait().unwrap();
        (status, self.lines.iter().collect())
    }

    /// Ends the watch in an orderly way and returns the remaining texts.
    fn stop(self) -> Vec<String> {
        self.signal(Signal::TERM);
        let (status, lines) = self.wait();
        assert!(status.success(), "{status}");
        let text = |line: String| {
            serde_json::from_str::<Value>(&line).unwrap()["message"].as_str().unwrap().to_owned()
        };
        lines.into_iter().map(text).collect()
    }
}

/// Passes each line of a pipe to the test.
fn lines_of(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines() {
            if sender.send(line.unwrap()).is_err() {
                break;
            }
        }
    });
    lines
}
