use super::*;
use proptest::prelude::*;
use regex::Regex;

type Parts<'a> = (&'a str, &'a str, &'a [&'a str], &'a str);

#[test]
fn message_lines_are_parsed() {
    let cases: &[(&str, Parts)] = &[
        ("[coder-to-reviewer]: Please review", ("coder", "reviewer", &[], "Please review")),
        ("[a-to-b] @ [c, d]: x", ("a", "b", &["c", "d"], "x")),
        ("[a-to-b]@[c,d]:x", ("a", "b", &["c", "d"], "x")),
        ("[a-to-b] @ [ c ,, d e , c,]: x", ("a", "b", &["c", "d e", "c"], "x")),
        ("[a-to-b] @ []: x", ("a", "b", &[], "x")),
        ("[a-to-b] @ [ünï, x/y, *]: x", ("a", "b", &["ünï", "x/y", "*"], "x")),
        ("[a-to-b] \u{a0}:\u{a0}x \t\r", ("a", "b", &[], "x")),
        ("[a-to-b]: k: v [x-to-y]: z", ("a", "b", &[], "k: v [x-to-y]: z")),
        ("[a-to-b]: one\rtwo", ("a", "b", &[], "one\rtwo")),
        ("[a-to-b-to-c]: x", ("a-to-b", "c", &[], "x")),
        ("[a-to-to-b]: x", ("a-to", "b", &[], "x")),
        ("[-to--to-b]: x", ("-to-", "b", &[], "x")),
        ("[lead_1-x-to-qa-2_]: x", ("lead_1-x", "qa-2_", &[], "x")),
    ];
    for (line, expected) in cases {
        let message = parse(line, &HashSet::<String>::new()).unwrap_or_else(|| panic!("no message: {line}"));
        let broadcast: Vec<&str> = message.broadcast.iter().map(String::as_str).collect();
        let parts = (&*message.sender, &*message.recipient, &*broadcast, &*message.message);
        assert_eq!(parts, *expected, "{line}");
        assert_eq!(message.body, None);
    }
}

#[test]
fn other_lines_are_no_messages() {
    for line in [
        "",
        "# heading",
        "[a-to-b]",
        "[a-to-b]:",
        "[a-to-b]:  \u{a0} \r",
        "[a-to-b] x: y",
        "[-to-b]: x",
        "[a-to-]: x",
        "[-to-]: x",
        "[a-TO-b]: x",
        "[köder-to-b]: x",
        "[a.b-to-c]: x",
        "[a/b-to-c]: x",
        "[a b-to-c]: x",
        "[a-to-b] @ [c[0]]: x",
        "[a-to-b] @ dev: x",
        "[a-to-b] @ [c: x",
        "[a-to-b",
        " [a-to-b]: x",
        "\u{a0}[a-to-b]: x",
        "x [a-to-b]: x",
    ] {
        assert_eq!(parse(line, &HashSet::<String>::new()), None, "{line}");
    }
}

#[test]
fn known_names_decide_an_ambiguous_split() {
    for (known, expected) in [
        (&[][..], ("a-to-b", "c")),
        (&["a", "b-to-c"], ("a", "b-to-c")),
        (&["a-to-b", "c"], ("a-to-b", "c")),
        // Both splits have known names: the last one wins.
        (&["a", "b-to-c", "a-to-b", "c"], ("a-to-b", "c")),
        // One known name is not enough.
        (&["a"], ("a-to-b", "c")),
        (&["b-to-c"], ("a-to-b", "c")),
    ] {
        let known: HashSet<String> = known.iter().map(|name| name.to_string()).collect();
        let message = parse("[a-to-b-to-c]: x", &known).unwrap();
        assert_eq!((&*message.sender, &*message.recipient), expected, "{known:?}");
    }
}

#[test]
fn a_header_with_a_million_splits_uses_no_known_names() {
    let line = format!("[a{}b]: x", "-to-".repeat(1_000_000));
    let known = HashSet::from(["a".to_owned()]);
    assert!(!Header::parse(&line).unwrap().is_ambiguous());
    assert_eq!(parse(&line, &known).unwrap().recipient, "b");
}

#[test]
fn a_continuation_line_loses_one_level_of_indentation() {
    for (line, expected) in [
        ("  text", "text"),
        ("   text", " text"),
        (" text", "text"),
        ("\ttext", "text"),
        ("\t\ttext", "\ttext"),
        ("  text \t\r", "text"),
        (" \t ", ""),
        ("  - item", "- item"),
    ] {
        assert!(is_indented(line.as_bytes()), "{line:?}");
        assert_eq!(continuation(line), expected, "{line:?}");
    }
    for line in ["", "x", "\r", "\u{a0}x"] {
        assert!(!is_indented(line.as_bytes()), "{line:?}");
    }
    assert!(is_message_like("  [a-to-b]: x") && is_message_like("\t [a-to-b]: x"));
    assert!(!is_message_like("  - item"));
}

#[test]
fn a_body_keeps_blank_lines_between_its_lines_only() {
    for (lines, expected) in [
        (&[][..], None),
        (&["  "], None),
        (&["  a"], Some("m\na")),
        (&["  a", "  ", " ", "\tb", "  "], Some("m\na\n\n\nb")),
        (&["  ", "  a"], Some("m\n\na")),
    ] {
        let mut continuations = Continuations::default();
        for line in lines {
            continuations.push(line);
        }
        assert_eq!(continuations.body("m").as_deref(), expected, "{lines:?}");
    }
}

proptest! {
    #![proptest_config(parlor_seed::proptest_config())]

    #[test]
    fn the_parser_agrees_with_the_regular_expression(
        line in prop_oneof![
            any::<String>(),
            r"\[?(a|b|-to-|to|-|_|é| ){0,8}\]? ?@? ?\[?([a, é\]]){0,5}\]?[ \t\u00a0]?:?( |x|:|é|\u2003|\r){0,4}",
            r"\[[ab-]{0,3}-to-[ab-]{0,3}\]( @ \[[a,é ]{0,4}\])? ?:[ x\t]{0,4}",
        ],
    ) {
        let line = line.replace('\n', " ");
        let expression = Regex::new(
            r"^\[([a-zA-Z0-9_-]+)-to-([a-zA-Z0-9_-]+)\](?:\s*@\s*\[([^\]]*)\])?\s*:\s*(.+)$",
        ).unwrap();
        let expected = expression.captures(line.trim_end()).and_then(|found| {
            let broadcast = found.get(3).map_or("", |list| list.as_str());
            let message = found[4].trim().to_owned();
            (!message.is_empty()).then(|| LineMessage {
                sender: found[1].to_owned(),
                recipient: found[2].to_owned(),
                broadcast: broadcast.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect(),
                message,
                body: None,
            })
        });
        prop_assert_eq!(parse(&line, &HashSet::<String>::new()), expected);
    }
}
