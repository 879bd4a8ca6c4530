//! A project with a workplace, and a follower whose time the test controls.

use parlor_chatmd::{Batch, Cursor, Follower, Notice, ReadMessage, Start, Workplace};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub struct Project {
    directory: tempfile::TempDir,
}

impl Project {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join(".workplace")).unwrap();
        Self { directory }
    }

    /// Creates a project whose `chat.md` has this content.
    pub fn with_chat(content: impl AsRef<[u8]>) -> Self {
        let project = Self::new();
        fs::write(project.chat(), content).unwrap();
        project
    }

    pub fn root(&self) -> &Path {
        self.directory.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root().join(".workplace").join(name)
    }

    pub fn chat(&self) -> PathBuf {
        self.path("chat.md")
    }

    pub fn workplace(&self) -> Workplace {
        Workplace::open(self.root()).unwrap()
    }

    pub fn append(&self, text: impl AsRef<[u8]>) {
        let mut file = OpenOptions::new().append(true).create(true).open(self.chat()).unwrap();
        file.write_all(text.as_ref()).unwrap();
    }

    /// Replaces `chat.md` by a new file, as editors do.
    pub fn replace(&self, content: impl AsRef<[u8]>) {
        fs::write(self.path("chat.md.new"), content).unwrap();
        fs::rename(self.path("chat.md.new"), self.chat()).unwrap();
    }

    pub fn follow(&self, start: Start) -> Tester {
        Tester { follower: Follower::open(self.workplace(), start).unwrap(), now: Instant::now() }
    }

    pub fn resume(&self, cursor: Cursor) -> Tester {
        self.follow(Start::Cursor(Some(cursor)))
    }
}

/// A follower with a clock of its own.
pub struct Tester {
    pub follower: Follower,
    pub now: Instant,
}

impl Tester {
    /// Polls until nothing is left to read, without letting time pass.
    pub fn glance(&mut self) -> Batch {
        let mut all = Batch::default();
        loop {
            let batch = self.follower.poll(self.now);
            all.messages.extend(batch.messages);
            all.notices.extend(batch.notices);
            all.wake_at = batch.wake_at;
            if !batch.more {
                return all;
            }
        }
    }

    /// Polls and lets time pass until the follower waits for nothing but changes.
    pub fn settle(&mut self) -> Batch {
        let mut all = Batch::default();
        loop {
            let batch = self.glance();
            all.messages.extend(batch.messages);
            all.notices.extend(batch.notices);
            match batch.wake_at {
                Some(at) => self.now = self.now.max(at),
                None => return all,
            }
        }
    }

    pub fn pass(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
    }

    /// Settles and returns the messages as text, with their line numbers.
    pub fn texts(&mut self) -> Vec<String> {
        texts(&self.settle().messages)
    }

    pub fn notices(&mut self) -> Vec<Notice> {
        self.settle().notices
    }
}

/// Returns each message as `LINE TEXT`.
pub fn texts(messages: &[ReadMessage]) -> Vec<String> {
    messages.iter().map(|message| format!("{} {}", message.line_number, message.line.text())).collect()
}
