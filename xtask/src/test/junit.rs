//! Parses the JUnit report of nextest.

use super::outcome::{Test, Verdict};
use anyhow::{Context, Result};
use roxmltree::{Document, Node};
use std::time::Duration;

/// Returns a test for every `testcase`, with the name of its binary as prefix.
pub fn parse(report: &str) -> Result<Vec<Test>> {
    let document = Document::parse(report).context("reading the report of nextest")?;
    document.descendants().filter(|node| node.has_tag_name("testcase")).map(test).collect()
}

fn test(node: Node) -> Result<Test> {
    let attribute = |name| node.attribute(name).with_context(|| format!("a test without `{name}`"));
    let seconds: f64 = attribute("time")?.parse().context("a test with an invalid time")?;
    Ok(Test {
        name: format!("{} {}", attribute("classname")?, attribute("name")?),
        took: Duration::try_from_secs_f64(seconds).context("a test with an invalid time")?,
        verdict: verdict(node),
    })
}

fn verdict(node: Node) -> Verdict {
    let child = |name| node.children().find(|child| child.has_tag_name(name));
    if let Some(failure) = child("failure").or_else(|| child("error")) {
        let kind = failure.attribute("type").unwrap_or("failed").to_owned();
        let printed = ["system-out", "system-err"].into_iter().filter_map(|name| child(name)?.text());
        let parts: Vec<String> = std::iter::once(kind).chain(printed.map(str::to_owned)).collect();
        return Verdict::Failed { output: parts.join("\n\n") };
    }
    match child("skipped") {
        Some(skipped) => {
            Verdict::Skipped { reason: skipped.attribute("message").unwrap_or("no reason given").to_owned() }
        }
        None => Verdict::Passed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shortened report of cargo-nextest 0.9.143.
    const REPORT: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="3" failures="2" errors="0" uuid="7c1d" timestamp="2026-11-17T20:40:00.000+00:00" time="1.5">
    <testsuite name="parlor::it" tests="3" disabled="0" errors="0" failures="2">
        <testcase name="rooms::opens" classname="parlor::it" timestamp="2026-11-17T20:40:00.000+00:00" time="0.015">
        </testcase>
        <testcase name="rooms::breaks" classname="parlor::it" timestamp="2026-11-17T20:40:00.000+00:00" time="1.250">
            <failure message="thread &apos;rooms::breaks&apos; panicked" type="test failure with exit code 101">assertion failed: 1 &lt; 0</failure>
            <system-out>running 1 test</system-out>
            <system-err>assertion failed: 1 &lt; 0</system-err>
        </testcase>
        <testcase name="rooms::hangs" classname="parlor::it" timestamp="2026-11-17T20:40:00.000+00:00" time="120.001">
            <failure type="test timeout"/>
        </testcase>
    </testsuite>
</testsuites>"#;

    #[test]
    fn each_test_has_its_name_duration_and_the_output_of_a_failure() {
        let output = "test failure with exit code 101\n\nrunning 1 test\n\nassertion failed: 1 < 0";
        let expected = [
            expected("parlor::it rooms::opens", 15, Verdict::Passed),
            expected("parlor::it rooms::breaks", 1_250, Verdict::Failed { output: output.into() }),
            expected("parlor::it rooms::hangs", 120_001, Verdict::Failed { output: "test timeout".into() }),
        ];
        assert_eq!(parse(REPORT).unwrap(), expected);
    }

    #[test]
    fn a_truncated_report_is_an_error() {
        assert!(parse(&REPORT[..REPORT.len() / 2]).is_err());
    }

    fn expected(name: &str, milliseconds: u64, verdict: Verdict) -> Test {
        Test { name: name.into(), took: Duration::from_millis(milliseconds), verdict }
    }
}
