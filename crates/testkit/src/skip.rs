//! Says and counts the tests that this machine cannot run.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;

/// Names the file in which `cargo xtask test` counts them, one line for each test.
const LIST: &str = "XTASK_SKIPPED_TESTS";

/// Says that the calling test is skipped, past the test runner, which shows nothing of tests that pass.
pub fn say_skipped(reason: impl Display) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test"); // The runner names the thread after its test.
    let line = format!("SKIPPED {test}: {reason}\n");
    // Nothing can be done about a standard error or a list that cannot be written.
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(list) = std::env::var_os(LIST) {
        let list = OpenOptions::new().create(true).append(true).open(list);
        let _ = list.and_then(|mut list| list.write_all(line.as_bytes()));
    }
}
