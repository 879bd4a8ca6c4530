//! Splits a text into normalised words for search.
//!
//! The index, the scan of unindexed messages, every store and the parser of search terms use these words.
//! Therefore an indexed search finds the same messages as a scan of all messages.

use std::ops::Range;
use unicode_normalization::char::{compose, decompose_compatible, is_combining_mark};

/// The words of one text, lower-cased and without diacritics, each with its range in that text.
///
/// A run of letters and digits is a word. In scripts without spaces, and among emoji, each character is a
/// word, so that every part of the text can be found.
#[derive(Debug, Default)]
pub struct TokenizedText {
    folded: String,
    spans: Vec<Span>,
}

#[derive(Debug)]
struct Span {
    folded: Range<usize>,
    source: Range<usize>,
}

/// Maximum number of words per text: more than any user's post has. The rest of a longer reply is not
/// searchable.
const MAX_WORDS: usize = 100_000;
/// Maximum bytes of one word. The rest is ignored: users do not search for it, and keys and hashes would fill
/// the index.
const MAX_WORD_BYTES: usize = 120;

impl TokenizedText {
    /// Version of the tokenising rules; an index built with other rules must be rebuilt.
    pub fn rules() -> String {
        format!("1 {:?} {:?}", unicode_normalization::UNICODE_VERSION, char::UNICODE_VERSION)
    }

    pub fn of(text: &str) -> Self {
        let mut tokenizer = Tokenizer { words: Self::default(), open: false, alone: None };
        tokenizer.words.folded.reserve(text.len() + 8);
        for (start, c) in text.char_indices() {
            tokenizer.take(c, start..start + c.len_utf8());
            if tokenizer.words.spans.len() > MAX_WORDS {
                tokenizer.words.spans.pop();
                break;
            }
        }
        tokenizer.words
    }

    pub fn len(&self) -> usize {
        self.spans.len()
    }

    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    pub fn get(&self, index: usize) -> &str {
        &self.folded[self.spans[index].folded.clone()]
    }

    /// Byte range of the word in the original text.
    pub fn place(&self, index: usize) -> Range<usize> {
        self.spans[index].source.clone()
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.spans.iter().map(|span| &self.folded[span.folded.clone()])
    }

    /// All words joined by spaces, as stored in the index.
    pub fn joined(&self) -> &str {
        &self.folded[..self.spans.last().map_or(0, |last| last.folded.end)]
    }
}

struct Tokenizer {
    words: TokenizedText,
    /// Whether the last word can be extended.
    open: bool,
    /// The last word, if it is a single character that the next one may combine with, such as か and ゛.
    alone: Option<char>,
}

impl Tokenizer {
    fn take(&mut self, c: char, source: Range<usize>) {
        if c.is_ascii() {
            match c.is_ascii_alphanumeric() {
                true => self.add(c.to_ascii_lowercase(), source),
                false => self.end(),
            }
        } else if c.is_alphanumeric() || is_combining_mark(c) || is_emoji(c) || is_silent(c) {
            decompose_compatible(c, |part| self.take_part(part, source.clone()));
        } else {
            self.end();
        }
    }

    fn take_part(&mut self, part: char, source: Range<usize>) {
        if let Some(whole) = self.alone.and_then(|last| compose(last, part)) {
            self.words.folded.pop();
            self.words.folded.push(whole);
            self.alone = Some(whole);
            return self.lengthen(source.end);
        }
        if is_silent(part) {
            return self.lengthen(source.end);
        }
        for letter in part.to_lowercase() {
            // Skips signs within decomposed characters, such as the slash of a fraction.
            if !letter.is_alphanumeric() && !is_combining_mark(letter) && !is_emoji(letter) {
                continue;
            }
            if stands_alone(letter) {
                self.end();
                self.add(letter, source.clone());
                self.open = false;
                self.alone = Some(letter);
            } else {
                // Greek writes the same letter differently at the end of a word.
                self.add(if letter == 'ς' { 'σ' } else { letter }, source.clone());
            }
        }
    }

    fn add(&mut self, letter: char, source: Range<usize>) {
        let TokenizedText { folded, spans } = &mut self.words;
        self.alone = None;
        match spans.last_mut().filter(|_| self.open) {
            Some(span) => {
                if folded.len() - span.folded.start + letter.len_utf8() <= MAX_WORD_BYTES {
                    folded.push(letter);
                }
                span.folded.end = folded.len();
                span.source.end = source.end;
            }
            None => {
                if !spans.is_empty() {
                    folded.push(' ');
                }
                let start = folded.len();
                folded.push(letter);
                spans.push(Span { folded: start..folded.len(), source });
                self.open = true;
            }
        }
    }

    fn end(&mut self) {
        self.open = false;
        self.alone = None;
    }

    /// Extends the range of the last word by characters that are ignored in search, such as diacritics.
    fn lengthen(&mut self, end: usize) {
        if let Some(span) = self.words.spans.last_mut().filter(|_| self.open || self.alone.is_some()) {
            span.folded.end = self.words.folded.len();
            span.source.end = end;
        }
    }
}

/// Characters that search ignores: diacritics, optional Hebrew and Arabic vowel points, skin tones, joiners
/// and invisible characters.
pub fn is_silent(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{200c}' | '\u{200d}' | '\u{2060}' | '\u{feff}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' | '\u{1f3fb}'..='\u{1f3ff}'
        | '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}'
        | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}' | '\u{3099}' | '\u{309a}'
        | '\u{591}'..='\u{5bd}' | '\u{5bf}' | '\u{5c1}'..='\u{5c2}' | '\u{5c4}'..='\u{5c5}' | '\u{5c7}'
        | '\u{610}'..='\u{61a}' | '\u{640}' | '\u{64b}'..='\u{65f}' | '\u{670}' | '\u{6d6}'..='\u{6ed}')
}

fn is_emoji(c: char) -> bool {
    matches!(c, '\u{2600}'..='\u{27bf}' | '\u{1f000}'..='\u{1faff}')
}

/// Scripts without spaces between words: Thai, Lao, Burmese, Khmer, Hangul, kana, bopomofo, ideographs.
fn stands_alone(c: char) -> bool {
    is_emoji(c)
        || matches!(c,
            '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
            | '\u{1100}'..='\u{11ff}' | '\u{a960}'..='\u{a97f}' | '\u{ac00}'..='\u{d7ff}'
            | '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(TokenizedText::of(text).joined(), expected, "{text:?}");
    }

    #[test]
    fn words_are_letters_and_digits_in_lower_case() {
        check("", "");
        check(" ,.- ", "");
        check("Hello, World 2!", "hello world 2");
        check("snake_case kebab-case a.b@c", "snake case kebab case a b c");
        check("line\nbreak\tand\0more", "line break and more");
        check("İstanbul ΣΊΣΥΦΟΣ Σίσυφος ẞ", "istanbul σισυφοσ σισυφοσ ß");
    }

    #[test]
    fn diacritics_and_forms_do_not_matter() {
        check("Café cafe\u{301} CAFÉ", "cafe cafe cafe");
        check("ﬁne x² ½ Ⅳ", "fine x2 12 iv");
        check("ｆｕｌｌ　ｗｉｄｔｈ", "full width");
        check("co\u{ad}operate zero\u{200d}width", "cooperate zerowidth");
        check("שָׁלוֹם مُحَمَّد", "שלום محمد");
        check("हिन्दी", "हिन्दी");
    }

    #[test]
    fn where_no_spaces_are_written_each_character_is_a_word() {
        check("你好world再见", "你 好 world 再 见");
        check("ガラス か\u{3099} ｶﾞ", "ガ ラ ス が ガ");
        check("한국 \u{1112}\u{1161}\u{11ab}", "한 국 한");
        check("ไทย", "ไ ท ย");
        check("中・文。", "中 文");
        check("go🎉now 👍🏽 ❤\u{fe0f}", "go 🎉 now 👍 ❤");
    }

    #[test]
    fn a_word_has_its_range_in_the_text() {
        let text = "«Ein Cafe\u{301}», か\u{3099}!";
        let words = TokenizedText::of(text);
        let places: Vec<&str> = (0..words.len()).map(|index| &text[words.place(index)]).collect();
        assert_eq!(places, ["Ein", "Cafe\u{301}", "か\u{3099}"]);
        assert_eq!(words.iter().collect::<Vec<_>>(), ["ein", "cafe", "が"]);
    }

    #[test]
    fn very_long_words_and_texts_are_truncated() {
        let words = TokenizedText::of(&"x".repeat(1000));
        assert_eq!((words.len(), words.get(0).len(), words.place(0)), (1, MAX_WORD_BYTES, 0..1000));
        let words = TokenizedText::of(&"a ".repeat(MAX_WORDS + 5));
        assert_eq!((words.len(), words.joined().len()), (MAX_WORDS, 2 * MAX_WORDS - 1));
    }

    proptest! {
        #![proptest_config(parlor_seed::proptest_config())]

        #[test]
        fn tokenising_is_idempotent_and_ranges_lie_in_the_text(text in ".{0,60}") {
            let words = TokenizedText::of(&text);
            let again = TokenizedText::of(words.joined());
            prop_assert_eq!(words.joined(), again.joined());
            prop_assert_eq!(words.joined(), words.iter().collect::<Vec<_>>().join(" "));
            for index in 0..words.len() {
                prop_assert!(!text[words.place(index)].is_empty());
                // The tokenizer of the index splits at every other ASCII character.
                let plain = |b: u8| !b.is_ascii() || b.is_ascii_lowercase() || b.is_ascii_digit();
                prop_assert!(words.get(index).bytes().all(plain));
            }
        }
    }
}
