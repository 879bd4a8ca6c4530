//! `cargo xtask test`: everything that must hold before a change is done.
//!
//! Owns: the steps and their order, cheap ones first. Stops at the first failure.

use crate::{cargo, layers, packages, real_agents, root, web};
use anyhow::{Result, bail};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

struct Step {
    name: &'static str,
    action: Action,
    /// Left out by `--quick`.
    slow: bool,
}

enum Action {
    Call(fn() -> Result<()>),
    Cargo(&'static [&'static str]),
}

const STEPS: &[Step] = &[
    Step { name: "packages", action: Action::Call(install_packages), slow: true },
    Step { name: "layering", action: Action::Call(layers::check), slow: false },
    Step { name: "format", action: Action::Cargo(&["fmt", "--all", "--check"]), slow: false },
    // The benchmark is a feature; with it on, lints and tests cover it too and dependencies compile once.
    Step {
        name: "lints",
        action: Action::Cargo(&[
            "clippy",
            "--workspace",
            "--all-targets",
            "--features",
            "xtask/bench,parlor-agents/real-agents,parlor/real-agents",
            "--",
            "-D",
            "warnings",
        ]),
        slow: false,
    },
    // Behind the lints, which have the page built and with it everything fetched that it needs.
    Step { name: "web", action: Action::Call(web::check), slow: false },
    Step {
        name: "unit tests",
        action: Action::Cargo(&["test", "--workspace", "--features", "xtask/bench", "--lib", "--bins"]),
        slow: false,
    },
    Step {
        name: "all tests",
        action: Action::Cargo(&["test", "--workspace", "--features", "xtask/bench"]),
        slow: true,
    },
    // With the hub that the tests have just built.
    Step { name: "web flows", action: Action::Call(web::flows), slow: true },
];

/// Streams that are cut at random, at full size: four million events, which a hub that is not optimised tells too slowly.
const CUTS: Action = Action::Cargo(&[
    "test",
    "--release",
    "--package",
    "parlor",
    "--test",
    "it",
    "--",
    "--nocapture",
    "streams_cut",
]);

pub fn run(arguments: &[String]) -> Result<()> {
    let quick = match arguments {
        [] => false,
        [flag] if flag == "--quick" => true,
        [what] if what == "real-agents" => return real_agents::run(),
        [what] if what == "cuts" => return perform(&CUTS),
        _ => bail!("`test` knows only `--quick`, `real-agents` and `cuts`"),
    };
    let mut done: Vec<(&str, Duration)> = Vec::new();
    let mut failure = None;
    // What an earlier run could not do is not this one's.
    let _ = std::fs::remove_file(skipped_tests());
    for step in STEPS.iter().filter(|step| chosen(step, quick)) {
        println!("\n== {} ==", step.name);
        let started = Instant::now();
        let outcome = perform(&step.action);
        let took = started.elapsed();
        println!("== {} took {:.1} s ==", step.name, took.as_secs_f64());
        done.push((step.name, took));
        if let Err(error) = outcome {
            failure = Some(error.context(format!("step `{}` failed", step.name)));
            break;
        }
    }
    println!("\n{:<12} {:>8}", "step", "seconds");
    for (index, (name, took)) in done.iter().enumerate() {
        let verdict = if failure.is_some() && index + 1 == done.len() { "FAILED" } else { "ok" };
        println!("{name:<12} {:>8.1}  {verdict}", took.as_secs_f64());
    }
    let skipped = std::fs::read_to_string(skipped_tests()).unwrap_or_default();
    if !skipped.is_empty() {
        println!("\n{} tests cannot be run here and were skipped:\n{skipped}", skipped.lines().count());
    }
    failure.map_or(Ok(()), Err)
}

/// Where tests that this machine cannot run write their names.
fn skipped_tests() -> PathBuf {
    root().join("target/skipped-tests")
}

/// For what is no test of cargo's.
pub fn note_skipped(what: &str) -> Result<()> {
    println!("SKIPPED {what}");
    let mut list = OpenOptions::new().create(true).append(true).open(skipped_tests())?;
    writeln!(list, "SKIPPED {what}")?;
    Ok(())
}

fn chosen(step: &Step, quick: bool) -> bool {
    // The whole run contains the unit tests already.
    if quick { !step.slow } else { step.name != "unit tests" }
}

fn perform(action: &Action) -> Result<()> {
    match action {
        Action::Call(function) => function(),
        Action::Cargo(arguments) => {
            println!("cargo {}", arguments.join(" "));
            let mut command = Command::new(cargo());
            command.args(*arguments).current_dir(root()).env("XTASK_SKIPPED_TESTS", skipped_tests());
            let status = command.status()?;
            if !status.success() {
                bail!("`cargo {}` ended with {status}", arguments.join(" "));
            }
            Ok(())
        }
    }
}

fn install_packages() -> Result<()> {
    packages::install_missing(packages::FOR_TESTS);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_run_and_the_quick_run_each_test_once() {
        check(false, &["packages", "layering", "format", "lints", "web", "all tests", "web flows"]);
        check(true, &["layering", "format", "lints", "web", "unit tests"]);
    }

    #[track_caller]
    fn check(quick: bool, expected: &[&str]) {
        let names: Vec<&str> =
            STEPS.iter().filter(|step| chosen(step, quick)).map(|step| step.name).collect();
        assert_eq!(names, expected);
    }
}
