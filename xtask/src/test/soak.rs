//! `cargo xtask test soak`: the unit tests and the in-process tests, with many more cases in each random test.

use super::nextest;
use super::outcome::Ran;
use super::step::without_processes;
use anyhow::Result;

/// Read by the crate `parlor-seed`. A value that the caller has set wins over [`ROUNDS`].
const VARIABLE: &str = "PARLOR_TEST_ROUNDS";

/// How many times the usual number of cases each random test tries.
const ROUNDS: &str = "20";

pub fn run() -> Result<Ran> {
    nextest::build()?;
    let mut tests = nextest::built_tests("long", &without_processes());
    tests.env(VARIABLE, std::env::var_os(VARIABLE).unwrap_or_else(|| ROUNDS.into()));
    nextest::run_and_read(&mut tests, "long")
}
