//! Lines of the file that become messages of the room.
//!
//! Owns: the order of lines and the position in the file. Lines are sent in order, several at a time, and the
//! position passes a line only when the hub accepted or refused it and every line before it. A line that was
//! sent twice, because its answer was lost, is the same message at the hub: its id is made of the generation of
//! the file, the offset of the line and its content.

use super::BridgeNotice;
use super::continuations::{Addressed, EVERYONE};
use super::members::{Members, is_everyone};
use super::room::TooLarge;
use super::state::{BridgeState, RelayedLine};
use crate::{Cursor, ReadMessage};
use parlor_wire::broker::client::{Answer, Relay};
use parlor_wire::chatmd::{LineMessage, names};
use std::collections::{HashSet, VecDeque};

/// Source of the messages that the bridge relays.
pub const SOURCE: &str = "chatmd";

/// Maximum number of lines that wait for their answer.
const MAX_IN_FLIGHT: usize = 64;
/// Maximum total length of their texts. A single longer line is sent alone.
const MAX_IN_FLIGHT_BYTES: usize = 1024 * 1024;
/// Maximum number of lines that were read and not yet passed. The file is read again when there are fewer.
const MAX_QUEUED: usize = 1024;
/// Maximum total length of their texts, up to one batch of the follower.
const MAX_QUEUED_BYTES: usize = 4 * 1024 * 1024;

pub struct ToRoom {
    queue: VecDeque<Entry>,
    queued_bytes: usize,
    in_flight: usize,
    in_flight_bytes: usize,
    /// Position behind everything that was taken.
    end: Cursor,
    /// Generation of the last saved position. Lines of another one are not sent, because a restart would read
    /// them under yet another generation and send them again.
    saved_generation: Option<String>,
}

enum Entry {
    Line(Box<Line>),
    /// The lines behind it are of another generation, which starts at this position.
    Generation(Cursor),
}

struct Line {
    message: ReadMessage,
    progress: Progress,
}

enum Progress {
    Waiting,
    Sent {
        request: u64,
        /// Keys of the sender and of the addressees.
        sender: String,
        names: Vec<String>,
    },
    Finished,
}

impl ToRoom {
    /// `start` is the position of the follower.
    pub fn new(start: Cursor, saved_generation: Option<String>) -> Self {
        Self {
            queue: VecDeque::new(),
            queued_bytes: 0,
            in_flight: 0,
            in_flight_bytes: 0,
            end: start,
            saved_generation,
        }
    }

    /// Returns whether more lines should be read.
    pub fn has_capacity(&self) -> bool {
        self.queue.len() < MAX_QUEUED && self.queued_bytes < MAX_QUEUED_BYTES
    }

    /// Returns whether no line waits for the hub.
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// Takes the messages of one batch. `end` is the position of the follower behind the batch.
    pub fn take(
        &mut self,
        messages: Vec<ReadMessage>,
        end: Cursor,
        state: &BridgeState,
        report: &mut (dyn FnMut(BridgeNotice) + Send),
    ) {
        for message in messages {
            let own = state.own_line(&message.cursor, message.offset, &message.line);
            if own.is_some_and(|own| own.end < message.cursor.offset) {
                report(BridgeNotice::ContinuesOwnLine { line_number: message.line_number });
            }
            let progress = if own.is_some() { Progress::Finished } else { Progress::Waiting };
            self.queued_bytes += message.line.text().len();
            self.queue.push_back(Entry::Line(Box::new(Line { message, progress })));
        }
        if end.generation != self.end.generation {
            self.queue.push_back(Entry::Generation(end.clone()));
        }
        self.end = end;
    }

    /// Sends the lines that can be sent now. `send` returns the number of the request.
    pub fn send(
        &mut self,
        state: &BridgeState,
        members: &Members,
        mut send: impl FnMut(&Relay<'_>) -> Result<u64, TooLarge>,
        report: &mut (dyn FnMut(BridgeNotice) + Send),
    ) {
        let mut unanswered: Vec<(String, Vec<String>)> = Vec::new();
        for entry in &mut self.queue {
            let line = match entry {
                Entry::Generation(_) => return,
                Entry::Line(line) => line,
            };
            match &line.progress {
                Progress::Finished => continue,
                Progress::Sent { sender, names, .. } => {
                    unanswered.push((sender.clone(), names.clone()));
                    continue;
                }
                Progress::Waiting => {}
            }
            let message = &line.message;
            let bytes = message.line.text().len();
            let is_full = self.in_flight >= MAX_IN_FLIGHT
                || self.in_flight > 0 && self.in_flight_bytes + bytes > MAX_IN_FLIGHT_BYTES;
            if is_full || self.saved_generation.as_ref() != Some(&message.cursor.generation) {
                return;
            }
            let sender = members.key(&message.line.sender);
            // The line answers a line whose id is not known yet.
            let answers = |(author, names): &(String, Vec<String>)| {
                names.contains(&sender) || *author != sender && names.iter().any(|name| name == EVERYONE)
            };
            if unanswered.iter().any(answers) {
                return;
            }
            let fields = Fields::of(&message.line);
            let place = format!("{}:{}", message.cursor.generation, message.offset);
            let external_id = state.external_id(&RelayedLine {
                place: &place,
                author: &fields.author,
                recipient: fields.recipient.as_deref(),
                text: fields.text,
            });
            let relay = fields.relay(&state.room, state.continuations.of(&sender), &external_id);
            match send(&relay) {
                Ok(request) => {
                    let names = addressees(&message.line, members);
                    unanswered.push((sender.clone(), names.clone()));
                    self.in_flight += 1;
                    self.in_flight_bytes += bytes;
                    line.progress = Progress::Sent { request, sender, names };
                }
                Err(TooLarge) => {
                    let why = "the message is too long".into();
                    report(BridgeNotice::LineRefused { line_number: message.line_number, why });
                    line.progress = Progress::Finished;
                }
            }
        }
    }

    /// Returns whether the hub has not answered every line that was sent.
    pub fn has_unanswered(&self) -> bool {
        self.in_flight > 0
    }

    /// Returns whether a request is one of a line.
    pub fn is_waiting_for(&self, request: u64) -> bool {
        self.sent(request).is_some()
    }

    fn sent(&self, request: u64) -> Option<usize> {
        self.queue.iter().position(|entry| match entry {
            Entry::Line(line) => {
                matches!(&line.progress, Progress::Sent { request: sent, .. } if *sent == request)
            }
            Entry::Generation(_) => false,
        })
    }

    /// Applies the answer to a line: the hub accepted or refused it.
    pub fn answered(
        &mut self,
        request: u64,
        outcome: Result<Answer, Box<str>>,
        state: &mut BridgeState,
        report: &mut (dyn FnMut(BridgeNotice) + Send),
    ) {
        let Some(at) = self.sent(request) else { return };
        let Some(Entry::Line(line)) = self.queue.get_mut(at) else { return };
        self.in_flight -= 1;
        self.in_flight_bytes -= line.message.line.text().len();
        let progress = std::mem::replace(&mut line.progress, Progress::Finished);
        match (outcome, progress) {
            (Ok(Answer::Relayed { id, position }), Progress::Sent { sender, names, .. }) => {
                let seq = position.seq.0;
                state.continuations.record(&Addressed { id, seq, sender, names });
            }
            (Err(why), _) => {
                report(BridgeNotice::LineRefused { line_number: line.message.line_number, why: why.into() });
            }
            (Ok(_), _) => {}
        }
    }

    /// Moves the position behind the lines that are finished. Returns whether it changed.
    pub fn settle(&mut self, state: &mut BridgeState) -> bool {
        let mut reached = None;
        loop {
            match self.queue.front() {
                Some(Entry::Line(line)) if matches!(line.progress, Progress::Finished) => {
                    reached = Some(line.message.cursor.clone());
                    self.queued_bytes -= line.message.line.text().len();
                }
                Some(Entry::Generation(start)) => reached = Some(start.clone()),
                Some(Entry::Line(_)) => break,
                None => {
                    // Lines that are no messages are passed, too.
                    reached = Some(self.end.clone());
                    break;
                }
            }
            self.queue.pop_front();
        }
        match reached {
            Some(cursor) if state.cursor.as_ref() != Some(&cursor) => {
                state.advance(cursor);
                true
            }
            _ => false,
        }
    }

    /// Returns whether lines wait for the current position to be saved.
    pub fn waits_for_save(&self) -> bool {
        match self.queue.front() {
            Some(Entry::Line(line)) => {
                self.saved_generation.as_ref() != Some(&line.message.cursor.generation)
            }
            _ => false,
        }
    }

    /// Records that a position in this generation was saved.
    pub fn saved(&mut self, generation: &str) {
        self.saved_generation = Some(generation.into());
    }

    /// Prepares the lines without an answer to be sent again over the next connection.
    pub fn connection_lost(&mut self) {
        for entry in &mut self.queue {
            if let Entry::Line(line) = entry
                && let Progress::Sent { .. } = line.progress
            {
                line.progress = Progress::Waiting;
            }
        }
        (self.in_flight, self.in_flight_bytes) = (0, 0);
    }
}

/// Names and text of a line as the hub knows them.
#[derive(Debug, PartialEq, Eq)]
struct Fields<'a> {
    author: String,
    recipient: Option<String>,
    observers: Vec<String>,
    text: &'a str,
}

impl<'a> Fields<'a> {
    fn of(line: &'a LineMessage) -> Self {
        let recipient = (!is_everyone(&line.recipient)).then(|| names::decode(&line.recipient));
        let mut known: HashSet<String> = recipient.iter().cloned().collect();
        let observers = line.broadcast.iter().filter(|alias| !is_everyone(alias));
        let observers = observers.map(|alias| names::decode(alias)).filter(|name| known.insert(name.clone()));
        let observers = observers.collect();
        Self { author: names::decode(&line.sender), recipient, observers, text: line.text() }
    }

    fn relay<'r>(&'r self, room: &'r str, continues: Option<&'r str>, external_id: &'r str) -> Relay<'r> {
        Relay {
            room_id: room,
            author: &self.author,
            recipient: self.recipient.as_deref(),
            observers: &self.observers,
            text: self.text,
            continues,
            source: SOURCE,
            external_id,
        }
    }
}

/// Keys of the names that a line addresses.
fn addressees(line: &LineMessage, members: &Members) -> Vec<String> {
    let mut keys: Vec<String> =
        std::iter::once(&line.recipient).chain(&line.broadcast).map(|alias| members.key(alias)).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

#[cfg(test)]
mod tests;
