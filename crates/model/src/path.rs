//! Paths and path patterns: the address space of rooms, agents and external sources.
//!
//! Owns: the normal form and the matching rules. `*` matches one segment, `**` any number of segments. A
//! match takes at most (pattern segments × path segments) steps for every pattern.

use std::fmt;
use std::sync::Arc;

const MAX_SEGMENTS: usize = 32;
const MAX_BYTES: usize = 1024;

/// Reason why a text is not a valid path or pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvalidPath {
    Empty,
    TooLong,
    ControlCharacter,
    TooManyWildcards,
}

impl fmt::Display for InvalidPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "path is required",
            Self::TooLong => "path is longer than 32 segments or 1024 bytes",
            Self::ControlCharacter => "path contains a control character",
            Self::TooManyWildcards => "a pattern may contain ** at most twice",
        })
    }
}

fn normalise(text: &str) -> Result<Arc<str>, InvalidPath> {
    if text.len() > MAX_BYTES {
        return Err(InvalidPath::TooLong);
    }
    if text.chars().any(char::is_control) {
        return Err(InvalidPath::ControlCharacter);
    }
    let segments: Vec<&str> = text.split('/').filter(|segment| !segment.is_empty()).collect();
    match segments.len() {
        0 => Err(InvalidPath::Empty),
        n if n > MAX_SEGMENTS => Err(InvalidPath::TooLong),
        _ => Ok(segments.join("/").into()),
    }
}

/// A normalised address: no leading, trailing or doubled `/`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path(Arc<str>);

impl Path {
    pub fn parse(text: &str) -> Result<Self, InvalidPath> {
        normalise(text).map(Self)
    }

    /// Wraps text from the store without validation. The text was validated before it was stored.
    pub fn stored(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    pub fn of_room(room: &crate::RoomId) -> Self {
        Self(format!("room/{room}").into())
    }

    /// Returns the room whose path this is.
    pub fn room(&self) -> Option<crate::RoomId> {
        self.strip_domain("room").and_then(|room| crate::RoomId::parse(room).ok())
    }

    pub fn of_agent(agent: &crate::AgentId) -> Self {
        Self(format!("agent/{agent}").into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn segments(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('/')
    }

    /// Returns the part after `domain/`, or `None` if the path does not start with it.
    pub fn strip_domain(&self, domain: &str) -> Option<&str> {
        self.0.strip_prefix(domain)?.strip_prefix('/')
    }

    /// Whether programs can publish on the path, follow it and read its history. Paths of rooms follow the rules of
    /// rooms, and messages on paths of agents are their mail.
    pub fn takes_publications(&self) -> bool {
        !matches!(self.segments().next(), Some("room" | "agent"))
    }

    pub fn has_wildcard(&self) -> bool {
        self.segments().any(|segment| segment == "*" || segment == "**")
    }
}

encode_as_text!(Path, Self::parse);
encode_as_text!(Pattern, Self::parse);

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A normalised path pattern, as used in subscriptions. A segment may be `*` or `**`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pattern(Arc<str>);

impl Pattern {
    pub fn parse(text: &str) -> Result<Self, InvalidPath> {
        let normalised = normalise(text)?;
        if normalised.split('/').filter(|segment| *segment == "**").count() > 2 {
            return Err(InvalidPath::TooManyWildcards);
        }
        Ok(Self(normalised))
    }

    /// Wraps text from the store without validation. The text was validated before it was stored.
    pub fn stored(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn segments(&self) -> impl Iterator<Item = &str> {
        self.0.split('/')
    }

    /// Returns whether the pattern has `**` before its last segment, so that the rest can match at any depth.
    pub fn has_inner_globstar(&self) -> bool {
        self.0.starts_with("**/") || self.0.contains("/**/")
    }

    pub fn matches(&self, path: &Path) -> bool {
        matches(&self.0, path.as_str())
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns whether `pattern` matches `path`. Wildcards in `path` are plain text.
///
/// Dynamic programming with one row: `reached[i]` is true if the pattern segments processed so far match the
/// first `i` segments of the path. Each pattern segment updates the row in place.
pub fn matches(pattern: &str, path: &str) -> bool {
    let path: Vec<&str> = path.split('/').collect();
    let mut reached = vec![false; path.len() + 1];
    reached[0] = true;
    for segment in pattern.split('/') {
        if segment == "**" {
            if let Some(first) = reached.iter().position(|r| *r) {
                reached[first..].fill(true);
            }
            continue;
        }
        for end in (0..path.len()).rev() {
            reached[end + 1] = reached[end] && (segment == "*" || segment == path[end]);
        }
        reached[0] = false;
    }
    reached[path.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, path: &str, expected: bool) {
        assert_eq!(matches(pattern, path), expected, "{pattern} against {path}");
    }

    #[test]
    fn a_star_is_exactly_one_segment() {
        check("agent/*", "agent/researcher", true);
        check("agent/*", "agent/a/b", false);
        check("agent/*", "agent", false);
        check("slack/*/#*", "slack/team/#general", false);
    }

    #[test]
    fn two_stars_are_any_number_of_segments() {
        check("agent/**", "agent", true);
        check("agent/**", "agent/a/b/c", true);
        check("a/**/b", "a/b", true);
        check("a/**/b", "a/x/y/b", true);
        check("a/**/b", "a/b/c", false);
        check("**/x", "a/x/b", false);
    }

    #[test]
    fn an_inner_globstar_is_a_double_star_before_the_end() {
        for (pattern, expected) in [
            ("**/a", true),
            ("a/**/b", true),
            ("**/**", true),
            ("a/**", false),
            ("**", false),
            ("***/b", false),
            ("a/*/b**/c", false),
        ] {
            assert_eq!(Pattern::parse(pattern).unwrap().has_inner_globstar(), expected, "{pattern}");
        }
    }

    #[test]
    fn a_hostile_pattern_costs_no_more_than_pattern_times_path() {
        let pattern = "**/a/".repeat(16) + "b";
        let path = vec!["a"; 32].join("/");
        check(&pattern, &path, false);
    }

    #[test]
    fn paths_of_rooms_and_agents_take_no_publications() {
        let takes = |path: &str| Path::parse(path).unwrap().takes_publications();
        assert!(takes("slack/team") && takes("rooms/lobby") && takes("*/x"));
        assert!(!takes("room/lobby") && !takes("room") && !takes("agent/coder") && !takes("/agent/a/b"));
    }

    #[test]
    fn paths_are_normalised_and_bounded() {
        assert_eq!(Path::parse("/slack//team/").unwrap().as_str(), "slack/team");
        assert_eq!(Path::parse("//"), Err(InvalidPath::Empty));
        assert_eq!(Path::parse("a\nb"), Err(InvalidPath::ControlCharacter));
        assert_eq!(Path::parse(&"a/".repeat(33)), Err(InvalidPath::TooLong));
        assert_eq!(Pattern::parse("**/**/**"), Err(InvalidPath::TooManyWildcards));
    }
}
