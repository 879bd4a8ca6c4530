//! Searches the conversation logs of the caller's agents by a regular expression.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::{EntryPage, SearchConversations};
use parlor_model::{AgentId, ConversationEntry, Field, Refusal, Scope, UserId};
use regex::{Regex, RegexBuilder};

/// Maximum number of entries in an answer.
const MAX_RESULTS: usize = 1000;
/// Maximum number of entries that one search reads. Later entries are not found; a filter narrows the search.
const MAX_SCANNED: usize = 50_000;
/// Number of entries read at a time.
const PAGE: usize = 500;
/// Maximum characters of a pattern.
const MAX_PATTERN_CHARS: usize = 1000;
/// Maximum size of a compiled pattern, in bytes.
const MAX_COMPILED_BYTES: usize = 1 << 20;

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
        _limits: &Limits,
    ) -> Result<Vec<ConversationEntry>, Fault> {
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
                    let matches = |entry: &ConversationEntry| {
                        self.filter.admits(entry) && pattern.is_match(&entry.text)
                    };
                    found.extend(page.into_iter().filter(matches).take(limit - found.len()));
                    if found.len() == limit || scanned >= MAX_SCANNED {
                        return Ok(found);
                    }
                }
            }
        }
        Ok(found)
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
}
