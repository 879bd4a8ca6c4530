//! Remembers what was sent and acknowledged, and says where a history contradicts it.
//!
//! The promise it checks: an acknowledged message is in the history exactly once, as acknowledged; the history
//! is in the order of `seq`; what one sender sent in an order is found in that order; nothing is found that
//! nobody sent. A message without an acknowledgement may be found or not, but not twice.

use std::collections::HashMap;
use std::fmt;

use serde_json::Value;

use crate::agentim::Ack;
use crate::rest::text;

/// One contradiction between what was acknowledged and what is found.
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
    /// The hub did not come back, or a room could not be read.
    Unavailable {
        reason: String,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{self:?}")
    }
}

/// All that was sent in one test. Each `client_message_id` is used by one sender for one message.
#[derive(Default)]
pub struct Oracle {
    sent: HashMap<String, Sent>,
    count_by_sender: HashMap<String, usize>,
    contradictory_acks: Vec<Violation>,
}

struct Sent {
    sender: String,
    /// Its place among the messages of this sender.
    place: usize,
    room: String,
    content: String,
    ack: Option<Ack>,
}

impl Oracle {
    /// To be called before the message is sent. Sending the same again is a retry and keeps its first place.
    pub fn sending(&mut self, sender: &str, room: &str, client_message_id: &str, content: &str) {
        if self.sent.contains_key(client_message_id) {
            return;
        }
        let count = self.count_by_sender.entry(sender.to_owned()).or_default();
        let (sender, room, content) = (sender.to_owned(), room.to_owned(), content.to_owned());
        self.sent
            .insert(client_message_id.to_owned(), Sent { sender, place: *count, room, content, ack: None });
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

    /// What this sender sent and knows no answer to, in order: (room, client message id, content).
    pub fn unanswered(&self, sender: &str) -> Vec<(String, String, String)> {
        let mut open: Vec<_> =
            self.sent.iter().filter(|(_, sent)| sent.sender == sender && sent.ack.is_none()).collect();
        open.sort_unstable_by_key(|(_, sent)| sent.place);
        open.into_iter().map(|(id, sent)| (sent.room.clone(), id.clone(), sent.content.clone())).collect()
    }

    /// Acknowledgements that contradict each other: the retry of a message must be answered as the first time.
    pub fn check_acks(&self) -> Vec<Violation> {
        self.contradictory_acks.clone()
    }

    /// Compares the whole history of one room, oldest first, as the REST interface gives it.
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
            match last_of_sender.insert(&sent.sender, (sent.place, id)) {
                Some((place, first)) if place > sent.place => violations.push(Violation::SenderReordered {
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
    fn a_message_is_not_found_twice_acknowledged_or_not() {
        let all = || vec![item("a1", 1), item("b1", 2), item("a2", 3)];
        let twice = |id: &str| Violation::Twice { client_message_id: id.into() };
        check(&[all(), vec![item("b1", 4)]].concat(), &[twice("b1")]);
        check(&[all(), vec![item("a3", 4), item("a3", 5)]].concat(), &[twice("a3")]);
    }

    #[test]
    fn a_message_nobody_sent_or_with_another_text_is_invented() {
        let all = || vec![item("a1", 1), item("b1", 2), item("a2", 3)];
        let mut foreign = item("a3", 4);
        foreign["content"] = json!("something else");
        for stranger in [item("x", 4), foreign, json!({ "id": "m", "seq": 4, "content": "no client id" })] {
            let invented = Violation::Invented { room: "r".into(), message: stranger.to_string() };
            check(&[all(), vec![stranger]].concat(), &[invented]);
        }
    }

    #[test]
    fn another_seq_than_the_acknowledged_one_is_an_alteration() {
        let found = check_all(&[item("a1", 1), item("b1", 2), item("a2", 4)]);
        assert!(
            matches!(found.as_slice(), [Violation::Altered { client_message_id, .. }] if client_message_id == "a2")
        );
    }

    #[test]
    fn the_order_of_seq_and_of_each_sender_is_kept() {
        let found = check_all(&[item("b1", 2), item("a1", 1), item("a2", 3)]);
        assert_eq!(found, [Violation::SeqNotIncreasing { room: "r".into(), before: 2, after: 1 }]);
        let found = check_all(&[item("a1", 1), item("b1", 2), item("a2", 3), item("b3", 4), item("b2", 5)]);
        let reordered =
            Violation::SenderReordered { sender: "b".into(), first: "b3".into(), then: "b2".into() };
        assert_eq!(found, [reordered]);
    }

    #[test]
    fn a_retry_must_be_acknowledged_as_the_first_time() {
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
