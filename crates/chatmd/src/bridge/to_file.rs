//! Messages of the room that become lines of the file.
//!
//! Owns: which messages are written, each once and in the order of the room, and their form as lines. Messages
//! arrive as pushes. After a start, a lost connection or a full queue, they are read from the history until
//! no push was dropped meanwhile; so the queue is bounded and no message is missing.

use super::continuations::{Addressed, EVERYONE};
use super::members::Members;
use super::state::{BridgeState, PendingAppend, PendingMessage, line_digest};
use super::to_room::SOURCE;
use parlor_model::{Position, Seq};
use parlor_wire::broker::client::RoomMessage;
use parlor_wire::chatmd::{grammar, names, render::render};
use std::collections::{HashSet, VecDeque};
use std::fmt::Write;

/// Maximum number of queued messages. When it is reached, pushes are dropped and read from the history later.
const MAX_QUEUED: usize = 1024;
/// Maximum total length of the texts of queued messages, up to one page of the history.
const MAX_QUEUED_BYTES: usize = 16 * 1024 * 1024;
/// Maximum number of messages that are appended at once.
const MAX_BATCH: usize = 256;
/// Length at which the text of one append takes no further message.
const MAX_BATCH_BYTES: usize = 256 * 1024;
/// Messages per page of the history. A page with very long messages may be too large for one frame, so the
/// number is halved when the connection is lost while a page is awaited.
const PAGE: usize = 64;

pub struct ToFile {
    queue: VecDeque<RoomMessage>,
    queued_bytes: usize,
    /// Position of the last message that was taken.
    seen: Option<Position>,
    /// Whether every new message arrives as a push that is taken.
    live: bool,
    /// Whether a push was dropped since the last request for a page.
    missed: bool,
    awaited_page: Option<u64>,
    page: usize,
}

/// Position from which a room is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoomStart {
    /// The position of an earlier connection.
    Resumed,
    /// The first connection starts behind this position.
    First(Position),
    /// The earlier position belongs to another history, as after a restored backup. Messages behind this
    /// position are written.
    HistoryReplaced(Position),
}

/// A request for a page of the history.
pub struct PageRequest {
    pub after: Option<Position>,
    pub limit: usize,
}

impl ToFile {
    /// `seen` is the position of the last message that was written; `None` before the first connection.
    pub fn new(seen: Option<Position>) -> Self {
        Self {
            queue: VecDeque::new(),
            queued_bytes: 0,
            seen,
            live: false,
            missed: false,
            awaited_page: None,
            page: PAGE,
        }
    }

    /// Starts to follow the room, whose newest event is at `now`. Without an earlier position, the room is
    /// followed from now on, or from its first message with `from_first`.
    pub fn start(&mut self, now: Position, from_first: bool) -> RoomStart {
        let start = match self.seen {
            Some(seen) if seen.epoch == now.epoch => return RoomStart::Resumed,
            Some(_) => RoomStart::HistoryReplaced(now),
            None if from_first => RoomStart::First(Position { seq: Seq(0), ..now }),
            None => RoomStart::First(now),
        };
        let (RoomStart::First(from) | RoomStart::HistoryReplaced(from)) = start else { return start };
        self.queue.clear();
        (self.queued_bytes, self.seen) = (0, Some(from));
        start
    }

    pub fn connection_lost(&mut self) {
        if self.awaited_page.take().is_some() {
            self.page = (self.page / 2).max(1);
        }
        self.live = false;
    }

    fn has_capacity(&self) -> bool {
        self.queue.len() < MAX_QUEUED && self.queued_bytes < MAX_QUEUED_BYTES
    }

    pub fn pushed(&mut self, message: RoomMessage) {
        if self.live && self.has_capacity() {
            self.take(message);
        } else {
            (self.live, self.missed) = (false, true);
        }
    }

    /// Returns the page of the history that should be requested now.
    pub fn wanted_page(&self) -> Option<PageRequest> {
        let wanted = !self.live && self.awaited_page.is_none() && self.has_capacity();
        wanted.then_some(PageRequest { after: self.seen, limit: self.page })
    }

    pub fn requested_page(&mut self, request: u64) {
        (self.awaited_page, self.missed) = (Some(request), false);
    }

    pub fn is_waiting_for(&self, request: u64) -> bool {
        self.awaited_page == Some(request)
    }

    pub fn received_page(&mut self, messages: Vec<RoomMessage>) {
        self.awaited_page = None;
        self.page = (self.page * 2).min(PAGE);
        self.live = messages.is_empty() && !self.missed;
        messages.into_iter().for_each(|message| self.take(message));
    }

    fn take(&mut self, message: RoomMessage) {
        let is_new = self.seen.is_none_or(|seen| seen.seq < message.position.seq);
        if is_new {
            self.seen = Some(message.position);
            self.queued_bytes += message.text.len();
            self.queue.push_back(message);
        }
    }

    pub fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Takes queued messages for one append. Returns `None` if there is nothing to write; the position of
    /// `state` may have changed anyway. `url` precedes the paths of attached files.
    pub fn next_append(
        &mut self,
        state: &mut BridgeState,
        members: &Members,
        url: &str,
    ) -> Option<PendingAppend> {
        let (mut text, mut messages) = (String::new(), Vec::new());
        let mut position = state.position;
        while messages.len() < MAX_BATCH && text.len() < MAX_BATCH_BYTES {
            let Some(message) = self.queue.pop_front() else { break };
            self.queued_bytes -= message.text.len();
            position = Some(message.position);
            if is_echo(&message, state) {
                continue;
            }
            let (lines, pending) = as_lines(&message, members, url);
            text.push_str(&lines);
            messages.push(pending);
        }
        match position {
            Some(position) if !messages.is_empty() => {
                Some(PendingAppend { text, messages, position, before: None })
            }
            _ => {
                state.position = position;
                None
            }
        }
    }
}

/// Returns whether the message is a line of this file that the hub sends back.
fn is_echo(message: &RoomMessage, state: &BridgeState) -> bool {
    &*message.source == SOURCE && state.has_relayed(message)
}

/// Renders a message as lines.
fn as_lines(message: &RoomMessage, members: &Members, url: &str) -> (String, PendingMessage) {
    let sender = sender(message, members);
    let (recipient, observers) = addressees(message, members);
    let recipient = recipient.as_deref().unwrap_or(EVERYONE);
    let lines = render(&sender, recipient, &observers, &text(message, url)).expect("aliases are valid names");
    let header = lines.lines().next().unwrap_or_default();
    let digest = grammar::parse(header, &HashSet::<String>::new()).map(|line| line_digest(&line));
    let names = std::iter::once(recipient).chain(observers.iter().map(String::as_str));
    let addressed = Addressed {
        id: message.id.clone(),
        seq: message.position.seq.0,
        sender: members.key(&sender),
        names: names.map(|alias| members.key(alias)).collect(),
    };
    let pending = PendingMessage { bytes: lines.len(), digest: digest.unwrap_or_default(), addressed };
    (lines, pending)
}

/// Alias of the sender. An author that the hub could not verify has the name of the account before its own, so
/// that it cannot pass for a member.
fn sender(message: &RoomMessage, members: &Members) -> String {
    match &message.relayed {
        Some(relayed) if !relayed.verified => {
            let account = names::decode(&members.alias(&message.sender_id, "unverified"));
            names::encode(&format!("{account}/{}", relayed.author))
        }
        _ => members.alias(&message.sender_id, &message.sender_name),
    }
}

/// Aliases of the recipient, the first member that the message mentions, and of the observers.
fn addressees(message: &RoomMessage, members: &Members) -> (Option<String>, Vec<String>) {
    let mut all = match &message.relayed {
        // A name in the text of a relayed message addresses no member.
        Some(_) => message.mentions.iter().map(|mention| members.alias(&mention.id, &mention.name)).collect(),
        None => members.mentioned(&message.text, &message.mentions),
    };
    if let Some(relayed) = &message.relayed {
        // A recipient outside the hub is no mention.
        let outside = relayed.recipient.iter().filter(|_| all.is_empty());
        let outside: Vec<String> = outside.map(|name| members.alias_of(name)).collect();
        all.extend(outside);
        let observers: Vec<String> = relayed.observers.iter().map(|name| members.alias_of(name)).collect();
        if all.is_empty() {
            return (None, unique(observers));
        }
        all.extend(observers);
    }
    let mut all = unique(all).into_iter();
    (all.next(), all.collect())
}

fn unique(mut aliases: Vec<String>) -> Vec<String> {
    let mut known = HashSet::new();
    aliases.retain(|alias| known.insert(alias.clone()));
    aliases
}

/// Text of the message, followed by one line for each attached file.
fn text(message: &RoomMessage, url: &str) -> String {
    let mut text = message.text.trim_end().to_owned();
    for file in &message.attachments {
        let separator = if text.is_empty() { "" } else { "\n" };
        write!(
            text,
            "{separator}(attached file: {}, {}, {} bytes, {url}{})",
            file.filename, file.mime_type, file.size, file.url
        )
        .expect("a String accepts every write");
    }
    text
}

#[cfg(test)]
mod tests;
