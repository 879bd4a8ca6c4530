//! The embedded page keeps the rules that its content security policy rests on.

const PAGE: &str = include_str!("../assets/page.html");

#[test]
fn there_is_exactly_one_script_and_one_style_element_without_attributes() {
    for (opening, closing) in [("<script", "</script>"), ("<style", "</style>")] {
        assert_eq!(PAGE.matches(opening).count(), 1, "{opening}");
        assert_eq!(PAGE.matches(closing).count(), 1, "{closing}");
        // The policy names the hash of the text between these two, so the bounds must be plain.
        assert_eq!(PAGE.matches(&format!("{opening}>")).count(), 1, "{opening} has an attribute");
    }
}

#[test]
fn markup_carries_neither_styles_nor_event_handlers() {
    let mut tags = 0;
    for tag in tags_of(&markup()) {
        tags += 1;
        for attribute in tag.split_whitespace().skip(1) {
            let name = attribute.split('=').next().unwrap_or_default();
            assert_ne!(name, "style", "{tag}");
            assert!(!(name.starts_with("on") && attribute.contains('=')), "{tag}");
        }
    }
    assert!(tags > 100, "only {tags} tags were looked at");
}

#[test]
fn text_of_others_cannot_become_markup_or_code() {
    let ways = [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "DOMParser",
        "eval(",
        "new Function",
    ];
    for way in ways {
        assert!(!script().contains(way), "{way}");
    }
}

#[test]
fn tokens_are_kept_in_memory_only() {
    for store in ["localStorage", "sessionStorage", "indexedDB", "document.cookie"] {
        assert!(!script().contains(store), "{store}");
    }
}

#[test]
fn nothing_is_loaded_from_elsewhere() {
    let markup = markup();
    for outside in ["src=", "href=\"http", "href=\"//", "@import", "url("] {
        assert!(!markup.contains(outside) && !style().contains(outside), "{outside}");
    }
}

fn between(opening: &str, closing: &str) -> &'static str {
    let (_, rest) = PAGE.split_once(opening).expect("the page has this element");
    rest.split_once(closing).expect("the element ends").0
}

fn script() -> &'static str {
    between("<script>", "</script>")
}

fn style() -> &'static str {
    between("<style>", "</style>")
}

/// The page without its comment, its script and its style.
fn markup() -> String {
    let comment = between("<!--", "-->");
    PAGE.replace(comment, "").replace(script(), "").replace(style(), "")
}

fn tags_of(markup: &str) -> impl Iterator<Item = &str> {
    markup.split('<').skip(1).filter_map(|tag| tag.split_once('>')).map(|(tag, _)| tag)
}
