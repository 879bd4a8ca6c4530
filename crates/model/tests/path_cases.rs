//! Checks the path matcher against cases recorded from another implementation of the same rules.

use parlor_model::path::matches;
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    pattern: String,
    path: String,
    matches: bool,
    reverse: bool,
}

/// Removes leading, trailing and doubled slashes, as parsing a path does.
fn normalise(text: &str) -> String {
    let segments: Vec<&str> = text.split('/').filter(|segment| !segment.is_empty()).collect();
    segments.join("/")
}

#[test]
fn every_recorded_case_matches_in_both_directions() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("fixtures/path-cases.json")).unwrap();
    assert_eq!(cases.len(), 60);
    for Case { pattern, path, matches: forward, reverse } in cases {
        assert_eq!(matches(&normalise(&pattern), &normalise(&path)), forward, "{pattern} against {path}");
        assert_eq!(matches(&normalise(&path), &normalise(&pattern)), reverse, "{path} against {pattern}");
    }
}
