//! Searches the conversation logs of the caller's agents by a regular expression.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::{EntryPage, SearchConversations};
use parlor_model::{AgentId, ConversationEntry, Field, Refusal, Scope, UserId};
use regex::{Regex, RegexBuilder};
use std::time::Instant;

/// Maximum number of entries in an answer.
const MAX_RESULTS: usize = 1000;
/// Maximum number of entries that one search reads. Later entries are not found; a filter narrows the search.
const MAX_SCANNED: usize = 50_000;
/// Number of entries read at a time.
const PAGE: usize = 500;
/// Maximum characters of a pattern.
const MAX_PATTERN_CHARS: usize = 1000;
/// Maximum size of a compiled pattern, in bytes. The time of a match is proportional to it.
const MAX_COMPILED_BYTES: usize = 1 << 18;
/// Maximum number of bytes of an entry that are matched between two looks at the clock.
const WINDOW_BYTES: usize = 8192;
/// Number of bytes before a window that are matched again with it. A longer match that crosses two windows is missed.
const OVERLAP_BYTES: usize = 1024;

impl Query for SearchConversations {
    type Facts = UserId;
    type Answer = Vec<ConversationEntry>;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        match self.pattern.chars().count() {
            1..=MAX_PATTERN_CHARS => Ok(()),
            _ => Err(Refusal::invalid(Field::SearchText, "must have 1 to 1000 characters")),
        }
    }

    fn is_search(&self) -> bool {
        true
    }

    /// Allowed for every user.
    fn permit(&self, caller: &CallerContext, _view: &mut ReadView<'_>) -> Result<UserId, PermitError> {
        Ok(caller.signed_in(Scope::Agents)?.user.id.clone())
    }

    fn answer(
        &self,
        owner: UserId,
        store: &mut dyn Snapshot,
        limits: &Limits,
    ) -> Result<Vec<ConversationEntry>, Fault> {
        let deadline = Instant::now() + limits.search_timeout;
        let (pattern, limit) = (compile(&self.pattern), self.limit.min(MAX_RESULTS));
        let (mut found, mut scanned) = (Vec::new(), 0);
        let is_wanted = |id: &AgentId| {
            let filter = &self.filter;
            filter.agent.as_ref().is_none_or(|agent| agent == id)
                && filter.agent_prefix.as_ref().is_none_or(|prefix| id.as_str().starts_with(&**prefix))
        };
        for agent in store.agents_of(&owner)?.into_iter().filter(|agent| is_wanted(&agent.id)) {
            for session in store.sessions(&agent.id)? {
                if self.filter.session.as_ref().is_some_and(|only| *only != session.id) {
                    continue;
                }
                let mut after = 0;
                loop {
                    let page = store.conversation(&agent.id, &session.id, EntryPage::After(after), PAGE)?;
                    let Some(last) = page.last() else { break };
                    (after, scanned) = (last.number, scanned + page.len());
                    for entry in page.into_iter().filter(|entry| self.filter.admits(entry)) {
                        // As in other searches, the matches found in time are the answer.
                        let Some(matches) = is_match(&pattern, &entry.text, deadline) else {
                            return Ok(found);
                        };
                        found.extend(matches.then_some(entry));
                        if found.len() == limit {
                            return Ok(found);
                        }
                    }
                    if scanned >= MAX_SCANNED {
                        return Ok(found);
                    }
                }
            }
        }
        Ok(found)
    }
}

/// Whether the text matches; `None` if the deadline has passed.
fn is_match(pattern: &Regex, text: &str, deadline: Instant) -> Option<bool> {
    let mut start = 0;
    loop {
        if Instant::now() >= deadline {
            return None;
        }
        let end = text.floor_char_boundary(start + WINDOW_BYTES);
        let from = text.floor_char_boundary(start.saturating_sub(OVERLAP_BYTES));
        let is_last = end == text.len();
        // A match that ends with the window may depend on the text behind it; the next window contains it.
        match pattern.find_at(&text[..end], from) {
            Some(found) if is_last || found.end() < end => return Some(true),
            _ if is_last => return Some(false),
            _ => start = end,
        }
    }
}

/// An invalid pattern, or one that is too large, is searched for as it is.
fn compile(pattern: &str) -> Regex {
    let build = |pattern: &str| {
        RegexBuilder::new(pattern).case_insensitive(true).size_limit(MAX_COMPILED_BYTES).build()
    };
    build(pattern)
        .or_else(|_| build(&regex::escape(pattern)))
        .expect("a literal of at most 1000 characters compiles within the limit")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_or_huge_pattern_is_a_literal() {
        assert!(compile("^tea.*now$").is_match("TEA right now"));
        assert!(compile("tea(").is_match("green Tea( hot)") && !compile("tea(").is_match("tea"));
        let huge = r"\w{1000}{1000}";
        assert!(compile(huge).is_match(&format!("x{huge}y")) && !compile(huge).is_match("x"));
        let longest = "𝔘".repeat(MAX_PATTERN_CHARS);
        assert!(compile(&longest).is_match(&longest));
    }

    #[test]
    fn a_long_text_is_matched_in_windows_until_the_deadline() {
        let later = Instant::now() + std::time::Duration::from_secs(3600);
        let matches = |pattern: &str, text: &str| is_match(&compile(pattern), text, later);
        let long = |end: &str| format!("{}{end}", "ä ".repeat(20_000));
        assert_eq!(matches("tea now", &long("tea now")), Some(true));
        assert_eq!(matches("now$", &long("tea now")), Some(true));
        assert_eq!(
            matches("ä$", &long("tea")),
            Some(false),
            "the end of a window is not the end of the text"
        );
        assert_eq!(
            matches("^ ", &long("tea")),
            Some(false),
            "the start of a window is not the start of the text"
        );
        let across = format!("{}tea now{}", " ".repeat(WINDOW_BYTES - 3), " ".repeat(WINDOW_BYTES));
        assert_eq!(matches("tea now", &across), Some(true));
        assert_eq!(matches("", ""), Some(true));
        assert_eq!(is_match(&compile("tea"), "tea", Instant::now()), None);
    }
}
