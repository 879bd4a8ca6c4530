//! The final report of `cargo xtask test`: durations of the steps, slow, skipped and failed tests, and the
//! counts.

use super::outcome::{Done, Verdict};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Maximum number of slow tests in the report.
const MAX_SLOW_TESTS: usize = 10;

#[derive(Default)]
pub struct Report {
    /// Steps in the order of their first run.
    steps: Vec<(&'static str, Times)>,
    tests: BTreeMap<String, History>,
}

/// Number and durations of the runs of a step.
#[derive(Default)]
struct Times {
    runs: u32,
    failures: u32,
    total: Duration,
    longest: Duration,
}

/// Results of all runs of one test, or of a step that failed without a failed test.
#[derive(Default)]
struct History {
    runs: u32,
    longest: Duration,
    skipped: Option<String>,
    /// One entry per failure: the file with its output, or the error.
    failures: Vec<String>,
}

impl Report {
    /// Adds the result of a step. `output_file` returns the file with the output of a failed test.
    pub fn add(&mut self, done: &Done, output_file: impl Fn(&str) -> String) {
        let known = self.steps.iter().position(|(step, _)| *step == done.step);
        let at = known.unwrap_or_else(|| {
            self.steps.push((done.step, Times::default()));
            self.steps.len() - 1
        });
        let times = &mut self.steps[at].1;
        times.runs += 1;
        times.failures += u32::from(done.failed());
        times.total += done.took;
        times.longest = times.longest.max(done.took);
        for test in &done.ran.tests {
            let history = self.tests.entry(test.name.clone()).or_default();
            history.runs += 1;
            history.longest = history.longest.max(test.took);
            match &test.verdict {
                Verdict::Passed => {}
                Verdict::Failed { .. } => history.failures.push(output_file(&test.name)),
                Verdict::Skipped { reason } => history.skipped = Some(reason.clone()),
            }
        }
        if let Some(failure) = &done.ran.failure {
            let history = self.tests.entry(format!("the step `{}`", done.step)).or_default();
            history.runs = times.runs;
            history.failures.push(failure.clone());
        }
    }

    pub fn failed(&self) -> bool {
        self.tests.values().any(|test| !test.failures.is_empty())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        writeln!(out, "\n{:<12} {:>8}", "step", "seconds")?;
        for (step, times) in &self.steps {
            let verdict = if times.failures > 0 { "FAILED" } else { "ok" };
            write!(out, "{step:<12} {:>8.1}  {verdict}", times.total.as_secs_f64())?;
            if times.runs > 1 {
                let mean = times.total.as_secs_f64() / f64::from(times.runs);
                let longest = times.longest.as_secs_f64();
                write!(out, ", {} runs, mean {mean:.1} s, longest {longest:.1} s", times.runs)?;
            }
            writeln!(out)?;
        }
        let mut slowest: Vec<(&String, Duration)> =
            self.tests.iter().map(|(name, test)| (name, test.longest)).collect();
        slowest.retain(|(_, longest)| !longest.is_zero());
        slowest.sort_by_key(|(_, longest)| std::cmp::Reverse(*longest));
        slowest.truncate(MAX_SLOW_TESTS);
        if !slowest.is_empty() {
            writeln!(out, "\nThe slowest tests, in seconds:")?;
        }
        for (name, longest) in slowest {
            writeln!(out, "{:>8.1}  {name}", longest.as_secs_f64())?;
        }
        let failed = self.tests.iter().filter(|(_, test)| !test.failures.is_empty()).count();
        let skipped: Vec<(&String, &String)> = self
            .tests
            .iter()
            .filter(|(_, test)| test.failures.is_empty())
            .filter_map(|(name, test)| Some((name, test.skipped.as_ref()?)))
            .collect();
        if !skipped.is_empty() {
            writeln!(out, "\nSkipped:")?;
        }
        for (name, reason) in &skipped {
            writeln!(out, "  {name}: {reason}")?;
        }
        if failed > 0 {
            writeln!(out, "\nFailed:")?;
        }
        for (name, test) in self.tests.iter().filter(|(_, test)| !test.failures.is_empty()) {
            match test.runs {
                0 | 1 => writeln!(out, "  {name}")?,
                runs => writeln!(out, "  {name}: {} of {runs} times", test.failures.len())?,
            }
            for failure in &test.failures {
                writeln!(out, "    {}", failure.replace('\n', "\n    "))?;
            }
        }
        let passed = self.tests.len() - failed - skipped.len();
        write!(out, "\n{passed} passed, {failed} failed")?;
        match skipped.len() {
            0 => writeln!(out),
            skipped => writeln!(out, ", {skipped} skipped"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test::outcome::{Ran, Test};

    #[test]
    fn a_run_without_failures_ends_with_its_counts() {
        check(
            &[step("format", 400, &[], None), step("unit", 2_000, &["fast 10", "slow 1500"], None)],
            "
step          seconds
format            0.4  ok
unit              2.0  ok

The slowest tests, in seconds:
     1.5  slow
     0.0  fast

2 passed, 0 failed
",
        );
    }

    #[test]
    fn failed_and_skipped_tests_are_listed() {
        check(
            &[step("process", 3_000, &["good 10", "bad 20 failed", "moot 0 skipped"], None)],
            "
step          seconds
process           3.0  FAILED

The slowest tests, in seconds:
     0.0  bad
     0.0  good

Skipped:
  moot: no FUSE

Failed:
  bad
    kept/bad

1 passed, 1 failed, 1 skipped
",
        );
    }

    #[test]
    fn a_step_that_fails_without_tests_counts_as_failed() {
        check(
            &[step("format", 400, &[], None), step("build", 9_000, &[], Some("`cargo` ended with 101"))],
            "
step          seconds
format            0.4  ok
build             9.0  FAILED

Failed:
  the step `build`
    `cargo` ended with 101

0 passed, 1 failed
",
        );
    }

    #[test]
    fn several_rounds_count_each_test_once_and_list_each_failure() {
        check(
            &[
                step("unit", 1_000, &["good 10", "flaky 20 failed"], None),
                step("unit", 3_000, &["good 1500", "flaky 20"], None),
                step("unit", 2_000, &["good 10", "flaky 20 failed"], None),
            ],
            "
step          seconds
unit              6.0  FAILED, 3 runs, mean 2.0 s, longest 3.0 s

The slowest tests, in seconds:
     1.5  good
     0.0  flaky

Failed:
  flaky: 2 of 3 times
    kept/flaky
    kept/flaky

1 passed, 1 failed
",
        );
    }

    #[test]
    fn only_the_ten_slowest_tests_are_listed() {
        let tests: Vec<String> = (1..=12).map(|number| format!("test-{number} {number}000")).collect();
        let tests: Vec<&str> = tests.iter().map(String::as_str).collect();
        let mut report = Report::default();
        report.add(&step("unit", 1, &tests, None), str::to_owned);
        let text = report.to_string();
        assert_eq!(text.matches("test-").count(), 10, "{text}");
        assert!(text.contains("    12.0  test-12\n    11.0  test-11\n"), "{text}");
    }

    /// Each test is given as its name, its milliseconds, and `failed` or `skipped` unless it passed.
    fn step(step: &'static str, milliseconds: u64, tests: &[&str], failure: Option<&str>) -> Done {
        let tests = tests.iter().map(|line| {
            let mut words = line.split(' ');
            let name = words.next().unwrap().to_owned();
            let took = Duration::from_millis(words.next().unwrap().parse().unwrap());
            let verdict = match words.next() {
                None => Verdict::Passed,
                Some("failed") => Verdict::Failed { output: String::new() },
                Some(_) => Verdict::Skipped { reason: "no FUSE".into() },
            };
            Test { name, took, verdict }
        });
        let ran = Ran { tests: tests.collect(), failure: failure.map(str::to_owned) };
        Done { step, took: Duration::from_millis(milliseconds), ran }
    }

    #[track_caller]
    fn check(done: &[Done], expected: &str) {
        let mut report = Report::default();
        for done in done {
            report.add(done, |name| format!("kept/{name}"));
        }
        assert_eq!(report.to_string(), expected);
        assert_eq!(report.failed(), expected.contains("FAILED"));
    }
}
