//! Parser for the search syntax: `some words`, `"a phrase"`, `prefix*`, `-excluded`.

use super::tokenizer::TokenizedText;
use parlor_model::{Field, Refusal};

/// Parsed search terms: every phrase in `all` must occur, and no phrase in `none`.
#[derive(Debug, PartialEq)]
pub struct SearchTerms {
    pub all: Vec<Phrase>,
    pub none: Vec<Phrase>,
}

/// Consecutive words; the last may be a prefix.
#[derive(Debug, PartialEq)]
pub struct Phrase {
    pub words: Vec<Box<str>>,
    pub begins: bool,
}

/// An occurrence of a phrase: index of its first word in the text, number of words, and whether the last word
/// matches completely.
pub struct Occurrence {
    pub at: usize,
    pub words: usize,
    pub whole: bool,
}

/// Minimum characters of a prefix: a shorter one matches too many words.
const MIN_PREFIX_CHARS: usize = 3;
/// Maximum number of words in a search: each costs a lookup in the index.
const MAX_WORDS: usize = 64;

impl SearchTerms {
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let invalid = |rule| Refusal::invalid(Field::SearchText, rule);
        let mut rest = text.trim();
        if !(2..=500).contains(&rest.chars().count()) {
            return Err(invalid("must have 2 to 500 characters"));
        }
        let mut terms = Self { all: Vec::new(), none: Vec::new() };
        let mut count = 0;
        while !rest.is_empty() {
            let without = rest.strip_prefix('-').filter(|after| !after.starts_with(char::is_whitespace));
            rest = without.unwrap_or(rest);
            let quoted = rest.strip_prefix(is_quote);
            let (part, after) = match quoted {
                Some(inside) => {
                    inside.split_once(is_quote).ok_or(invalid("has a quotation mark without its pair"))?
                }
                None => {
                    rest.split_at(rest.find(|c: char| c.is_whitespace() || is_quote(c)).unwrap_or(rest.len()))
                }
            };
            let starred = if quoted.is_some() { after.starts_with('*') } else { part.ends_with('*') };
            rest = after.strip_prefix('*').filter(|_| quoted.is_some()).unwrap_or(after).trim_start();
            let words: Vec<Box<str>> = TokenizedText::of(part).iter().map(Into::into).collect();
            let Some(last) = words.last() else { continue };
            count += words.len();
            // The last word may still be incomplete while the user is typing, so it is a prefix; a quoted
            // phrase is matched literally.
            let typing = quoted.is_none() && without.is_none() && rest.is_empty();
            let long_enough = last.chars().nth(MIN_PREFIX_CHARS - 1).is_some();
            if starred && !long_enough && last.is_ascii() {
                return Err(invalid("needs at least three letters before *"));
            }
            let phrase = Phrase { begins: (starred || typing) && long_enough, words };
            if without.is_some() { terms.none.push(phrase) } else { terms.all.push(phrase) }
        }
        if terms.all.is_empty() {
            return Err(invalid("must contain a word to look for"));
        }
        if count > MAX_WORDS {
            return Err(invalid("must contain at most 64 words"));
        }
        Ok(terms)
    }

    /// Quick pre-check without tokenising: `false` means that the text does not match; `true` means that it
    /// may.
    pub fn may_be_in(&self, text: &str) -> bool {
        let occurs = |word: &str| {
            text.as_bytes().windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
        };
        // Non-ASCII letters have several forms, so the comparison of bytes is not conclusive.
        !text.is_ascii() || self.all.iter().flat_map(|phrase| &phrase.words).all(|word| occurs(word))
    }

    /// The occurrences of each phrase in `all`; `None` if one of them does not occur, or if a phrase in
    /// `none` does.
    pub fn find(&self, words: &TokenizedText) -> Option<Vec<Vec<Occurrence>>> {
        if self.none.iter().any(|phrase| phrase.occurrences(words).next().is_some()) {
            return None;
        }
        let found = self.all.iter().map(|phrase| phrase.occurrences(words).collect::<Vec<_>>());
        found.map(|places| (!places.is_empty()).then_some(places)).collect()
    }
}

impl Phrase {
    fn occurrences(&self, words: &TokenizedText) -> impl Iterator<Item = Occurrence> {
        let (last, before) = self.words.split_last().expect("a phrase has a word");
        let starts = 0..(words.len() + 1).saturating_sub(self.words.len());
        starts.filter_map(move |at| {
            let end = words.get(at + before.len());
            let whole = end == &**last;
            let fits = (whole || self.begins && end.starts_with(&**last))
                && before.iter().enumerate().all(|(index, word)| words.get(at + index) == &**word);
            fits.then_some(Occurrence { at, words: self.words.len(), whole })
        })
    }
}

/// Accepts typographic quotation marks too, which phones insert automatically.
fn is_quote(c: char) -> bool {
    matches!(c, '"' | '“' | '”' | '„' | '«' | '»')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The terms in short form, as `+a b +c* -d`: each phrase with its sign.
    fn summary(terms: &SearchTerms) -> String {
        let show = |sign: &str, phrase: &Phrase| {
            format!("{sign}{}{}", phrase.words.join(" "), if phrase.begins { "*" } else { "" })
        };
        let all = terms.all.iter().map(|phrase| show("+", phrase));
        all.chain(terms.none.iter().map(|phrase| show("-", phrase))).collect::<Vec<_>>().join(" ")
    }

    #[track_caller]
    fn reads(text: &str, expected: &str) {
        assert_eq!(summary(&SearchTerms::parse(text).unwrap()), expected, "{text:?}");
    }

    #[test]
    fn words_phrases_prefixes_and_exclusions_are_parsed() {
        reads("deploy the build", "+deploy +the +build*");
        reads(" Café ", "+cafe*");
        reads("\"the build\" fails", "+the build +fails*");
        reads("fails \"the build\"", "+fails +the build");
        reads("\"the bui\"*", "+the bui*");
        reads("dep* fails a", "+dep* +fails +a");
        reads("go to", "+go +to");
        reads("build -red -\"on fire\" now", "+build +now* -red -on fire");
        reads("build - red", "+build +red*");
        reads("error-code", "+error code*");
        reads("你好吗", "+你 好 吗");
        reads("well “known” words", "+well +known +words*");
        reads("a\"b\"c", "+a +b +c");
        reads("x ... y", "+x +y");
    }

    #[test]
    fn searches_without_a_word_are_refused() {
        for bad in [
            "",
            "a",
            "  b  ",
            "--",
            "\"\"",
            "-only",
            "...",
            "\"open",
            "a* b",
            "ab*",
            &"x".repeat(501),
            &"字".repeat(65),
        ] {
            assert!(matches!(SearchTerms::parse(bad), Err(Refusal::Invalid(_))), "{bad:?}");
        }
        assert!(SearchTerms::parse(&"字".repeat(64)).is_ok());
    }

    #[track_caller]
    fn finds(query: &str, text: &str, expected: bool) {
        let terms = SearchTerms::parse(query).unwrap();
        let found = terms.find(&TokenizedText::of(text)).is_some();
        assert_eq!(found, expected, "{query:?} in {text:?}");
        assert!(!found || terms.may_be_in(text), "{query:?} in {text:?}");
    }

    #[test]
    fn the_quick_check_rejects_texts_without_the_letters() {
        let may_be = |query: &str, text: &str| SearchTerms::parse(query).unwrap().may_be_in(text);
        assert!(may_be("fails \"the build\"", "BUILD THE... it fails"));
        assert!(!may_be("fails \"the build\"", "the build"));
        assert!(!may_be("你好", "plain"));
        assert!(!may_be("deploy", ""));
        assert!(may_be("cafe", "Café"));
    }

    #[test]
    fn all_must_occur_and_phrases_in_their_order() {
        finds("build fails", "The build of today fails", true);
        finds("build fails", "The build of today", false);
        finds("\"build fails\"", "The build of today fails", false);
        finds("\"build fails\"", "a BUILD, fails!", true);
        finds("bui", "the building", true);
        finds("\"bui\"", "the building", false);
        finds("bui fails", "the building fails", false);
        finds("bui* fails", "the building fails", true);
        finds("build -red", "the red build", false);
        finds("build -red", "the reddish build", true);
        finds("好世", "你好世界", true);
        finds("世好", "你好世界", false);
        finds("\"a b c\"", "a b", false);
        finds("anything", "", false);
    }
}
