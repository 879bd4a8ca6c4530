//! The mirror of conversation logs: `sessions/{id}.jsonl`, one line per entry.
//!
//! The store decides. Each line has the number of its entry, so that the file itself decides where the hub continues.

use parlor_engine::Hub;
use parlor_model::query::{EntryPage, ListConversation};
use parlor_model::{AgentId, Caller, ConversationEntry, SessionId};
use parlor_safe_files::Directory;
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::io::{self, Read, Seek, SeekFrom};

/// Maximum number of entries that are read at once.
const PAGE: usize = 500;
/// Bytes at the end of a file in which its last number is searched first.
const TAIL_BYTES: u64 = 256 * 1024;

/// Number of the last mirrored entry, by session. Sessions that were not mirrored since the hub started are not in it.
#[derive(Debug, Default)]
pub struct Conversations {
    through: HashMap<(AgentId, SessionId), u64>,
}

#[derive(Serialize)]
struct Line<'a> {
    role: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    text: &'a str,
    #[serde(flatten)]
    details: Map<String, Value>,
    timestamp: i64,
    number: u64,
}

impl Conversations {
    pub fn is_compared(&self, agent: &AgentId, session: &SessionId) -> bool {
        self.through.contains_key(&(agent.clone(), session.clone()))
    }

    /// Appends the new entries of a session. `sessions` opens the directory of the file, and is called only if there is
    /// something to write or to compare.
    pub async fn append(
        &mut self,
        hub: &Hub,
        caller: &Caller,
        agent: &AgentId,
        session: &SessionId,
        sessions: impl Fn() -> io::Result<Directory> + Clone + Send + 'static,
    ) -> io::Result<()> {
        let key = (agent.clone(), session.clone());
        let file = format!("{session}.jsonl");
        let mut through = match self.through.get(&key) {
            Some(through) => *through,
            None => {
                let (open, file) = (sessions.clone(), file.clone());
                blocking(move || last_number(&open()?, &file)).await?
            }
        };
        loop {
            let query = ListConversation {
                agent: agent.clone(),
                session: session.clone(),
                page: EntryPage::After(through),
                limit: PAGE,
            };
            let entries = hub.read(caller, query).await;
            let entries = entries.map_err(|_| io::Error::other("the conversation log cannot be read"))?;
            let Some(last) = entries.last().map(|entry| entry.number) else { break };
            let lines: String = entries.iter().map(render).collect();
            let (open, file) = (sessions.clone(), file.clone());
            // After an error, the file decides where the next attempt continues.
            self.through.remove(&key);
            blocking(move || open()?.append(&file, lines.as_bytes())).await?;
            through = last;
        }
        self.through.insert(key, through);
        Ok(())
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
}

fn render(entry: &ConversationEntry) -> String {
    let details = entry.details.as_ref().and_then(|details| serde_json::from_str(&details.0).ok());
    let mut details: Map<String, Value> = details.unwrap_or_default();
    // A field of the entry itself cannot be replaced.
    ["role", "type", "text", "timestamp", "number"].iter().for_each(|name| drop(details.remove(*name)));
    if let Some(run) = &entry.run {
        details.entry("runId").or_insert_with(|| run.as_str().into());
    }
    let line = Line {
        role: entry.kind.role(),
        kind: entry.kind.as_str(),
        text: &entry.text,
        details,
        timestamp: entry.at.millis(),
        number: entry.number,
    };
    let mut line = serde_json::to_string(&line).expect("texts and numbers always serialise to JSON");
    line.push('\n');
    line
}

/// The number of the last entry in a file; 0 if it has none. Lines of other programs have no number.
fn last_number(sessions: &Directory, name: &str) -> io::Result<u64> {
    let mut file = match sessions.open_file(name, OFlags::RDONLY, Mode::empty()) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let size = file.metadata()?.len();
    for start in [size.saturating_sub(TAIL_BYTES), 0] {
        file.seek(SeekFrom::Start(start))?;
        let mut content = Vec::new();
        file.by_ref().read_to_end(&mut content)?;
        let found = content.split(|byte| *byte == b'\n').rev().find_map(number);
        if found.is_some() || start == 0 {
            return Ok(found.unwrap_or_default());
        }
    }
    Ok(0)
}

fn number(line: &[u8]) -> Option<u64> {
    #[derive(Deserialize)]
    struct Numbered {
        number: u64,
    }
    serde_json::from_slice::<Numbered>(line).ok().map(|line| line.number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_model::{EntryKind, Payload, RunId, Time};

    #[test]
    fn a_line_has_the_number_from_which_the_mirror_continues() {
        let entry = |number: u64| ConversationEntry {
            agent: AgentId::stored("a"),
            session: SessionId::stored("main"),
            number,
            at: Time(7_000),
            kind: EntryKind::AutoTurnResult,
            text: "two\nlines".into(),
            run: Some(RunId::stored("r")),
            details: Some(Payload(r#"{"durationMs":5,"number":99}"#.into())),
        };
        let line = render(&entry(3));
        let expected = "{\"role\":\"assistant\",\"type\":\"auto-turn-result\",\"text\":\"two\\nlines\",\
                        \"durationMs\":5,\"runId\":\"r\",\"timestamp\":7,\"number\":3}\n";
        assert_eq!(line, expected);
        let path = tempfile::tempdir().unwrap();
        let directory = Directory::open(path.path()).unwrap();
        assert_eq!(last_number(&directory, "main.jsonl").unwrap(), 0);
        directory.append("main.jsonl", format!("{{\"type\":\"old\"}}\n{line}").as_bytes()).unwrap();
        assert_eq!(last_number(&directory, "main.jsonl").unwrap(), 3);
        directory.append("main.jsonl", b"{\"number\":4,\"cut o").unwrap();
        assert_eq!(
            last_number(&directory, "main.jsonl").unwrap(),
            3,
            "a line that was cut off does not count"
        );
    }
}
