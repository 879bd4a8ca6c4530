//! Appends mail to the files of the mailboxes, and imports files of other programs.

use super::line::{self, Status};
use super::unmatched::{self, FILE};
use super::{MESSAGES, names};
use crate::scan::Problem;
use crate::state::KnownFile;
use parlor_engine::Hub;
use parlor_model::command::{ImportMail, ImportedMessage, ReceivedMail};
use parlor_model::query::ListNewMail;
use parlor_model::{Caller, Mailbox, MessageId, Refusal, Seq};
use parlor_safe_files::Directory;
use rustix::fs::{Mode, OFlags};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;

/// Maximum number of messages that are read from the store at once, and of one import command.
const PAGE: usize = 500;
/// Maximum size of a file that is imported.
const MAX_IMPORT_BYTES: u64 = 256 * 1024 * 1024;
/// Longer lines are skipped.
const MAX_LINE_BYTES: u64 = 4 * 1024 * 1024;
const MAX_FILES: usize = 100_000;

/// The files of messages that were imported, or that the hub created.
pub type MirrorState = BTreeMap<String, KnownFile>;

#[derive(Debug)]
pub struct Mirror {
    directory: Directory,
    mailboxes: HashMap<Mailbox, Mirrored>,
    /// The file of messages that no mailbox received; `None` until it is compared with the store.
    unmatched: Option<Mirrored>,
}

/// State of the file of a mailbox.
#[derive(Debug, Default)]
struct Mirrored {
    /// Position of the last message that was appended.
    through: Seq,
    /// Messages whose last line is pending.
    pending: HashSet<MessageId>,
    /// Messages in the file that the hub did not append in the order of their positions.
    known: HashSet<MessageId>,
}

/// A file that was read completely.
#[derive(Debug, Default)]
struct FileContent {
    messages: Vec<ImportedMessage>,
    /// Number of the first line that cannot be imported, and the reason.
    first_skipped: Option<(usize, &'static str)>,
    skipped: usize,
    bytes: u64,
}

impl Mirror {
    pub fn open(root: &Directory) -> io::Result<Self> {
        Ok(Self { directory: root.create_below(MESSAGES)?, mailboxes: HashMap::new(), unmatched: None })
    }

    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Imports the files that the hub does not know yet. `exists` tells whether a mailbox exists.
    pub async fn import(
        &mut self,
        hub: &Hub,
        state: &mut MirrorState,
        exists: impl Fn(&Mailbox) -> Existence,
        problems: &mut BTreeSet<Problem>,
    ) -> Result<(), Refusal> {
        let names = match self.directory.names(MAX_FILES) {
            Ok(names) => names,
            Err(error) => {
                let path = self.directory.path().to_owned();
                problems.insert(Problem { path, reason: error.to_string() });
                return Ok(());
            }
        };
        for name in &names {
            if !name.ends_with(".jsonl") || state.contains_key(name) {
                continue;
            }
            let mut problem = |reason: String| {
                problems.insert(Problem { path: self.directory.path().join(name), reason });
            };
            let mailbox = match (name == FILE, one_mailbox(name, &exists)) {
                (true, _) => None,
                (false, Ok(mailbox)) => Some(mailbox),
                (false, Err(reason)) => {
                    problem(reason.into());
                    continue;
                }
            };
            let (directory, file) = (self.directory.clone(), name.clone());
            let read = tokio::task::spawn_blocking(move || read_file(&directory, &file)).await;
            let content = match read.unwrap_or_else(|_| Err(io::ErrorKind::Other.into())) {
                Ok(content) => content,
                Err(error) => {
                    problem(error.to_string());
                    continue;
                }
            };
            if let Some((line, reason)) = content.first_skipped {
                let count = content.skipped;
                let reason = format!("{count} lines were not imported; the first is line {line}: {reason}");
                tracing::warn!(path = %self.directory.path().join(name).display(), "{reason}");
            }
            let mut added = 0;
            let mut skipped = 0;
            for messages in content.messages.chunks(PAGE) {
                let command = |messages: &[ImportedMessage]| ImportMail {
                    mailbox: mailbox.clone(),
                    messages: messages.to_vec(),
                };
                match hub.execute(&Caller::OPERATOR, command(messages)).await {
                    Ok(count) => added += count,
                    // A field of some message is not accepted: the others are imported.
                    Err(Refusal::Invalid(_)) => {
                        for message in messages {
                            let one = command(std::slice::from_ref(message));
                            match hub.execute(&Caller::OPERATOR, one).await {
                                Ok(count) => added += count,
                                Err(Refusal::Invalid(_)) => skipped += 1,
                                Err(refusal) => return Err(refusal),
                            }
                        }
                    }
                    Err(refusal) => return Err(refusal),
                }
            }
            tracing::info!(file = name, added, skipped, "messages of a file were imported");
            state.insert(name.clone(), KnownFile { mailbox: mailbox.clone(), imported_bytes: content.bytes });
            match &mailbox {
                Some(mailbox) => drop(self.mailboxes.remove(mailbox)),
                None => self.unmatched = None,
            }
        }
        Ok(())
    }

    pub fn path_of(&self, mailbox: &Mailbox) -> PathBuf {
        self.directory.path().join(names::file_of(mailbox))
    }

    /// Whether the file of a mailbox was compared with the store since the hub started.
    pub fn is_compared(&self, mailbox: &Mailbox) -> bool {
        self.mailboxes.contains_key(mailbox)
    }

    /// Appends the new messages of a mailbox, and the settled ones again with their new status. After an error, the next
    /// call compares the mailbox with its file.
    pub async fn append(
        &mut self,
        hub: &Hub,
        state: &mut MirrorState,
        mailbox: &Mailbox,
        settled: &BTreeSet<MessageId>,
    ) -> io::Result<()> {
        let appended = self.append_pages(hub, state, mailbox, settled).await;
        if appended.is_err() {
            self.mailboxes.remove(mailbox);
        }
        appended
    }

    async fn append_pages(
        &mut self,
        hub: &Hub,
        state: &mut MirrorState,
        mailbox: &Mailbox,
        settled: &BTreeSet<MessageId>,
    ) -> io::Result<()> {
        let mut also: Vec<MessageId> = settled.iter().cloned().collect();
        if !self.mailboxes.contains_key(mailbox) {
            let mirrored = self.read(state, mailbox).await?;
            // Their status may have changed while the hub did not run.
            also.extend(mirrored.pending.iter().filter(|id| !settled.contains(*id)).cloned());
            self.mailboxes.insert(mailbox.clone(), mirrored);
        }
        let file = names::file_of(mailbox);
        let mirrored = self.mailboxes.get_mut(mailbox).expect("it was inserted above");
        also.retain(|id| mirrored.pending.contains(id));
        let mut also = also.chunks(PAGE);
        loop {
            let also = also.next().unwrap_or_default();
            let query = ListNewMail {
                mailbox: mailbox.clone(),
                after: mirrored.through,
                limit: PAGE,
                also: also.to_vec(),
            };
            let mail = hub.read(&Caller::OPERATOR, query).await;
            let mail = mail.map_err(|_| io::Error::other("the mailbox cannot be read"))?;
            if mail.is_empty() && also.is_empty() {
                return Ok(());
            }
            let lines = mirrored.take(&mail, also.len());
            if lines.is_empty() {
                continue;
            }
            // Recorded before the first line, so that the file is never taken for one of another program.
            state
                .entry(file.clone())
                .or_insert_with(|| KnownFile { mailbox: Some(mailbox.clone()), imported_bytes: 0 });
            let (directory, name) = (self.directory.clone(), file.clone());
            let appended =
                tokio::task::spawn_blocking(move || directory.append(&name, lines.as_bytes())).await;
            appended.unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))?;
        }
    }

    /// Whether the file of messages that no mailbox received was compared with the store since the hub started.
    pub fn is_unmatched_compared(&self) -> bool {
        self.unmatched.is_some()
    }

    pub fn path_of_unmatched(&self) -> PathBuf {
        self.directory.path().join(FILE)
    }

    /// Appends the new messages that no mailbox received. After an error, the next call compares the file with the store.
    pub async fn append_unmatched(&mut self, hub: &Hub, state: &mut MirrorState) -> io::Result<()> {
        let mut mirrored = match self.unmatched.take() {
            Some(mirrored) => mirrored,
            None => {
                let imported_bytes = state.get(FILE).map_or(0, |known| known.imported_bytes);
                self.read_files(vec![(FILE.to_owned(), imported_bytes)]).await?
            }
        };
        let letters = unmatched::newer(hub, mirrored.through).await?;
        for letters in letters.chunks(PAGE) {
            // Imported messages are in the file already.
            let new = letters.iter().filter(|letter| !mirrored.known.contains(&letter.message.id));
            let lines: String =
                new.map(|letter| line::render_unmatched(&letter.message, &letter.reason)).collect();
            if !lines.is_empty() {
                // Recorded before the first line, so that the file is never taken for one of another program.
                state
                    .entry(FILE.to_owned())
                    .or_insert_with(|| KnownFile { mailbox: None, imported_bytes: 0 });
                let directory = self.directory.clone();
                let appended =
                    tokio::task::spawn_blocking(move || directory.append(FILE, lines.as_bytes())).await;
                appended.unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))?;
            }
            mirrored.through = letters.last().map_or(mirrored.through, |letter| letter.message.seq);
        }
        self.unmatched = Some(mirrored);
        Ok(())
    }

    /// Compares the whole mailbox with its file when it is mirrored next: its messages were moved from another mailbox.
    pub async fn compare_from_start(&mut self, state: &MirrorState, mailbox: &Mailbox) -> io::Result<()> {
        // As if all lines were those of another hub.
        let own =
            (names::file_of(mailbox), KnownFile { mailbox: Some(mailbox.clone()), imported_bytes: u64::MAX });
        let state = state.iter().map(|(name, known)| (name.clone(), known.clone())).chain([own]).collect();
        let mirrored = self.read(&state, mailbox).await?;
        self.mailboxes.insert(mailbox.clone(), mirrored);
        Ok(())
    }

    async fn read(&self, state: &MirrorState, mailbox: &Mailbox) -> io::Result<Mirrored> {
        let own = names::file_of(mailbox);
        let known =
            state.iter().filter(|(name, known)| known.mailbox.as_ref() == Some(mailbox) && **name != own);
        let mut files: Vec<(String, u64)> =
            known.map(|(name, known)| (name.clone(), known.imported_bytes)).collect();
        let imported_bytes = state.get(&own).map_or(0, |known| known.imported_bytes);
        files.push((own, imported_bytes));
        self.read_files(files).await
    }

    async fn read_files(&self, files: Vec<(String, u64)>) -> io::Result<Mirrored> {
        let directory = self.directory.clone();
        let read = tokio::task::spawn_blocking(move || {
            let mut mirrored = Mirrored::default();
            for (name, imported_bytes) in files {
                mirrored.read_file(&directory, &name, imported_bytes)?;
            }
            Ok(mirrored)
        });
        read.await.unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
    }
}

/// Whether a mailbox exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existence {
    No,
    /// The agent exists, but not the session.
    Agent,
    Yes,
}

/// The mailbox that a file belongs to.
fn one_mailbox(file: &str, exists: impl Fn(&Mailbox) -> Existence) -> Result<Mailbox, &'static str> {
    let candidates = names::mailboxes_of(file);
    if candidates.is_empty() {
        return Err("it was not imported: its name names no mailbox");
    }
    for wanted in [Existence::Yes, Existence::Agent] {
        let mut found = candidates.iter().filter(|mailbox| exists(mailbox) == wanted);
        match (found.next(), found.next()) {
            (Some(mailbox), None) => return Ok(mailbox.clone()),
            (Some(_), Some(_)) => return Err("it was not imported: its name names several mailboxes"),
            (None, _) => {}
        }
    }
    Err("it was not imported: its agent does not exist")
}

impl Mirrored {
    /// Reads which messages a file has. Positions before `imported_bytes` are those of another hub.
    fn read_file(&mut self, directory: &Directory, name: &str, imported_bytes: u64) -> io::Result<()> {
        let mut offset = 0;
        each_line(directory, name, |line| {
            let is_own = offset >= imported_bytes;
            offset += line.map_or(0, |line| line.len() as u64) + 1;
            let Some(written) = line.and_then(|line| std::str::from_utf8(line).ok()).and_then(line::written)
            else {
                return;
            };
            match written.status {
                Status::Pending => self.pending.insert(written.id.clone()),
                Status::Delivered | Status::Dead => self.pending.remove(&written.id),
            };
            match is_own {
                true => self.through = self.through.max(Seq(written.seq)),
                false => drop(self.known.insert(written.id)),
            }
        })
    }

    /// The lines for these messages, of which the first ones, at most `also`, were read because they are settled.
    fn take(&mut self, mail: &ReceivedMail, also: usize) -> String {
        let mut lines = String::new();
        for (index, (message, delivery)) in mail.iter().enumerate() {
            let is_settled = Status::of(delivery.state) != Status::Pending;
            if index < also && message.seq <= self.through && self.pending.contains(&message.id) {
                if is_settled {
                    self.pending.remove(&message.id);
                    lines.push_str(&line::render(message, delivery));
                }
                continue;
            }
            if message.seq <= self.through {
                continue;
            }
            self.through = message.seq;
            // Imported messages are in the file already.
            if self.known.remove(&message.id) {
                if is_settled && self.pending.remove(&message.id) {
                    lines.push_str(&line::render(message, delivery));
                }
                continue;
            }
            if !is_settled {
                self.pending.insert(message.id.clone());
            }
            lines.push_str(&line::render(message, delivery));
        }
        lines
    }
}

/// Reads the messages of a file of another program. The last line of an id counts.
fn read_file(directory: &Directory, name: &str) -> io::Result<FileContent> {
    let file = directory.open_file(name, OFlags::RDONLY, Mode::empty())?;
    let size = file.metadata()?.len();
    if size > MAX_IMPORT_BYTES {
        let message = format!("it was not imported: it is larger than {MAX_IMPORT_BYTES} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    let mut content = FileContent { bytes: size, ..FileContent::default() };
    let mut places: HashMap<MessageId, usize> = HashMap::new();
    let mut number = 0;
    each_line(directory, name, |line| {
        number += 1;
        let text = match line {
            Some(line) if line.trim_ascii().is_empty() => return,
            Some(line) => std::str::from_utf8(line).map_err(|_| "it is not UTF-8 text"),
            None => Err("it is too long"),
        };
        match text.and_then(line::imported) {
            Ok(message) => match places.get(&message.id) {
                Some(place) => content.messages[*place] = message,
                None => {
                    places.insert(message.id.clone(), content.messages.len());
                    content.messages.push(message);
                }
            },
            Err(reason) => {
                content.skipped += 1;
                content.first_skipped.get_or_insert((number, reason));
            }
        }
    })?;
    Ok(content)
}

/// Calls `visit` with each line, without its line feed; `None` for a line that is too long. A file that does not exist has
/// no lines.
fn each_line(directory: &Directory, name: &str, mut visit: impl FnMut(Option<&[u8]>)) -> io::Result<()> {
    let file = match directory.open_file(name, OFlags::RDONLY, Mode::empty()) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if line.pop_if(|byte| *byte == b'\n').is_none() && line.len() as u64 >= MAX_LINE_BYTES {
            skip_line(&mut reader)?;
            visit(None);
        } else {
            visit(Some(&line));
        }
    }
}

fn skip_line(reader: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok(());
        }
        match buffer.iter().position(|byte| *byte == b'\n') {
            Some(end) => {
                reader.consume(end + 1);
                return Ok(());
            }
            None => {
                let length = buffer.len();
                reader.consume(length);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_model::AgentId;
    use std::fs;

    fn directory() -> (tempfile::TempDir, Directory) {
        let path = tempfile::tempdir().unwrap();
        let directory = Directory::open(path.path()).unwrap();
        (path, directory)
    }

    fn line_of(id: &str, status: &str) -> String {
        format!(r#"{{"id":"{id}","from":"a","path":"b","timestamp":1,"status":"{status}"}}"#)
    }

    #[test]
    fn corrupt_lines_are_skipped_and_the_last_line_of_an_id_counts() {
        let (path, directory) = directory();
        let lines = [
            &line_of("m1", "pending"),
            "{broken",
            "",
            &line_of("m2", "pending"),
            &line_of("m1", "delivered"),
        ];
        fs::write(path.path().join("x.jsonl"), lines.join("\n")).unwrap();
        let content = read_file(&directory, "x.jsonl").unwrap();
        let messages: Vec<_> =
            content.messages.iter().map(|message| (message.id.as_str(), message.is_delivered)).collect();
        assert_eq!(messages, [("m1", true), ("m2", false)]);
        assert_eq!((content.skipped, content.first_skipped), (1, Some((2, "it is no message"))));
    }

    #[test]
    fn a_file_is_imported_for_the_mailbox_that_exists() {
        let of = |agent: &str| Mailbox::of(AgentId::stored(agent));
        let exists = |mailbox: &Mailbox| match mailbox.agent.as_str() {
            "researcher/analyzer" | "x--y" | "x/y" => Existence::Yes,
            _ => Existence::No,
        };
        assert_eq!(one_mailbox("agent--researcher--analyzer.jsonl", exists), Ok(of("researcher/analyzer")));
        assert!(one_mailbox("agent--x--y.jsonl", exists).unwrap_err().contains("several"));
        assert!(one_mailbox("agent--never.jsonl", exists).unwrap_err().contains("does not exist"));
        assert!(one_mailbox("other.jsonl", exists).unwrap_err().contains("names no mailbox"));
    }

    #[test]
    fn positions_of_another_hub_do_not_count() {
        let (path, directory) = directory();
        let foreign = r#"{"id":"m1","status":"pending","seq":900}"#;
        let own = r#"{"id":"m2","status":"delivered","seq":7}"#;
        fs::write(path.path().join("x.jsonl"), format!("{foreign}\n{own}\n")).unwrap();
        let mut mirrored = Mirrored::default();
        mirrored.read_file(&directory, "x.jsonl", foreign.len() as u64 + 1).unwrap();
        assert_eq!(mirrored.through, Seq(7));
        assert!(mirrored.known.contains(&MessageId::stored("m1")) && mirrored.pending.len() == 1);
    }
}
