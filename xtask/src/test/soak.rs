//! Implements `cargo xtask test soak`: unit and in-process tests with many more cases in each random test.

use super::nextest;
use super::outcome::Ran;
use super::step::without_processes;
use anyhow::Result;

/// Variable that the crate `parlor-seed` reads. A value that is already set takes precedence over [`ROUNDS`].
const VARIABLE: &str = "PARLOR_TEST_ROUNDS";

/// Factor by which each random test multiplies its number of cases.
const ROUNDS: &str = "20";

pub fn run() -> Result<Ran> {
    nextest::build()?;
    let mut tests = nextest::built_tests("long", &without_processes());
    tests.env(VARIABLE, std::env::var_os(VARIABLE).unwrap_or_else(|| ROUNDS.into()));
    nextest::run_and_read(&mut tests, "long")
}
