//! Finds what was said: which messages a search could find comes from the store, whether it does is decided here.
//!
//! Owns: the words of a text, the language of a search, who sees what of it, order and snippets. Never: an index.

mod snippet;
mod terms;
mod tokenizer;

pub use terms::{Phrase, SearchTerms};
pub use tokenizer::TokenizedText;

use crate::Fault;
use crate::hub::ANSWER_BYTES;
use crate::ports::Snapshot;
use parlor_model::query::{Hit, Search, SearchCursor, SearchResults};
use parlor_model::{Member, Message, MessageId, Seq};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use terms::Occurrence;

/// How many matches are weighed against each other. What is older than the newest of them is on the next pages.
const MAX_SCORED_MATCHES: usize = 1000;

/// A search as the store sees it.
pub struct SearchScope<'a> {
    pub asked: &'a Search,
    pub wanted: &'a SearchTerms,
    rooms: HashMap<&'a str, &'a Member>,
}

impl<'a> SearchScope<'a> {
    /// In the rooms of these memberships, and nowhere else.
    pub fn new(asked: &'a Search, wanted: &'a SearchTerms, memberships: &'a [Member]) -> Self {
        let within = |member: &&Member| asked.room.as_ref().is_none_or(|room| *room == member.room);
        let rooms = memberships.iter().filter(within).map(|member| (member.room.as_str(), member)).collect();
        Self { asked, wanted, rooms }
    }

    pub fn rooms(&self) -> impl ExactSizeIterator<Item = &str> {
        self.rooms.keys().copied()
    }

    pub fn is_in(&self, room: &str) -> bool {
        self.rooms.contains_key(room)
    }

    /// Whether this person may see the message, and it is of the kind asked for; its words aside.
    fn admits(&self, message: &Message) -> bool {
        let Search { sender, sender_kind, kind, from, to, .. } = self.asked;
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

/// The answer to a search, from one snapshot: who is a member and what is said are of the same moment. When
/// `patience` is over it answers with what it has, and says so.
pub fn search(
    asked: &Search,
    wanted: &SearchTerms,
    memberships: &[Member],
    patience: Duration,
    snapshot: &mut dyn Snapshot,
) -> Result<SearchResults, Fault> {
    let search_scope = SearchScope::new(asked, wanted, memberships);
    if search_scope.rooms.is_empty() {
        return Ok(SearchResults::default());
    }
    let (mut matches, older, partial) = gather(&search_scope, patience, snapshot)?;
    let newest = matches.first().map(|newest| newest.seq);
    matches.sort_by_key(|found| (Reverse(found.score), Reverse(found.seq)));
    let (mut hits, mut bytes) = (Vec::new(), 0);
    let mut told = asked.from_place.skip;
    for found in matches.iter().skip(told).take(asked.limit) {
        let message = snapshot.message(&found.id)?.expect("seen in this very snapshot");
        bytes += message.length();
        if bytes > ANSWER_BYTES && !hits.is_empty() {
            break;
        }
        told += 1;
        let words = TokenizedText::of(&message.text);
        let places = wanted.find(&words).unwrap_or_default();
        let (text, highlights) = snippet::snippet(&message.text, &words, &places);
        hits.push(Hit { snippet: text.into(), highlights, score: found.score, message });
    }
    let next = if told < matches.len() {
        // What comes in meanwhile must not move what was weighed.
        let before = asked.from_place.before.or(newest.map(Seq::next));
        Some(SearchCursor { before, skip: told })
    } else {
        older.map(|before| SearchCursor { before: Some(before), skip: 0 })
    };
    Ok(SearchResults { hits, next, partial })
}

/// The newest matches, newest first; from where to look for older ones; whether time ran out.
fn gather(
    search_scope: &SearchScope,
    patience: Duration,
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
        partial = began.elapsed() >= patience;
        if matches.len() == MAX_SCORED_MATCHES || partial {
            older = Some(seq);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    })?;
    Ok((matches, older, partial))
}

/// How well a message fits: often is better than once, whole words than beginnings, and in a short message better
/// than somewhere in a long one. Rests on this message alone: what others say elsewhere must not show in the order.
/// In tenths, so that those that fit about as well come by their time.
fn score(found: &[Vec<Occurrence>], words: usize) -> u32 {
    const TYPICAL_WORDS: f64 = 20.0;
    let damping = 1.2 * (0.25 + 0.75 * words as f64 / TYPICAL_WORDS);
    let weigh = |places: &Vec<Occurrence>| {
        let often: f64 = places.iter().map(|place| if place.whole { 1.0 } else { 0.5 }).sum();
        often / (often + damping)
    };
    (found.iter().map(weigh).sum::<f64>() * 10.0).round() as u32
}
