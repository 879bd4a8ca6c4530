//! Parses and matches the rules of one ignore file, as specified in `gitignore(5)`. Does no I/O.
//!
//! Matching takes at most time proportional to the product of the lengths of rule and path, for any file
//! content. A line that is not a valid pattern matches nothing.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

#[derive(Debug, Default)]
pub struct Gitignore(Vec<Rule>);

#[derive(Debug)]
struct Rule {
    /// The rule begins with `!`: matching paths are not ignored.
    is_negated: bool,
    /// The rule ends with a slash: it matches folders only.
    only_folders: bool,
    segments: Vec<Part<Vec<Part<Letter>>>>,
}

/// Element of a pattern: of a path, where `Many` is `**` and `One` a segment; or of a segment, where `Many`
/// is `*` and `One` a character.
#[derive(Debug)]
enum Part<T> {
    Many,
    One(T),
}

#[derive(Debug)]
enum Letter {
    Any,
    Is(u32),
    In { ranges: Vec<(u32, u32)>, negated: bool },
}

impl Gitignore {
    pub fn parse(text: &str) -> Self {
        Self(text.lines().filter_map(Rule::parse).collect())
    }

    /// Whether a path below the file's folder is ignored; `None` if no rule matches it. Later rules override
    /// earlier ones.
    pub fn ignores(&self, path: &Path, is_folder: bool) -> Option<bool> {
        let path: Vec<Vec<u32>> = path.iter().map(|name| letters(name.as_bytes())).collect();
        let matches = |rule: &&Rule| (is_folder || !rule.only_folders) && rule.matches(&path);
        self.0.iter().rev().find(matches).map(|rule| !rule.is_negated)
    }
}

impl Rule {
    fn parse(line: &str) -> Option<Self> {
        let line = if line.ends_with("\\ ") { line } else { line.trim_end() };
        if line.is_empty() || line.starts_with('#') {
            return None;
        }
        let (is_negated, line) = strip(line, |line| line.strip_prefix('!'));
        let (is_anchored, line) = strip(line, |line| line.strip_prefix('/'));
        let (only_folders, line) = strip(line, |line| line.strip_suffix('/'));
        let mut segments = Vec::new();
        if !is_anchored && !line.contains('/') {
            segments.push(Part::Many);
        }
        for segment in line.split('/') {
            segments.push(match segment {
                "**" => Part::Many,
                _ => Part::One(parse_segment(segment)?),
            });
        }
        if line.ends_with("/**") {
            // `a/**` matches the content of the folder, not the folder itself.
            segments.push(Part::One(vec![Part::Many]));
        }
        Some(Self { is_negated, only_folders, segments })
    }

    fn matches(&self, path: &[Vec<u32>]) -> bool {
        let segment = |pattern: &Vec<Part<Letter>>, name: &Vec<u32>| matches(pattern, name, &Letter::matches);
        matches(&self.segments, path, &segment)
    }
}

fn strip<'a>(line: &'a str, stripped: impl Fn(&'a str) -> Option<&'a str>) -> (bool, &'a str) {
    stripped(line).map_or((false, line), |rest| (true, rest))
}

/// Characters of a file name; each byte that is not valid UTF-8 becomes a code point beyond Unicode.
fn letters(name: &[u8]) -> Vec<u32> {
    let chunks = name.utf8_chunks();
    let letters = chunks.flat_map(|chunk| {
        let invalid = chunk.invalid().iter().map(|&byte| u32::from(char::MAX) + 1 + u32::from(byte));
        chunk.valid().chars().map(u32::from).chain(invalid)
    });
    letters.collect()
}

fn parse_segment(segment: &str) -> Option<Vec<Part<Letter>>> {
    let mut parts = Vec::new();
    let mut rest = segment.chars();
    while let Some(letter) = rest.next() {
        parts.push(match letter {
            '*' => Part::Many,
            '?' => Part::One(Letter::Any),
            '[' => Part::One(class(&mut rest)?),
            '\\' => Part::One(Letter::Is(rest.next()?.into())),
            letter => Part::One(Letter::Is(letter.into())),
        });
    }
    Some(parts)
}

/// Parses a character class after its `[`, up to and including its `]`.
fn class(rest: &mut std::str::Chars<'_>) -> Option<Letter> {
    let mut ranges = Vec::new();
    let negated = rest.as_str().starts_with(['!', '^']);
    if negated {
        rest.next();
    }
    loop {
        let from = match rest.next()? {
            ']' if !ranges.is_empty() => return Some(Letter::In { ranges, negated }),
            '\\' => rest.next()?,
            letter => letter,
        };
        let is_range = rest.as_str().starts_with('-') && !rest.as_str().starts_with("-]");
        let to = match is_range.then(|| rest.nth(1)) {
            None => from,
            Some(Some('\\')) => rest.next()?,
            Some(to) => to?,
        };
        ranges.push((from.into(), to.into()));
    }
}

impl Letter {
    fn matches(&self, letter: &u32) -> bool {
        match self {
            Self::Any => true,
            Self::Is(this) => this == letter,
            Self::In { ranges, negated } => {
                ranges.iter().any(|(from, to)| (from..=to).contains(&letter)) != *negated
            }
        }
    }
}

/// Whether a pattern matches the whole `sequence`. On a mismatch, only the last `Many` is extended by one
/// item: the parts before it have matched as early as possible, so no other alternative can succeed.
fn matches<P, T>(pattern: &[Part<P>], sequence: &[T], matches_item: &impl Fn(&P, &T) -> bool) -> bool {
    let (mut at, mut next) = (0, 0);
    let mut last_many = None;
    loop {
        match (pattern.get(at), sequence.get(next)) {
            (Some(Part::Many), _) => {
                at += 1;
                last_many = Some((at, next));
            }
            (Some(Part::One(part)), Some(item)) if matches_item(part, item) => {
                at += 1;
                next += 1;
            }
            (rest, None) => return rest.is_none(),
            (_, Some(_)) => match &mut last_many {
                Some((after, taken)) => {
                    *taken += 1;
                    (at, next) = (*after, *taken);
                }
                None => return false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_match_what_git_matches() {
        let check = |text: &str, ignored: &[&str], others: &[&str]| {
            let rules = Gitignore::parse(text);
            for (paths, expected) in [(ignored, true), (others, false)] {
                for path in paths {
                    let (is_folder, name) = strip(path, |path| path.strip_suffix('/'));
                    let found = rules.ignores(Path::new(name), is_folder).unwrap_or(false);
                    assert_eq!(found, expected, "{path} under {text:?}");
                }
            }
        };
        check("", &[], &["a"]);
        check("# a\n\n  \n", &[], &["a", "# a", "#"]);
        check("a", &["a", "a/", "b/a", "b/c/a"], &["ab", "a/b", "ba"]);
        check("/a", &["a", "a/"], &["b/a"]);
        check("a/", &["a/", "b/a/"], &["a", "b/a"]);
        check("a/b", &["a/b", "a/b/"], &["c/a/b", "b", "a/c/b"]);
        check("/a/b/", &["a/b/"], &["a/b", "c/a/b/"]);
        check("*.rs", &["a.rs", ".rs", "b/a.rs"], &["a.rsx", "a.rs/b"]);
        check("a*b*c", &["abc", "aXbYc", "abcbc", "d/abc"], &["ab", "acb", "a/b/c"]);
        check("/*", &["a", "b/"], &["a/b"]);
        check("a/*", &["a/b"], &["a", "a/b/c"]);
        check("?", &["a", "ä", "b/c"], &["ab", "b/cd"]);
        check("[a-c]x[!0-9]", &["axy", "cxä", "bx-"], &["ax1", "dxy", "axyz"]);
        check("[]-]", &["]", "-"], &["a"]);
        check("[^a]", &["b"], &["a"]);
        check("[a\\]b]", &["a", "]", "b"], &["\\"]);
        check("**", &["a", "a/b", "a/b/"], &[]);
        check("**/", &["a/", "a/b/"], &["a", "a/b"]);
        check("**/a", &["a", "b/a", "c/b/a"], &["a/b"]);
        check("a/**", &["a/b", "a/b/c"], &["a", "a/", "b/a/c"]);
        check("a/**/b", &["a/b", "a/c/b", "a/c/d/b"], &["a", "b", "a/bc", "c/a/b"]);
        check("**/a/**/b/*.c", &["a/b/x.c", "z/a/y/b/x.c", "a/b/b/x.c"], &["a/x.c", "a/b/c/x.c"]);
        check("a**b", &["ab", "aXXb"], &["a/b"]);
        check("*\n!b\n!d/\n", &["a", "d"], &["b", "c/b", "d/"]);
        check("!a\na", &["a"], &[]);
        check("\\#a\n\\!b\n\\*", &["#a", "!b", "*"], &["a", "b", "c"]);
        check("a  \nb\\ ", &["a", "b "], &["b"]);
        check("{a,b}", &["{a,b}"], &["a", "b"]);
        check("[a\na\\\nc", &["c"], &["a", "[a", "a\\"]);
        check("[b-a]", &[], &["a", "b"]);
        check("/\n!\na//b", &[], &["a", "a/b"]);
    }

    #[test]
    fn a_name_that_is_not_utf8_is_matched_by_its_bytes() {
        let path = Path::new(std::ffi::OsStr::from_bytes(b"a\xff\xfe"));
        assert_eq!(Gitignore::parse("a??").ignores(path, false), Some(true));
        assert_eq!(Gitignore::parse("a?").ignores(path, false), None);
    }

    #[test]
    fn matching_a_malicious_rule_does_not_take_exponential_time() {
        let rules = Gitignore::parse(&format!("{}/b\n{}b", "**/a*".repeat(200), "a*".repeat(200)));
        let path = ["a".repeat(250).as_str(); 16].join("/");
        // Backtracking would need exponential time here.
        assert_eq!(rules.ignores(Path::new(&path), false), None);
    }
}
