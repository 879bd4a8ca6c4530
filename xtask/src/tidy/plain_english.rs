//! Checks that retired words and names do not return. The vocabulary is `docs/glossary.md`.
//!
//! The check looks at comments of Rust and TypeScript, at documents, and at definitions of types and constants. It finds
//! words, not unclear sentences: a reviewer judges those.

use super::files;
use crate::root;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Retired words and phrases, each with the term that replaces it.
const WORDS: &[(&[&str], &str)] = &[
    (&["door", "doors", "doorway"], "protocol"),
    (&["corridor"], "write pipeline"),
    (&["switchboard"], "fan-out"),
    (&["desk"], "scheduler"),
    (&["keeper", "keepers"], "scheduler driver, process supervisor"),
    (&["house", "houses"], "instance, chat client"),
    (&["census"], "concurrency limiter"),
    (&["errand", "errands"], "gateway request"),
    (&["circle", "circles"], "audience"),
    (&["realm", "realms"], "mission scope"),
    (&["farewell"], "disconnect frame"),
    (&["stranger", "strangers", "guest", "guests"], "unauthenticated connection"),
    (&["roster"], "list of local agents"),
    (&["workshop"], "staging directory"),
    (&["mint"], "decide context"),
    (&["leash"], "supervisor pipe"),
    (&["scribe"], "output recorder"),
    (&["obituary"], "exit reason"),
    (&["last words"], "stderr tail, close reason"),
    (&["bell"], "wake-up notification"),
    (&["hunt", "hunts"], "search scope"),
    (&["take a seat", "takes a seat", "took a seat", "take the seat", "takes the seat"], "subscribe"),
    (&["take its seat", "takes its seat", "took its seat", "seated", "unseat"], "subscribe"),
    (&["deaf"], "write-only subscriber"),
    (&["judgement", "judgements"], "approval decision"),
    (&["crowd", "crowded"], "burst"),
    (&["breath"], "quiet period"),
    (&["clockwork"], "timer runtime"),
    (&["twin", "twins"], "differential test"),
    (&["flaw", "flaws"], "field error"),
    (&["hosts of ours", "host of ours", "one of ours"], "Parlor gateway"),
    (&["goodbye", "good-bye"], "close"),
    (&["newcomer", "newcomers"], "late joiner"),
    (&["housekeeping", "house-keeping"], "maintenance"),
    (&["play a", "plays a", "play the", "plays the", "play one", "plays one"], "execute a run"),
    (&["play any", "plays any", "play turn", "plays turn", "play turns", "plays turns"], "execute a run"),
    (&["whoever runs the hub"], "operator"),
    (&["come to nothing", "comes to nothing"], "fails"),
];

/// Retired names of types and constants. Each had several meanings, or none that a new reader could guess.
const NAMES: &str = "Desk Keeper Census Circle Errand Flaw Patient House Asked Wanted Told Place Matter Thing Realm \
    Moment Farewell Talk Judgement Switchboard Said Seat Voice Stage Mint Memo Tally Hunt Roster Workshop Leash Scribe \
    Heard Shown Kept Standing Beside Waits Asks Answering Asking Misread Misfit Deserted Barred Reach Trouble Patience \
    Wish Performer Performance Utterance Grave Door Doorway Law Lawful Machine Bar BREATH CROWD PATIENCE AGAIN MOMENT \
    TOGETHER STORM NOBODY WITHIN LOOK";

/// A retired word or name that a file may use, and why. The path is that of a file or a folder.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("CONTRIBUTING.md", "corridor", "the table of patterns quotes it as a bad example"),
    ("CONTRIBUTING.md", "door", "the table of patterns quotes it as a bad example"),
    ("xtask/src/tidy/plain_english.rs", "", "this file lists the words"),
];

/// Words that start a definition whose name is checked.
const DEFINITIONS: &[&str] =
    &["struct", "enum", "trait", "type", "const", "static", "class", "interface", "function"];

#[test]
fn comments_and_documents_use_the_words_of_the_glossary() {
    let mut found = Vec::new();
    for_each_text_file(|path, text| {
        let is_document = path.ends_with(".md");
        for (number, line) in text.lines().enumerate() {
            let prose = if is_document { Some(line) } else { comment_in(line) };
            let Some(prose) = prose else { continue };
            for (word, instead) in retired_words(prose) {
                if !is_excepted(path, word) {
                    found.push(format!("{path}:{}: `{word}`, write: {instead}", number + 1));
                }
            }
        }
    });
    assert!(found.is_empty(), "{} retired words:\n{}", found.len(), found.join("\n"));
}

#[test]
fn no_definition_has_a_retired_name() {
    let names: BTreeSet<&str> = NAMES.split_whitespace().collect();
    let mut found = Vec::new();
    for_each_text_file(|path, text| {
        if path.ends_with(".md") {
            return;
        }
        for (number, line) in text.lines().enumerate() {
            if let Some(name) = defined_name(line).filter(|name| names.contains(name))
                && !is_excepted(path, name)
            {
                found.push(format!("{path}:{}: `{name}`", number + 1));
            }
        }
    });
    assert!(found.is_empty(), "{} retired names:\n{}", found.len(), found.join("\n"));
}

#[test]
fn a_retired_word_is_found_as_a_whole_word_outside_of_code_and_links() {
    check("The desk has it.", &["desk"]);
    check("Desks are furniture.", &[]);
    check("Each Door, each house.", &["door", "house"]);
    check("`Desk::new` is code.", &[]);
    check("See [decision 12](docs/0012-a-keeper.md).", &[]);
    check("It takes a seat.", &["takes a seat"]);
}

#[test]
fn a_comment_is_text_behind_slashes_and_not_an_address() {
    assert_eq!(comment_in("let x = 1; // The reason."), Some(" The reason."));
    assert_eq!(comment_in("    /// Documentation."), Some("/ Documentation."));
    assert_eq!(comment_in("let url = \"http://desk.example\";"), None);
    assert_eq!(comment_in(" * A line of a block comment."), Some("A line of a block comment."));
    assert_eq!(comment_in("let x = 1;"), None);
}

#[test]
fn the_name_of_a_definition_follows_its_keyword() {
    assert_eq!(defined_name("pub(crate) struct Desk<'a> {"), Some("Desk"));
    assert_eq!(defined_name("export function Place() {"), Some("Place"));
    assert_eq!(defined_name("    const PATIENCE: u32 = 1;"), Some("PATIENCE"));
    assert_eq!(defined_name("let desk = Desk::new();"), None);
}

#[track_caller]
fn check(prose: &str, expected: &[&str]) {
    let found: Vec<&str> = retired_words(prose).into_iter().map(|(word, _)| word).collect();
    assert_eq!(found, expected, "in `{prose}`");
}

fn for_each_text_file(mut look: impl FnMut(&str, &str)) {
    let mut number = 0;
    for file in files() {
        let path = file.strip_prefix(root()).unwrap_or(&file).to_string_lossy().into_owned();
        if is_checked(&path) {
            number += 1;
            look(&path, &fs::read_to_string(&file).unwrap());
        }
    }
    assert!(number > 100, "found only {number} files");
}

fn is_checked(path: &str) -> bool {
    match Path::new(path).extension().and_then(|extension| extension.to_str()) {
        Some("rs" | "ts" | "tsx") => !path.contains("/generated/"),
        Some("md") => !path.contains('/') || path.starts_with("docs/"),
        _ => false,
    }
}

fn is_excepted(path: &str, word: &str) -> bool {
    EXCEPTIONS
        .iter()
        .any(|(place, excepted, _)| path.starts_with(place) && (excepted.is_empty() || *excepted == word))
}

/// The comment of a line of Rust or TypeScript, if it has one.
fn comment_in(line: &str) -> Option<&str> {
    if let Some(text) = line.trim_start().strip_prefix("* ") {
        return Some(text);
    }
    let at = line.match_indices("//").map(|(at, _)| at).find(|at| !line[..*at].ends_with(':'))?;
    Some(&line[at + 2..])
}

/// The retired words in a line of prose, in the order of [`WORDS`], each with its replacement.
fn retired_words(prose: &str) -> Vec<(&'static str, &'static str)> {
    let prose = without_code_and_links(prose).to_lowercase();
    let words = WORDS.iter().flat_map(|(words, instead)| words.iter().map(move |word| (*word, *instead)));
    words.filter(|(word, _)| contains_word(&prose, word)).collect()
}

fn contains_word(prose: &str, word: &str) -> bool {
    let is_part = |char: char| char.is_alphanumeric() || char == '_';
    prose
        .match_indices(word)
        .any(|(at, _)| !prose[..at].ends_with(is_part) && !prose[at + word.len()..].starts_with(is_part))
}

/// The line without `code` and without the targets of links, whose names may be old.
fn without_code_and_links(line: &str) -> String {
    let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    let mut parts = prose.split("](");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept.push_str(part.split_once(')').map_or("", |(_, rest)| rest));
    }
    kept
}

/// The name that a line defines, if the line is the start of a definition.
fn defined_name(line: &str) -> Option<&str> {
    let after_keyword = DEFINITIONS.iter().find_map(|keyword| {
        let at = line.find(&format!("{keyword} "))?;
        let before = line[..at].trim();
        let is_start = before.split_whitespace().all(|word| word == "export" || word.starts_with("pub"));
        is_start.then_some(&line[at + keyword.len() + 1..])
    })?;
    after_keyword
        .split(|char: char| !char.is_alphanumeric() && char != '_')
        .next()
        .filter(|name| !name.is_empty())
}
