//! Full-text search over messages: the store supplies candidates, and this module decides which of them
//! match.
//!
//! Owns: tokenising, the query syntax, visibility, ranking and snippets. The stores own the index.

mod snippet;
mod terms;
mod tokenizer;

pub use terms::{Phrase, SearchTerms};
pub use tokenizer::TokenizedText;

use crate::Fault;
use crate::ports::Snapshot;
use crate::queries::answer_budget::MAX_ANSWER_BYTES;
use parlor_model::query::{Hit, SearchCursor, SearchMessages, SearchResults};
use parlor_model::{Member, Message, MessageId, Seq};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use terms::Occurrence;

/// Maximum number of matches that are ranked together. Older matches are on later pages.
const MAX_SCORED_MATCHES: usize = 1000;

/// A search with the rooms it covers, as passed to the store.
pub struct SearchScope<'a> {
    pub asked: &'a SearchMessages,
    pub wanted: &'a SearchTerms,
    rooms: HashMap<&'a str, &'a Member>,
}

impl<'a> SearchScope<'a> {
    /// Limits a search to the rooms of these memberships.
    pub fn new(asked: &'a SearchMessages, wanted: &'a SearchTerms, memberships: &'a [Member]) -> Self {
        let in_scope = |member: &&Member| asked.room.as_ref().is_none_or(|room| *room == member.room);
        let rooms =
            memberships.iter().filter(in_scope).map(|member| (member.room.as_str(), member)).collect();
        Self { asked, wanted, rooms }
    }

    pub fn rooms(&self) -> impl ExactSizeIterator<Item = &str> {
        self.rooms.keys().copied()
    }

    pub fn is_in(&self, room: &str) -> bool {
        self.rooms.contains_key(room)
    }

    /// Whether the caller may see the message and it passes all filters; its words are not checked here.
    fn admits(&self, message: &Message) -> bool {
        let SearchMessages { sender, sender_kind, kind, from, to, .. } = self.asked;
        let member = message.destination.room().and_then(|room| self.rooms.get(room.as_str()));
        member.is_some_and(|member| message.seq > member.room_preferences.cleared_through)
            && sender.as_ref().is_none_or(|sender| **sender == *message.sender.id())
            && sender_kind.is_none_or(|kind| message.sender.is(kind))
            && kind.is_none_or(|kind| message.kind == kind)
            && from.is_none_or(|from| message.at >= from)
            && to.is_none_or(|to| message.at <= to)
    }
}

struct Match {
    seq: Seq,
    id: MessageId,
    score: u32,
}

/// Runs a search on one snapshot, so that memberships and messages are consistent. After `timeout` it returns
/// the results found so far and marks them as partial.
pub fn search(
    request: &SearchMessages,
    terms: &SearchTerms,
    memberships: &[Member],
    timeout: Duration,
    snapshot: &mut dyn Snapshot,
) -> Result<SearchResults, Fault> {
    let search_scope = SearchScope::new(request, terms, memberships);
    if search_scope.rooms.is_empty() {
        return Ok(SearchResults::default());
    }
    let (mut matches, older, partial) = gather(&search_scope, timeout, snapshot)?;
    let newest = matches.first().map(|newest| newest.seq);
    matches.sort_by_key(|found| (Reverse(found.score), Reverse(found.seq)));
    let (mut hits, mut bytes) = (Vec::new(), 0);
    let mut returned = request.from_place.skip;
    for found in matches.iter().skip(returned).take(request.limit) {
        let message = snapshot.message(&found.id)?.expect("the message was read from this snapshot");
        bytes += message.length();
        if bytes > MAX_ANSWER_BYTES && !hits.is_empty() {
            break;
        }
        returned += 1;
        let words = TokenizedText::of(&message.text);
        let places = terms.find(&words).unwrap_or_default();
        let (text, highlights) = snippet::snippet(&message.text, &words, &places);
        hits.push(Hit { snippet: text.into(), highlights, score: found.score, message });
    }
    let next = if returned < matches.len() {
        // Fixes the upper end, so that new messages do not shift the ranking between pages.
        let before = request.from_place.before.or(newest.map(Seq::next));
        Some(SearchCursor { before, skip: returned })
    } else {
        older.map(|before| SearchCursor { before: Some(before), skip: 0 })
    };
    Ok(SearchResults { hits, next, partial })
}

/// The newest matches, newest first; the position from which to look for older ones; whether the timeout
/// expired.
fn gather(
    search_scope: &SearchScope,
    timeout: Duration,
    snapshot: &mut dyn Snapshot,
) -> Result<(Vec<Match>, Option<Seq>, bool), Fault> {
    let began = Instant::now();
    let (mut matches, mut older, mut partial) = (Vec::new(), None, false);
    snapshot.candidates(search_scope, &mut |seq, message| {
        let found = message.filter(|message| search_scope.admits(message)).and_then(|message| {
            let words = TokenizedText::of(&message.text);
            let score = score(&search_scope.wanted.find(&words)?, words.len());
            Some(Match { seq, id: message.id.clone(), score })
        });
        matches.extend(found);
        partial = began.elapsed() >= timeout;
        if matches.len() == MAX_SCORED_MATCHES || partial {
            older = Some(seq);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    })?;
    Ok((matches, older, partial))
}

/// Rank of a message: frequent occurrences, whole words and short messages score higher. It depends on this
/// message alone, so that the order reveals nothing about messages in other rooms. Rounded to tenths, so that
/// similar matches are ordered by time.
fn score(found: &[Vec<Occurrence>], words: usize) -> u32 {
    const TYPICAL_WORDS: f64 = 20.0;
    let damping = 1.2 * (0.25 + 0.75 * words as f64 / TYPICAL_WORDS);
    let weigh = |places: &Vec<Occurrence>| {
        let frequency: f64 = places.iter().map(|place| if place.whole { 1.0 } else { 0.5 }).sum();
        frequency / (frequency + damping)
    };
    (found.iter().map(weigh).sum::<f64>() * 10.0).round() as u32
}
