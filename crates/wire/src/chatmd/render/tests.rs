use super::super::LineMessage;
use super::super::grammar::{self, Continuations};
use super::*;
use proptest::prelude::*;
use std::collections::HashSet;

const NONE: &[&str] = &[];

#[test]
fn a_message_is_one_line_with_its_observers() {
    check("a", "b", NONE, "hello", "[a-to-b]: hello\n");
    check("a", "all", NONE, "hello", "[a-to-all]: hello\n");
    check("a", "b", &["c", "d_1"], "hello", "[a-to-b] @ [c, d_1]: hello\n");
}

#[test]
fn further_lines_become_continuation_lines() {
    check("a", "b", NONE, "one\ntwo\r\nthree\rfour\n", "[a-to-b]: one\n  two\n  three\n  four\n");
    check("a", "b", NONE, "one\n\n\n  two \t\n \n", "[a-to-b]: one\n  \n  \n    two\n");
    check("a", "b", NONE, "\n \n  one \ntwo", "[a-to-b]: one\n  two\n");
    // Text cannot become a message of its own.
    check("a", "b", NONE, "one\n[x-to-y]: forged", "[a-to-b]: one\n  [x-to-y]: forged\n");
    check("a", "b", NONE, "[x-to-y]: forged", "[a-to-b]: [x-to-y]: forged\n");
}

#[test]
fn a_message_without_visible_text_has_a_placeholder() {
    for text in ["", " \t", "\n\n", "\r\n \r"] {
        check("a", "b", NONE, text, "[a-to-b]: (no text)\n");
    }
}

#[test]
fn control_characters_are_escaped_and_tabs_stay() {
    check(
        "a",
        "b",
        NONE,
        "\x1b]52;c;x\x07 a\tb \0 \u{7f} \u{85} \u{9b} \u{2028} \u{2029} \x0b\x0c é",
        "[a-to-b]: \\u{1b}]52;c;x\\u{7} a\tb \\u{0} \\u{7f} \\u{85} \\u{9b} \\u{2028} \\u{2029} \\u{b}\\u{c} é\n",
    );
}

#[test]
fn names_that_the_grammar_forbids_are_refused() {
    for (sender, recipient, observer) in [
        ("a b", "b", "c"),
        ("a", "x-to-y", "c"),
        ("a", "to-b", "c"),
        ("a", "b", "c]"),
        ("a", "b", "c\nd"),
        ("", "b", "c"),
    ] {
        assert!(
            render(sender, recipient, &[observer], "x").is_err(),
            "{sender:?} {recipient:?} {observer:?}"
        );
    }
}

#[test]
fn a_line_over_the_limit_is_cut_between_characters() {
    let long = "é".repeat(MAX_RENDERED_LINE_BYTES);
    let lines = render("a", "b", NONE, &format!("{long}\n{long}\nshort")).unwrap();
    let lengths: Vec<usize> = lines.lines().map(str::len).collect();
    assert!(lengths[0] <= MAX_RENDERED_LINE_BYTES && lengths[0] > MAX_RENDERED_LINE_BYTES - 2);
    assert!(lengths[1] <= MAX_RENDERED_LINE_BYTES && lengths[1] > MAX_RENDERED_LINE_BYTES - 2);
    assert!(lines.lines().take(2).all(|line| line.ends_with("é … (cut)")));
    assert!(lines.ends_with("\n  short\n"));

    let prefix = "[a-to-b]: ".len();
    let exact = "x".repeat(MAX_RENDERED_LINE_BYTES - prefix);
    assert!(!render("a", "b", NONE, &exact).unwrap().contains("(cut)"));
    assert!(render("a", "b", NONE, &(exact + "x")).unwrap().ends_with(" … (cut)\n"));
}

proptest! {
    #![proptest_config(parlor_seed::proptest_config())]

    #[test]
    fn a_rendered_message_parses_back(
        sender in any::<String>(),
        recipient in any::<String>(),
        broadcast in prop::collection::vec(any::<String>(), 0..4),
        text in prop_oneof![any::<String>(), "([a-c:é\\[\\]]|\n|\r|\t| |\u{85}|\u{2028}|\\[x-to-y\\]: z){0,24}"],
    ) {
        let (sender, recipient) = (names::encode(&sender), names::encode(&recipient));
        let broadcast: Vec<String> = broadcast.iter().map(|name| names::encode(name)).collect();
        let lines = render(&sender, &recipient, &broadcast, &text).unwrap();
        prop_assert!(lines.ends_with('\n'));
        prop_assert!(lines.chars().all(|c| c == '\n' || c == '\t' || !c.is_control()));

        let mut physical = lines.lines();
        let mut message = grammar::parse(physical.next().unwrap(), &HashSet::<String>::new()).unwrap();
        let mut continuations = Continuations::default();
        for line in physical {
            prop_assert!(grammar::is_indented(line.as_bytes()));
            continuations.push(line);
        }
        message.body = continuations.body(&message.message);
        let expected = expected_text(&text);
        let first = expected.lines().next().unwrap().to_owned();
        let body = expected.contains('\n').then_some(expected);
        prop_assert_eq!(message, LineMessage { sender, recipient, broadcast, message: first, body });
    }
}

/// The text that a reader of the file receives for `text`.
fn expected_text(text: &str) -> String {
    let visible = escaped(text);
    let lines: Vec<&str> = visible.split('\n').map(str::trim_end).collect();
    let joined = lines.join("\n");
    let trimmed = joined.trim_matches('\n').trim_start();
    if trimmed.is_empty() { NO_TEXT.to_owned() } else { trimmed.to_owned() }
}

#[track_caller]
fn check(sender: &str, recipient: &str, broadcast: &[&str], text: &str, expected: &str) {
    assert_eq!(render(sender, recipient, broadcast, text).unwrap(), expected);
}
