//! Random sequences of operations on the file: no complete line is lost or repeated.
//!
//! A *generation* is the content of one file between two truncations: a truncated, rewritten, replaced or
//! recreated file starts a new one. The guarantee, as this test checks it:
//!
//! - Each complete message of a generation is returned exactly once, in order and with its real line number,
//!   whatever was appended in which parts, and however often the follower was restarted with its cursor.
//! - Exceptions, in which a message is returned at most once: it was truncated away before the follower read
//!   it; its file appeared and disappeared between two polls; or its file was deleted, or was replaced twice,
//!   while no follower was running.
//! - A message is repeated only after a restart with a cursor that was saved before the message was returned.
//! - A rewrite that gives the file the size that it had at the last poll may go unnoticed, so the sequences
//!   contain none. Neither do they contain a write to lines that were read already.

use crate::scene::{Project, Tester};
use parlor_chatmd::{Cursor, Start, append, archive};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};
use std::fs::{self, OpenOptions};

#[derive(Clone, Debug)]
enum Operation {
    /// A complete message with continuation lines.
    Append {
        continuations: usize,
    },
    /// The same through the function that `parlor chatmd append` uses.
    AppendLocked {
        continuations: usize,
    },
    /// A part of a line, without its end.
    AppendPart,
    /// A line that is no message, or an empty one.
    AppendComment {
        empty: bool,
    },
    /// Ends an incomplete line.
    EndLine,
    /// Opens the file with `O_TRUNC` and writes messages.
    Rewrite {
        messages: usize,
    },
    /// Cuts complete lines off.
    Truncate {
        percent: usize,
    },
    /// Takes back the incomplete last line.
    TakeBack,
    /// Renames a new file over the old one.
    Replace {
        messages: usize,
    },
    /// Moves the file to another name in the workplace; a new one is created by the next append.
    MoveAway,
    Delete,
    Archive,
    /// One look at the file, without letting time pass.
    Glance,
    /// Reads until nothing is left.
    Settle,
    Stop,
    /// Stops without saving: the cursor is the one of the last settling.
    Kill,
}

fn operation() -> impl Strategy<Value = Operation> {
    use Operation::*;
    prop_oneof![
        8 => (0..3_usize).prop_map(|continuations| Append { continuations }),
        3 => (0..3_usize).prop_map(|continuations| AppendLocked { continuations }),
        3 => Just(AppendPart),
        2 => any::<bool>().prop_map(|empty| AppendComment { empty }),
        2 => Just(EndLine),
        2 => (0..4_usize).prop_map(|messages| Rewrite { messages }),
        1 => (0..100_usize).prop_map(|percent| Truncate { percent }),
        1 => Just(TakeBack),
        2 => (0..4_usize).prop_map(|messages| Replace { messages }),
        1 => Just(MoveAway),
        1 => Just(Delete),
        1 => Just(Archive),
        5 => Just(Glance),
        5 => Just(Settle),
        2 => Just(Stop),
        1 => Just(Kill),
    ]
}

/// Content of the file from one truncation or replacement to the next.
#[derive(Clone, Debug, Default)]
struct Generation {
    content: Vec<u8>,
    /// Number of bytes whose messages must have been read, if the generation has ended.
    certain: Option<usize>,
    /// A poll found this file at the path.
    seen: bool,
    /// The file still exists in the workplace.
    findable: bool,
}

impl Generation {
    /// Returns the text of each complete message with its line number and the offset behind its lines.
    fn messages(&self) -> Vec<(String, u64, usize)> {
        let mut found: Vec<(String, u64, usize)> = Vec::new();
        let (mut offset, mut open) = (0, false);
        for (number, line) in self.content.split_inclusive(|byte| *byte == b'\n').enumerate() {
            let Some(line) = line.strip_suffix(b"\n") else { break };
            offset += line.len() + 1;
            let line = std::str::from_utf8(line).unwrap();
            let text = line.strip_prefix("[a-to-b]:").map(str::trim);
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                found.push((text.to_owned(), number as u64 + 1, offset));
                open = true;
            } else if !line.starts_with(' ') {
                open = false;
            } else if open {
                found.last_mut().unwrap().2 = offset;
            }
        }
        found
    }
}

struct Model {
    project: Project,
    tester: Option<Tester>,
    saved: Cursor,
    /// All generations; the last one is at the path, if `exists`.
    generations: Vec<Generation>,
    exists: bool,
    /// Index of the generation that the follower had reached when it was last settled, and its length then.
    settled: (usize, usize),
    returned: Vec<(String, u64)>,
    /// Generation and offset of the last returned message, and the generations before it.
    last: (String, u64),
    finished: HashSet<String>,
    /// Number of returned messages when `saved` was saved.
    returned_at_save: usize,
    /// Messages that may be repeated, because the follower was killed after it had returned them.
    repeatable: HashMap<String, usize>,
    next_id: usize,
}

impl Model {
    fn new() -> Self {
        let project = Project::with_chat("");
        let tester = project.follow(Start::Beginning);
        let saved = tester.follower.cursor();
        let first = Generation { seen: true, ..Generation::default() };
        Self {
            project,
            tester: Some(tester),
            saved,
            generations: vec![first],
            exists: true,
            settled: (0, 0),
            returned: Vec::new(),
            last: (String::new(), 0),
            finished: HashSet::new(),
            returned_at_save: 0,
            repeatable: HashMap::new(),
            next_id: 0,
        }
    }

    fn id(&mut self) -> usize {
        self.next_id += 1;
        self.next_id
    }

    fn current(&mut self) -> &mut Generation {
        self.generations.last_mut().unwrap()
    }

    fn lines(&mut self, messages: usize, continuations: usize) -> String {
        let mut text = String::new();
        for _ in 0..messages {
            text += &format!("[a-to-b]: message {}\n", self.id());
            for _ in 0..continuations {
                text += &format!("  continuation {}\n", self.id());
            }
        }
        text
    }

    /// A file appears at the path.
    fn begin(&mut self, content: &str) {
        self.generations.push(Generation { content: content.into(), ..Generation::default() });
        self.exists = true;
    }

    /// The current generation ends. `in_place`: its bytes are overwritten.
    fn end(&mut self, in_place: bool, findable: bool) {
        let (index, length) = self.settled;
        let is_current = index + 1 == self.generations.len();
        let read = if is_current { length } else { 0 };
        let running = self.tester.is_some();
        let current = self.current();
        let all = current.content.len();
        // A running follower holds the descriptor of every file that it has seen.
        let readable = !in_place && (running && current.seen || findable && read > 0);
        current.certain = Some(if readable { all } else { read });
        current.findable = findable;
    }

    fn append(&mut self, text: &str, locked: bool) {
        if !self.exists {
            self.begin("");
        }
        let mut text = text.to_owned();
        if locked {
            append(&self.project.workplace(), text.as_bytes(), false).unwrap();
            let content = &self.current().content;
            if content.last().is_some_and(|last| *last != b'\n') {
                text.insert(0, '\n');
            }
        } else {
            self.project.append(&text);
        }
        self.current().content.extend_from_slice(text.as_bytes());
        assert_eq!(fs::read(self.project.chat()).unwrap(), self.current().content);
    }

    fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Append { continuations } => {
                let text = self.lines(1, *continuations);
                self.append(&text, false);
            }
            Operation::AppendLocked { continuations } => {
                let text = self.lines(1, *continuations);
                self.append(&text, true);
            }
            Operation::AppendPart => {
                let text = format!("[a-to-b]: part {}", self.id());
                self.append(&text, false);
            }
            Operation::AppendComment { empty } => {
                let text = if *empty { "\n".to_owned() } else { format!("# comment {}\n", self.id()) };
                self.append(&text, false);
            }
            Operation::EndLine => self.append("\n", false),
            Operation::Rewrite { messages } => self.rewrite(*messages),
            Operation::Truncate { percent } => self.truncate(*percent),
            Operation::TakeBack => {
                if self.exists {
                    let current = self.current();
                    let complete =
                        current.content.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                    current.content.truncate(complete);
                    self.set_length(complete);
                }
            }
            Operation::Replace { messages } => {
                if self.exists {
                    self.end(false, false);
                }
                let text = self.lines(*messages, 1);
                self.project.replace(&text);
                self.begin(&text);
            }
            Operation::MoveAway if self.exists => {
                let name = format!("old-{}.md", self.id());
                fs::rename(self.project.chat(), self.project.path(&name)).unwrap();
                self.end(false, true);
                self.exists = false;
            }
            Operation::Delete if self.exists => {
                fs::remove_file(self.project.chat()).unwrap();
                self.end(false, false);
                self.exists = false;
            }
            Operation::Archive if self.exists && !self.current().content.is_empty() => {
                archive(&self.project.workplace(), "2026-01-01").unwrap().unwrap();
                self.end(false, true);
                self.begin("");
            }
            Operation::MoveAway | Operation::Delete | Operation::Archive => {}
            Operation::Glance => self.glance(),
            Operation::Settle => self.settle(),
            Operation::Stop => self.stop(true),
            Operation::Kill => self.stop(false),
        }
    }

    fn rewrite(&mut self, messages: usize) {
        let text = self.lines(messages, 0);
        if !self.exists || self.settled == (self.generations.len() - 1, text.len()) {
            return;
        }
        self.end(true, false);
        fs::write(self.project.chat(), &text).unwrap();
        let seen = self.current().seen;
        self.begin(&text);
        // The follower holds the descriptor of this file already.
        self.current().seen = seen;
    }

    fn truncate(&mut self, percent: usize) {
        let (index, length) = self.settled;
        if !self.exists || index + 1 != self.generations.len() {
            return;
        }
        // At least one complete line that the follower has read is removed; otherwise it notices nothing.
        let mut read = self.current().content.clone();
        read.truncate(length);
        let Some(last_line) = read.iter().rposition(|byte| *byte == b'\n') else { return };
        let length = last_line * percent / 100;
        let kept = String::from_utf8(self.current().content[..length].to_vec()).unwrap();
        self.end(true, false);
        self.set_length(length);
        let seen = self.current().seen;
        self.begin(&kept);
        self.current().seen = seen;
    }

    fn set_length(&self, length: usize) {
        OpenOptions::new().write(true).open(self.project.chat()).unwrap().set_len(length as u64).unwrap();
    }

    fn glance(&mut self) {
        if let Some(tester) = &mut self.tester {
            let read = tester.glance().messages;
            self.took(read);
            self.saw();
        }
    }

    fn settle(&mut self) {
        if let Some(tester) = &mut self.tester {
            let read = tester.settle().messages;
            self.saved = tester.follower.cursor();
            self.took(read);
            self.returned_at_save = self.returned.len();
            self.saw();
            if self.exists {
                self.settled = (self.generations.len() - 1, self.current().content.len());
            }
        } else {
            self.start();
            self.settle();
        }
    }

    fn took(&mut self, read: Vec<parlor_chatmd::ReadMessage>) {
        for message in read {
            let (generation, offset) = (message.cursor.generation, message.offset);
            if generation == self.last.0 {
                assert!(offset > self.last.1, "{} is out of order", message.line.message);
            } else {
                assert!(!self.finished.contains(&generation), "{} is out of order", message.line.message);
                self.finished.insert(std::mem::take(&mut self.last.0));
            }
            self.last = (generation, offset);
            self.returned.push((message.line.message, message.line_number));
        }
    }

    fn saw(&mut self) {
        if self.exists {
            self.current().seen = true;
        }
    }

    fn stop(&mut self, orderly: bool) {
        let Some(tester) = self.tester.take() else { return };
        if orderly {
            self.saved = tester.follower.cursor();
            self.returned_at_save = self.returned.len();
        } else {
            self.last = (String::new(), 0);
            self.finished.clear();
            for (text, _) in &self.returned[self.returned_at_save..] {
                *self.repeatable.entry(text.clone()).or_default() += 1;
            }
        }
        // A stopped follower has lost the descriptors of replaced files. Only the file of the cursor is found
        // again, if it still exists.
        let last = self.generations.len() - 1;
        let (settled, length) = self.settled;
        for (index, generation) in self.generations.iter_mut().enumerate().skip(settled) {
            let ended = generation.certain.is_some();
            let is_cursor_file = index == settled && length > 0;
            if ended && !(is_cursor_file && generation.findable) && (index < last || !self.exists) {
                let read = if index == settled { length } else { 0 };
                generation.certain = generation.certain.map(|certain| certain.min(read));
            }
        }
    }

    fn start(&mut self) {
        if self.tester.is_none() {
            self.tester = Some(self.project.resume(self.saved.clone()));
            if !self.exists {
                self.begin("");
            }
            self.saw();
        }
    }

    fn check(mut self) {
        self.settle();
        let mut expected: HashMap<String, (usize, usize, Vec<u64>)> = HashMap::new();
        for generation in &self.generations {
            let certain = generation.certain.unwrap_or(usize::MAX);
            for (text, line_number, end) in generation.messages() {
                let (at_least, at_most, lines) = expected.entry(text).or_default();
                *at_least += usize::from(end <= certain);
                *at_most += 1;
                lines.push(line_number);
            }
        }
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for (text, line_number) in &self.returned {
            let Some((_, _, lines)) = expected.get(text) else { panic!("{text:?} was never written") };
            assert!(lines.contains(line_number), "{text:?} is not in line {line_number}, but in {lines:?}");
            *counts.entry(text).or_default() += 1;
        }
        for (text, (at_least, at_most, _)) in &expected {
            let count = counts.get(text.as_str()).copied().unwrap_or(0);
            let repeats = self.repeatable.get(text).copied().unwrap_or(0);
            assert!(count >= *at_least, "{text:?} was lost: {count} < {at_least}");
            assert!(count <= at_most + repeats, "{text:?} was repeated: {count} > {at_most}");
        }
    }
}

proptest! {
    #![proptest_config(parlor_seed::proptest_config())]

    #[test]
    fn no_sequence_of_operations_loses_or_repeats_a_complete_line(
        operations in prop::collection::vec(operation(), 1..60),
    ) {
        let mut model = Model::new();
        for operation in &operations {
            model.apply(operation);
        }
        model.check();
    }
}
