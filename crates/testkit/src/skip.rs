//! Reports tests that this machine cannot run.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;

/// Environment variable with the file in which `cargo xtask test` collects skipped tests, one line per test.
const LIST: &str = "XTASK_SKIPPED_TESTS";

/// Reports that the calling test is skipped. Writes to stderr directly, because the test runner hides the
/// output of passing tests.
pub fn report_skipped(reason: impl Display) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test"); // The runner names the thread after its test.
    let line = format!("SKIPPED {test}: {reason}\n");
    // Write errors are ignored: a skipped test must not fail because its report cannot be written.
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(list) = std::env::var_os(LIST) {
        let list = OpenOptions::new().create(true).append(true).open(list);
        let _ = list.and_then(|mut list| list.write_all(line.as_bytes()));
    }
}
