//! Parses the JSON report of vitest.

use super::outcome::{Test, Verdict};
use anyhow::{Context, Result};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// Returns all tests, with the name of the file as prefix. If `filtered` is set, names were given: vitest
/// then reports tests that do not match as skipped, and these are left out.
pub fn parse(report: &[u8], filtered: bool) -> Result<Vec<Test>> {
    let report: Value = serde_json::from_slice(report).context("reading the report of vitest")?;
    let files = report["testResults"].as_array().context("a report of vitest without results")?;
    let mut tests = Vec::new();
    for file in files {
        let path = file["name"].as_str().context("a file without a name in the report of vitest")?;
        let name = Path::new(path).file_name().unwrap_or_default().display();
        let inside = file["assertionResults"].as_array().map_or(&[][..], Vec::as_slice);
        tests.extend(inside.iter().filter_map(|test| read(&name.to_string(), test, filtered)));
        // A file that cannot be loaded has no tests; this status is its only trace in the report.
        if inside.is_empty() && file["status"] == "failed" {
            let output = file["message"].as_str().unwrap_or_default().to_owned();
            tests.push(Test {
                name: name.to_string(),
                took: Duration::ZERO,
                verdict: Verdict::Failed { output },
            });
        }
    }
    Ok(tests)
}

fn read(file: &str, test: &Value, filtered: bool) -> Option<Test> {
    let verdict = match test["status"].as_str() {
        Some("passed") => Verdict::Passed,
        Some("failed") => Verdict::Failed { output: messages(test) },
        _ if filtered => return None,
        _ => Verdict::Skipped { reason: "its source says so".into() },
    };
    let title = test["fullName"].as_str().unwrap_or_default();
    let milliseconds = test["duration"].as_f64().unwrap_or_default().max(0.0);
    let took = Duration::try_from_secs_f64(milliseconds / 1000.0).unwrap_or_default();
    Some(Test { name: format!("{file} {title}"), took, verdict })
}

fn messages(test: &Value) -> String {
    let messages = test["failureMessages"].as_array().map_or(&[][..], Vec::as_slice);
    messages.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tests_and_unloadable_files_are_parsed() {
        let skipped = Verdict::Skipped { reason: "its source says so".into() };
        check(
            false,
            &[
                ("sign-in.flow.ts a visitor signs in", 1_500, Verdict::Passed),
                (
                    "sign-in.flow.ts a visitor is refused",
                    20,
                    failed("AssertionError: no\n    at sign-in.flow.ts:3"),
                ),
                ("sign-in.flow.ts later", 0, skipped),
                ("broken.flow.ts", 0, failed("SyntaxError: Unexpected token")),
            ],
        );
    }

    #[test]
    fn tests_that_do_not_match_the_names_are_left_out() {
        check(
            true,
            &[
                ("sign-in.flow.ts a visitor signs in", 1_500, Verdict::Passed),
                (
                    "sign-in.flow.ts a visitor is refused",
                    20,
                    failed("AssertionError: no\n    at sign-in.flow.ts:3"),
                ),
                ("broken.flow.ts", 0, failed("SyntaxError: Unexpected token")),
            ],
        );
    }

    fn failed(output: &str) -> Verdict {
        Verdict::Failed { output: output.into() }
    }

    #[track_caller]
    fn check(filtered: bool, expected: &[(&str, u64, Verdict)]) {
        let report = json!({
            "success": false,
            "testResults": [
                { "name": "web/flows/sign-in.flow.ts", "status": "failed", "message": "", "assertionResults": [
                    { "fullName": "a visitor signs in", "status": "passed", "duration": 1500.0, "failureMessages": [] },
                    { "fullName": "a visitor is refused", "status": "failed", "duration": 20,
                      "failureMessages": ["AssertionError: no\n    at sign-in.flow.ts:3"] },
                    { "fullName": "later", "status": "skipped", "failureMessages": [] },
                ] },
                { "name": "web/flows/broken.flow.ts", "status": "failed",
                  "message": "SyntaxError: Unexpected token", "assertionResults": [] },
            ],
        });
        let expected: Vec<Test> = expected
            .iter()
            .map(|(name, milliseconds, verdict)| Test {
                name: (*name).into(),
                took: Duration::from_millis(*milliseconds),
                verdict: verdict.clone(),
            })
            .collect();
        assert_eq!(parse(report.to_string().as_bytes(), filtered).unwrap(), expected);
    }
}
