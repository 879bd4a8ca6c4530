//! The excerpt of a message that shows why it was found: plain text, and the byte ranges to highlight.

use super::terms::Occurrence;
use super::tokenizer::{TokenizedText, is_silent};
use parlor_model::characters::is_deceptive;
use std::ops::Range;

/// Maximum characters of a snippet, and characters shown before the first highlighted place.
const SNIPPET_CHARS: usize = 160;
const CONTEXT_CHARS: usize = 40;
/// Maximum number of occurrences per phrase that are considered.
const MAX_OCCURRENCES: usize = 500;

/// The snippet and the byte ranges to highlight in it, ordered and disjoint.
pub fn snippet(text: &str, words: &TokenizedText, found: &[Vec<Occurrence>]) -> (String, Vec<Range<usize>>) {
    let marks = marks(words, found);
    let window = window(text, best(&marks));
    let mut snippet = String::with_capacity(window.len() + 6);
    let mut ranges: Vec<Range<usize>> = Vec::new();
    if window.start > 0 {
        snippet.push('…');
    }
    let mut marks = marks.into_iter().filter(|mark| mark.end > window.start).peekable();
    for (at, c) in text[window.clone()].char_indices() {
        let at = window.start + at;
        while marks.next_if(|mark| mark.end <= at).is_some() {}
        let start = snippet.len();
        // Line breaks and direction marks become spaces, because they would break the layout of a result
        // list.
        snippet.push(if is_deceptive(c) { ' ' } else { c });
        if marks.peek().is_some_and(|mark| mark.contains(&at)) {
            match ranges.last_mut().filter(|last| last.end == start) {
                Some(last) => last.end = snippet.len(),
                None => ranges.push(start..snippet.len()),
            }
        }
    }
    if window.end < text.len() {
        snippet.push('…');
    }
    (snippet, ranges)
}

/// The ranges to highlight in the whole text, in order.
fn marks(words: &TokenizedText, found: &[Vec<Occurrence>]) -> Vec<Range<usize>> {
    let place = |o: &Occurrence| words.place(o.at).start..words.place(o.at + o.words - 1).end;
    let mut marks: Vec<Range<usize>> =
        found.iter().flat_map(|places| places.iter().take(MAX_OCCURRENCES)).map(place).collect();
    marks.sort_by_key(|mark| (mark.start, mark.end));
    marks
}

/// Start of the first part of the text with the most highlighted ranges.
fn best(marks: &[Range<usize>]) -> usize {
    let mut best = (0, 0);
    let mut end = 0;
    for (index, mark) in marks.iter().enumerate() {
        while marks.get(end).is_some_and(|other| other.start < mark.start + SNIPPET_CHARS - CONTEXT_CHARS) {
            end += 1;
        }
        if end - index > best.0 {
            best = (end - index, mark.start);
        }
    }
    best.1
}

/// The range of the text to show: starts shortly before `place`, at a word boundary if one is near, and never
/// splits a character.
fn window(text: &str, place: usize) -> Range<usize> {
    let back = |count: usize| text[..place].char_indices().rev().nth(count).map(|(at, _)| at);
    let mut start = back(CONTEXT_CHARS - 1).unwrap_or(0);
    if start > 0 {
        let gap = text[start..place].char_indices().find(|(_, c)| c.is_whitespace());
        start = gap.map_or(start, |(at, c)| start + at + c.len_utf8());
    }
    while text[start..].starts_with(is_silent) && start > 0 {
        start = text[..start].char_indices().next_back().map_or(0, |(at, _)| at);
    }
    let mut end = text[start..].char_indices().nth(SNIPPET_CHARS).map_or(text.len(), |(at, _)| start + at);
    end += text[end..].find(|c| !is_silent(c)).unwrap_or(text.len() - end).min(SNIPPET_CHARS);
    while !text.is_char_boundary(end) {
        end += 1;
    }
    start..end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::SearchTerms;

    /// The snippet with highlighted ranges in brackets.
    fn shown(query: &str, text: &str) -> String {
        let words = TokenizedText::of(text);
        let found = SearchTerms::parse(query).unwrap().find(&words).expect("the text has it");
        let (mut shown, ranges) = snippet(text, &words, &found);
        for range in ranges.into_iter().rev() {
            shown.insert(range.end, ']');
            shown.insert(range.start, '[');
        }
        shown
    }

    #[test]
    fn a_short_text_is_shown_whole_with_what_was_found() {
        assert_eq!(shown("build red", "The build is red."), "The [build] is [red].");
        assert_eq!(shown("\"is red\"", "The build is red."), "The build [is red].");
        assert_eq!(shown("caf", "Un Cafe\u{301}!"), "Un [Cafe\u{301}]!");
        assert_eq!(shown("好世", "你好世界"), "你[好世]界");
        assert_eq!(shown("two", "one\n<b>two</b>\u{202e}x"), "one <b>[two]</b> x", "markup is plain text");
    }

    #[test]
    fn a_long_text_is_shown_where_most_of_it_was_found() {
        let text = format!("red {} the build is red, {}", "lorem ipsum ".repeat(30), "dolor sit ".repeat(40));
        let shown = shown("build red", &text);
        assert!(shown.starts_with('…') && shown.ends_with('…'), "{shown}");
        assert!(shown.contains("the [build] is [red], dolor"), "{shown}");
        assert!((SNIPPET_CHARS..SNIPPET_CHARS + 10).contains(&shown.chars().count()), "{shown}");
    }

    #[test]
    fn no_character_is_cut_in_two() {
        let text = format!("{}needle{}", "e\u{301}".repeat(100), "o\u{302}\u{308}".repeat(300));
        let words = TokenizedText::of(&text);
        assert_eq!(words.len(), 1);
        let text = format!("{} needle {}", "e\u{301}".repeat(100), "o\u{302}\u{308}".repeat(300));
        let shown = shown("needle", &text);
        assert!(shown.contains("[needle] o\u{302}\u{308}"), "{shown}");
        assert!(shown.ends_with("\u{302}\u{308}…"), "{shown}");
    }
}
