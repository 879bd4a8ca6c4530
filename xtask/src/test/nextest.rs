//! Builds the Rust tests and runs them with cargo-nextest, which gives each test a process and a time limit.
//!
//! Owns: how tests are compiled and linted, and which binaries a run uses. `.config/nextest.toml` sets the
//! time limit and the printed output.

use super::outcome::{Ran, Test, mark_skipped};
use super::{folder, junit};
use crate::{cargo, root};
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;

/// Version of cargo-nextest that is installed if it is missing.
const VERSION: &str = "0.9.143";

/// Features of every run. One set for all runs avoids compiling crates twice. It includes the tests with
/// downloaded agents, so that they are compiled and linted; `.config/nextest.toml` excludes them from a run.
const FEATURES: &str = "xtask/bench,parlor-agents/real-agents,parlor/real-agents";

pub fn install_if_missing() -> Result<()> {
    if is_installed() {
        return Ok(());
    }
    // Without default features, because nextest's self-update would compile another TLS library.
    let arguments = [
        "install",
        "cargo-nextest",
        "--locked",
        "--version",
        VERSION,
        "--no-default-features",
        "--features",
        "default-no-update",
    ];
    println!("Installing the missing cargo-nextest: cargo {}", arguments.join(" "));
    let status = Command::new(cargo()).args(arguments).status()?;
    if !status.success() {
        bail!("cannot install cargo-nextest");
    }
    Ok(())
}

fn is_installed() -> bool {
    let version = Command::new(cargo()).args(["nextest", "--version"]).output();
    version.is_ok_and(|output| output.status.success())
}

/// Compiles every test, and lints every crate of the workspace in the same compilation.
///
/// The crates of the workspace are compiled with `clippy-driver`, which is rustc with more lints and also
/// generates code. A separate `cargo clippy` would process each dependency and each crate twice; see
/// `docs/decisions/0023-clippy-compiles-the-tests.md`.
pub fn build() -> Result<()> {
    if !is_installed() {
        bail!("cargo-nextest is missing: cargo install cargo-nextest --locked --version {VERSION}");
    }
    fs::create_dir_all(folder())?;
    let mut metadata = Command::new(cargo());
    metadata.args(["metadata", "--format-version", "1", "--all-features"]).current_dir(root());
    write(&mut metadata, &cargo_metadata())?;
    let mut list = Command::new(cargo());
    list.args(["nextest", "list", "--list-type", "binaries-only", "--message-format", "json"])
        .args(["--workspace", "--all-targets", "--features", FEATURES])
        .current_dir(root());
    write(with_lints(&mut list), &binaries_metadata())
}

/// Sets the environment that `cargo clippy -- -D warnings` sets.
fn with_lints(command: &mut Command) -> &mut Command {
    command
        .env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver")
        .env("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__")
}

/// Runs the tests that `filter` matches and whose name contains one of `names`, if there are any.
pub fn run(filter: &str, names: &[String]) -> Result<Ran> {
    let mut nextest = built_tests("default", filter);
    nextest.args(["--no-tests", "pass"]).args(names);
    run_and_read(&mut nextest, "default")
}

/// Returns the command that runs the tests that match `filter`, with a profile of `.config/nextest.toml`.
///
/// It runs the binaries that [`build`] has built and compiles nothing, even if a source has changed since.
pub fn built_tests(profile: &str, filter: &str) -> Command {
    let mut nextest = Command::new(cargo());
    nextest
        .args(["nextest", "run", "--profile", profile, "--filterset", filter])
        .arg("--cargo-metadata")
        .arg(cargo_metadata())
        .arg("--binaries-metadata")
        .arg(binaries_metadata())
        .current_dir(root());
    nextest
}

/// Runs a nextest command and parses its report. `profile` is the profile that the command uses.
pub fn run_and_read(nextest: &mut Command, profile: &str) -> Result<Ran> {
    let report = root().join("target/nextest").join(profile).join("junit.xml");
    // Remove the reports of an earlier run.
    for file in [&report, &skipped_tests()] {
        let _ = fs::remove_file(file);
    }
    let status = nextest.env("XTASK_SKIPPED_TESTS", skipped_tests()).status()?;
    let mut tests = match fs::read_to_string(&report) {
        Ok(report) => junit::parse(&report)?,
        Err(_) => Vec::<Test>::new(),
    };
    mark_skipped(&mut tests, &fs::read_to_string(skipped_tests()).unwrap_or_default());
    Ok(Ran::new("nextest", status.success(), tests))
}

/// Runs a command with its standard output redirected to a file.
fn write(command: &mut Command, to: &PathBuf) -> Result<()> {
    let file = File::create(to).with_context(|| format!("writing {}", to.display()))?;
    let status = command.stdout(file).status()?;
    if !status.success() {
        bail!("`{}` ended with {status}", command.get_program().display());
    }
    Ok(())
}

fn cargo_metadata() -> PathBuf {
    folder().join("cargo-metadata.json")
}

fn binaries_metadata() -> PathBuf {
    folder().join("binaries-metadata.json")
}

/// Returns the file in which skipped tests record their names.
fn skipped_tests() -> PathBuf {
    folder().join("skipped-tests")
}
