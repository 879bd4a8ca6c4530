//! The messages that no mailbox received: dead letters, in a file of their own.
//!
//! The hub appends each one once. A letter that is cleared or sent again stays in the file.

use parlor_engine::Hub;
use parlor_model::query::{ListDeadLetters, MailPage};
use parlor_model::{Caller, DeadLetter, Seq};
use std::collections::BTreeMap;
use std::io;

/// The file, in the directory of the messages.
pub const FILE: &str = "broker-unmatched.jsonl";
/// Number of letters that are read at once.
const PAGE: usize = 500;

/// The letters without a mailbox after a position, oldest first.
pub async fn newer(hub: &Hub, after: Seq) -> io::Result<Vec<DeadLetter>> {
    let mut found = BTreeMap::new();
    let mut offset = 0;
    loop {
        let page = MailPage { limit: PAGE, offset, from: None, to: None };
        let letters = hub.read(&Caller::OPERATOR, ListDeadLetters { page }).await;
        let letters = letters.map_err(|_| io::Error::other("the dead letters cannot be read"))?;
        // The newest come first.
        let is_last = letters.last().is_none_or(|letter| letter.message.seq <= after);
        offset += letters.len();
        let new = letters.into_iter().filter(|letter| letter.mailbox.is_none() && letter.message.seq > after);
        found.extend(new.map(|letter| (letter.message.seq, letter)));
        if is_last {
            return Ok(found.into_values().collect());
        }
    }
}
