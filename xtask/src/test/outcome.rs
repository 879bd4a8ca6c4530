//! Results of steps and tests.

use std::time::Duration;

#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// Test binary or flow file, followed by the name of the test.
    pub name: String,
    pub took: Duration,
    pub verdict: Verdict,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Passed,
    Failed {
        /// Captured output of the test.
        output: String,
    },
    Skipped {
        reason: String,
    },
}

impl Test {
    /// Captured output of a failed test.
    pub fn failure(&self) -> Option<&str> {
        match &self.verdict {
            Verdict::Failed { output } => Some(output),
            Verdict::Passed | Verdict::Skipped { .. } => None,
        }
    }
}

/// Result of one run of a step.
#[derive(Debug, Default, PartialEq)]
pub struct Ran {
    pub tests: Vec<Test>,
    /// Reason of a failure without a failed test, such as a test runner that cannot start.
    pub failure: Option<String>,
}

impl Ran {
    /// Creates the result of a test runner from its exit status and the reported tests.
    pub fn new(runner: &str, success: bool, tests: Vec<Test>) -> Self {
        let explained = success || tests.iter().any(|test| test.failure().is_some());
        Self { tests, failure: (!explained).then(|| format!("{runner} failed, but no test did")) }
    }
}

/// One run of a step, with the time it took.
#[derive(Debug)]
pub struct Done {
    pub step: &'static str,
    pub took: Duration,
    pub ran: Ran,
}

impl Done {
    pub fn failed(&self) -> bool {
        self.ran.failure.is_some() || self.ran.tests.iter().any(|test| test.failure().is_some())
    }
}

/// Marks tests as skipped that recorded a line `SKIPPED name: reason`; the test runner reports them as
/// passed. A line without a reported test is added as a test, so that no skip is lost.
pub fn mark_skipped(tests: &mut Vec<Test>, lines: &str) {
    let mut seen: Vec<&str> = Vec::new();
    for line in lines.lines().filter_map(|line| line.strip_prefix("SKIPPED ")) {
        if seen.contains(&line) {
            continue;
        }
        seen.push(line);
        let (name, reason) = line.split_once(": ").unwrap_or((line, "no reason given"));
        let verdict = Verdict::Skipped { reason: reason.to_owned() };
        let matches = |test: &&mut Test| {
            test.verdict == Verdict::Passed && test.name.split(' ').next_back() == Some(name)
        };
        match tests.iter_mut().find(matches) {
            Some(test) => test.verdict = verdict,
            None => tests.push(Test { name: name.to_owned(), took: Duration::ZERO, verdict }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runner_that_fails_without_a_failed_test_is_a_failure() {
        let failed = Verdict::Failed { output: String::new() };
        check(true, &[Verdict::Passed], None);
        check(true, &[], None);
        check(false, &[Verdict::Passed, failed], None);
        check(false, &[Verdict::Passed], Some("nextest failed, but no test did"));
        check(false, &[], Some("nextest failed, but no test did"));
    }

    #[test]
    fn a_test_that_records_a_skip_counts_as_skipped_once() {
        let mut tests = vec![named("parlor::process crash::one"), named("parlor::process crash::two")];
        mark_skipped(
            &mut tests,
            "SKIPPED crash::two: no FUSE: it is off\nSKIPPED crash::two: no FUSE: it is off\n",
        );
        assert_eq!(tests[0].verdict, Verdict::Passed);
        assert_eq!(tests[1].verdict, Verdict::Skipped { reason: "no FUSE: it is off".into() });
        assert_eq!(tests.len(), 2);
    }

    #[test]
    fn a_skipped_test_that_the_runner_did_not_report_is_added() {
        let mut tests = vec![named("parlor::it one")];
        mark_skipped(&mut tests, "SKIPPED three: no namespaces\n");
        assert_eq!(tests[0].verdict, Verdict::Passed);
        assert_eq!(tests[1].name, "three");
        assert_eq!(tests[1].verdict, Verdict::Skipped { reason: "no namespaces".into() });
    }

    fn named(name: &str) -> Test {
        Test { name: name.into(), took: Duration::ZERO, verdict: Verdict::Passed }
    }

    #[track_caller]
    fn check(success: bool, verdicts: &[Verdict], failure: Option<&str>) {
        let tests = verdicts.iter().map(|verdict| Test { verdict: verdict.clone(), ..named("a") }).collect();
        assert_eq!(Ran::new("nextest", success, tests).failure.as_deref(), failure);
    }
}
