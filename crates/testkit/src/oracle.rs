//! Records sent and acknowledged messages, and reports where a history contradicts them.
//!
//! It checks that an acknowledged message is in the history exactly once and as acknowledged, that the
//! history is ordered by `seq`, that the messages of one sender keep their order, and that every message in
//! the history was sent. A message without an acknowledgement may be in the history or not, but at most once.

use std::collections::HashMap;
use std::fmt;

use serde_json::Value;

use crate::agentim::Ack;
use crate::rest::text;

/// A contradiction between the acknowledgements and a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    Lost {
        room: String,
        client_message_id: String,
        seq: u64,
    },
    Altered {
        client_message_id: String,
        acknowledged: String,
        found: String,
    },
    Twice {
        client_message_id: String,
    },
    Invented {
        room: String,
        message: String,
    },
    SeqNotIncreasing {
        room: String,
        before: u64,
        after: u64,
    },
    SenderReordered {
        sender: String,
        first: String,
        then: String,
    },
    /// The hub did not restart, or a room could not be read.
    Unavailable {
        reason: String,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{self:?}")
    }
}

/// All messages sent in one test. Each `client_message_id` is used by one sender for one message.
#[derive(Default)]
pub struct Oracle {
    sent: HashMap<String, Sent>,
    count_by_sender: HashMap<String, usize>,
    contradictory_acks: Vec<Violation>,
}

struct Sent {
    sender: String,
    /// Index of the message among the messages of its sender.
    index: usize,
    room: String,
    content: String,
    ack: Option<Ack>,
}

impl Oracle {
    /// Records a message; must be called before it is sent. A retry keeps the index of the first attempt.
    pub fn sending(&mut self, sender: &str, room: &str, client_message_id: &str, content: &str) {
        if self.sent.contains_key(client_message_id) {
            return;
        }
        let count = self.count_by_sender.entry(sender.to_owned()).or_default();
        let (sender, room, content) = (sender.to_owned(), room.to_owned(), content.to_owned());
        self.sent
            .insert(client_message_id.to_owned(), Sent { sender, index: *count, room, content, ack: None });
        *count += 1;
    }

    pub fn acknowledged(&mut self, ack: Ack) {
        let Some(sent) = self.sent.get_mut(&ack.client_message_id) else {
            let message = format!("{ack:?}");
            self.contradictory_acks.push(Violation::Invented { room: String::new(), message });
            return;
        };
        match &sent.ack {
            Some(first) if *first != ack => self.contradictory_acks.push(Violation::Altered {
                client_message_id: ack.client_message_id.clone(),
                acknowledged: format!("{first:?}"),
                found: format!("{ack:?}"),
            }),
            Some(_) => {}
            None => sent.ack = Some(ack),
        }
    }

    pub fn acks(&self) -> usize {
        self.sent.values().filter(|sent| sent.ack.is_some()).count()
    }

    pub fn rooms(&self) -> Vec<String> {
        let mut rooms: Vec<String> = self.sent.values().map(|sent| sent.room.clone()).collect();
        rooms.sort_unstable();
        rooms.dedup();
        rooms
    }

    /// Returns the messages of a sender without an acknowledgement, in order: (room, client message ID,
    /// content).
    pub fn unanswered(&self, sender: &str) -> Vec<(String, String, String)> {
        let mut open: Vec<_> =
            self.sent.iter().filter(|(_, sent)| sent.sender == sender && sent.ack.is_none()).collect();
        open.sort_unstable_by_key(|(_, sent)| sent.index);
        open.into_iter().map(|(id, sent)| (sent.room.clone(), id.clone(), sent.content.clone())).collect()
    }

    /// Returns contradictory acknowledgements: a retry must get the same acknowledgement as the first
    /// attempt.
    pub fn check_acks(&self) -> Vec<Violation> {
        self.contradictory_acks.clone()
    }

    /// Checks the full history of one room, oldest first, as returned by the REST API.
    pub fn check(&self, room: &str, history: &[Value]) -> Vec<Violation> {
        let mut violations = Vec::new();
        let mut found: HashMap<&str, &Value> = HashMap::new();
        let mut last_of_sender: HashMap<&str, (usize, &str)> = HashMap::new();
        let mut before = 0;
        for item in history {
            let seq = item["seq"].as_u64().unwrap_or_default();
            if seq <= before {
                violations.push(Violation::SeqNotIncreasing { room: room.to_owned(), before, after: seq });
            }
            before = seq;
            let known = item["clientMessageId"].as_str().and_then(|id| self.sent.get_key_value(id));
            let Some((id, sent)) =
                known.filter(|(_, sent)| sent.room == room && item["content"] == sent.content)
            else {
                violations.push(Violation::Invented { room: room.to_owned(), message: item.to_string() });
                continue;
            };
            if found.contains_key(id.as_str()) {
                violations.push(Violation::Twice { client_message_id: id.clone() });
                continue;
            }
            found.insert(id, item);
            match last_of_sender.insert(&sent.sender, (sent.index, id)) {
                Some((index, first)) if index > sent.index => violations.push(Violation::SenderReordered {
                    sender: sent.sender.clone(),
                    first: first.to_owned(),
                    then: id.clone(),
                }),
                _ => {}
            }
        }
        violations.extend(self.acks_in(room).filter_map(|ack| contradiction(room, ack, &found)));
        violations
    }

    fn acks_in(&self, room: &str) -> impl Iterator<Item = &Ack> {
        self.sent.values().filter(move |sent| sent.room == room).filter_map(|sent| sent.ack.as_ref())
    }
}

fn contradiction(room: &str, ack: &Ack, found: &HashMap<&str, &Value>) -> Option<Violation> {
    let client_message_id = ack.client_message_id.clone();
    let Some(item) = found.get(client_message_id.as_str()) else {
        return Some(Violation::Lost { room: room.to_owned(), client_message_id, seq: ack.seq });
    };
    let same = text(item, "/id").is_ok_and(|id| id == ack.message_id) && item["seq"] == ack.seq;
    let (acknowledged, found) = (format!("{ack:?}"), item.to_string());
    (!same).then_some(Violation::Altered { client_message_id, acknowledged, found })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_history_with_every_acknowledged_message_in_order_is_accepted() {
        check(&[item("a1", 1), item("b1", 2), item("a2", 3)], &[]);
        check(&[item("a1", 1), item("b1", 2), item("a2", 3), item("a3", 9)], &[]);
    }

    #[test]
    fn an_acknowledged_message_that_is_missing_is_lost() {
        let lost = Violation::Lost { room: "r".into(), client_message_id: "b1".into(), seq: 2 };
        check(&[item("a1", 1), item("a2", 3)], &[lost]);
    }

    #[test]
    fn a_duplicate_message_is_a_violation_acknowledged_or_not() {
        let all = || vec![item("a1", 1), item("b1", 2), item("a2", 3)];
        let twice = |id: &str| Violation::Twice { client_message_id: id.into() };
        check(&[all(), vec![item("b1", 4)]].concat(), &[twice("b1")]);
        check(&[all(), vec![item("a3", 4), item("a3", 5)]].concat(), &[twice("a3")]);
    }

    #[test]
    fn a_message_that_was_not_sent_or_has_another_text_is_invented() {
        let all = || vec![item("a1", 1), item("b1", 2), item("a2", 3)];
        let mut foreign = item("a3", 4);
        foreign["content"] = json!("something else");
        for unknown in [item("x", 4), foreign, json!({ "id": "m", "seq": 4, "content": "no client id" })] {
            let invented = Violation::Invented { room: "r".into(), message: unknown.to_string() };
            check(&[all(), vec![unknown]].concat(), &[invented]);
        }
    }

    #[test]
    fn a_seq_that_differs_from_the_acknowledged_one_is_an_alteration() {
        let found = check_all(&[item("a1", 1), item("b1", 2), item("a2", 4)]);
        assert!(
            matches!(found.as_slice(), [Violation::Altered { client_message_id, .. }] if client_message_id == "a2")
        );
    }

    #[test]
    fn a_wrong_order_of_seq_or_of_a_sender_is_a_violation() {
        let found = check_all(&[item("b1", 2), item("a1", 1), item("a2", 3)]);
        assert_eq!(found, [Violation::SeqNotIncreasing { room: "r".into(), before: 2, after: 1 }]);
        let found = check_all(&[item("a1", 1), item("b1", 2), item("a2", 3), item("b3", 4), item("b2", 5)]);
        let reordered =
            Violation::SenderReordered { sender: "b".into(), first: "b3".into(), then: "b2".into() };
        assert_eq!(found, [reordered]);
    }

    #[test]
    fn a_retry_with_a_different_acknowledgement_is_a_violation() {
        let mut oracle = oracle();
        oracle.acknowledged(ack("a1", 1));
        assert_eq!(oracle.check_acks(), []);
        oracle.acknowledged(ack("a1", 7));
        assert!(matches!(oracle.check_acks().as_slice(), [Violation::Altered { .. }]));
        assert_eq!(oracle.acks(), 3);
        let open: Vec<String> = oracle.unanswered("b").into_iter().map(|(_, id, _)| id).collect();
        assert_eq!(open, ["b2", "b3"]);
    }

    #[track_caller]
    fn check(history: &[Value], expected: &[Violation]) {
        assert_eq!(check_all(history), expected);
    }

    fn check_all(history: &[Value]) -> Vec<Violation> {
        oracle().check("r", history)
    }

    /// `a1`, `b1` and `a2` are acknowledged with the seqs 1, 2 and 3; `a3`, `b2` and `b3` are not.
    fn oracle() -> Oracle {
        let mut oracle = Oracle::default();
        for id in ["a1", "a2", "a3", "b1", "b2", "b3"] {
            oracle.sending(&id[..1], "r", id, &format!("text of {id}"));
        }
        for (id, seq) in [("a1", 1), ("b1", 2), ("a2", 3)] {
            oracle.acknowledged(ack(id, seq));
        }
        oracle
    }

    fn ack(id: &str, seq: u64) -> Ack {
        Ack { client_message_id: id.into(), message_id: format!("m-{id}"), seq, epoch: "1".into() }
    }

    fn item(id: &str, seq: u64) -> Value {
        json!({ "id": format!("m-{id}"), "seq": seq, "clientMessageId": id, "content": format!("text of {id}") })
    }
}
