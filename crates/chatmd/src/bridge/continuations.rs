//! The latest message for each name of the file, so that an answer continues its chain of agents.
//!
//! A line continues the newest message that its sender could have answered: the last one addressed to it, or
//! the last one to everyone by another sender. Names are the keys of [`super::members::Members::key`].

use super::digest;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Recipient of a line that addresses everyone.
pub const EVERYONE: &str = "all";

/// Maximum length of a stored name. A longer one is replaced by its digest.
const MAX_NAME_BYTES: usize = 80;
/// Maximum number of names. When it is exceeded, the name with the oldest message is dropped.
const MAX_NAMES: usize = 1000;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Continuations {
    /// Latest message for each name.
    names: BTreeMap<String, Latest>,
    /// The last message to everyone, and the last one by another sender: its own message is no message that a
    /// sender answers.
    everyone: Vec<ToEveryone>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Latest {
    id: Box<str>,
    seq: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ToEveryone {
    sender: String,
    #[serde(flatten)]
    message: Latest,
}

/// A message of the file and the room, with the names that it concerns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Addressed {
    pub id: Box<str>,
    pub seq: u64,
    /// Key of the sender.
    pub sender: String,
    /// Keys of the recipient and the observers; [`EVERYONE`] for everyone.
    pub names: Vec<String>,
}

impl Continuations {
    pub fn record(&mut self, addressed: &Addressed) {
        let Addressed { id, seq, sender, names } = addressed;
        for name in names {
            let message = Latest { id: id.clone(), seq: *seq };
            if name == EVERYONE {
                self.record_for_everyone(ToEveryone { sender: short(sender).into_owned(), message });
                continue;
            }
            let name = short(name);
            if self.names.get(&*name).is_none_or(|latest| latest.seq < *seq) {
                self.names.insert(name.into_owned(), message);
            }
        }
        while self.names.len() > MAX_NAMES {
            let oldest = self.names.iter().min_by_key(|(_, latest)| latest.seq);
            let Some(oldest) = oldest.map(|(name, _)| name.clone()) else { break };
            self.names.remove(&oldest);
        }
    }

    fn record_for_everyone(&mut self, message: ToEveryone) {
        self.everyone.push(message);
        self.everyone.sort_by_key(|known| std::cmp::Reverse(known.message.seq));
        // The newest message of each of two senders is kept.
        let newest = self.everyone.first().map(|known| known.sender.clone());
        let other = self.everyone.iter().position(|known| Some(&known.sender) != newest.as_ref());
        let other = other.map(|at| self.everyone.swap_remove(at));
        self.everyone.truncate(1);
        self.everyone.extend(other);
    }

    /// Returns the id of the message that a line of the sender with this key continues.
    pub fn of(&self, sender: &str) -> Option<&str> {
        let sender = short(sender);
        let own = self.names.get(&*sender);
        let everyones = self.everyone.iter().find(|known| known.sender != sender);
        let latest = own.into_iter().chain(everyones.map(|known| &known.message));
        latest.max_by_key(|latest| latest.seq).map(|latest| &*latest.id)
    }
}

fn short(name: &str) -> Cow<'_, str> {
    match name.len() {
        0..=MAX_NAME_BYTES => name.into(),
        _ => digest(&[name]).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addressed(seq: u64, sender: &str, names: &[&str]) -> Addressed {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Addressed { id: format!("m{seq}").into(), seq, sender: sender.into(), names }
    }

    #[test]
    fn a_sender_continues_the_newest_message_that_it_could_answer() {
        let mut latest = Continuations::default();
        assert_eq!(latest.of("coder"), None);
        latest.record(&addressed(1, "ada", &["coder", "reviewer"]));
        assert_eq!(
            (latest.of("coder"), latest.of("reviewer"), latest.of("dev")),
            (Some("m1"), Some("m1"), None)
        );
        latest.record(&addressed(2, "reviewer", &["all"]));
        assert_eq!((latest.of("coder"), latest.of("dev")), (Some("m2"), Some("m2")));
        assert_eq!(latest.of("reviewer"), Some("m1"), "the own message to everyone is not answered");
        latest.record(&addressed(3, "coder", &["all"]));
        latest.record(&addressed(4, "coder", &["all"]));
        assert_eq!(latest.of("coder"), Some("m2"));
        assert_eq!(latest.of("reviewer"), Some("m4"));
    }

    #[test]
    fn an_older_message_never_replaces_a_newer_one() {
        let mut latest = Continuations::default();
        latest.record(&addressed(5, "ada", &["coder", "all"]));
        latest.record(&addressed(2, "bob", &["coder", "all"]));
        assert_eq!(
            (latest.of("coder"), latest.of("dev"), latest.of("ada")),
            (Some("m5"), Some("m5"), Some("m2"))
        );
    }

    #[test]
    fn the_names_with_the_oldest_messages_are_dropped() {
        let mut latest = Continuations::default();
        for seq in 0..=MAX_NAMES as u64 {
            latest.record(&addressed(seq, "ada", &[&format!("agent-{seq}")]));
        }
        assert_eq!(latest.names.len(), MAX_NAMES);
        assert_eq!((latest.of("agent-0"), latest.of("agent-1")), (None, Some("m1")));
    }

    #[test]
    fn the_map_survives_its_json_form() {
        let mut latest = Continuations::default();
        latest.record(&addressed(1, "ada", &["coder", "all"]));
        let json = serde_json::to_string(&latest).unwrap();
        assert_eq!(serde_json::from_str::<Continuations>(&json).unwrap(), latest);
    }
}
