//! Implements `cargo xtask test`: all checks that a change must pass.
//!
//! Owns: the order of a run. A failed check that is not a test ends the run; after a failed test, the other
//! tests still run. The last line of the output is the result, `N passed, N failed`.

mod cuts;
mod junit;
mod load;
mod nextest;
mod options;
pub mod outcome;
mod real_agents;
mod report;
mod soak;
mod step;
pub mod vitest;

use crate::{packages, root};
use anyhow::{Result, bail};
use load::Load;
use options::{Request, Selection};
use outcome::{Done, Ran};
use report::Report;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;
use step::Step;

pub fn run(arguments: &[String]) -> Result<ExitCode> {
    let request = Request::parse(arguments)?;
    let mut report = Report::default();
    // Remove the output of failed tests of an earlier run.
    let _ = fs::remove_dir_all(kept());
    packages::print_versions();
    match request {
        Request::All => run_steps(&Step::ALL, &mut report)?,
        Request::Quick => run_steps(&Step::QUICK, &mut report)?,
        Request::Selected(selection) => run_rounds(&selection, &mut report)?,
        Request::RealAgents => record("real-agents", 1, &mut report, real_agents::run)?,
        Request::Cuts => record("cuts", 1, &mut report, cuts::run)?,
        Request::Soak => record("soak", 1, &mut report, soak::run)?,
    }
    print!("{report}");
    Ok(if report.failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn run_steps(steps: &[Step], report: &mut Report) -> Result<()> {
    for step in steps {
        record(step.name(), 1, report, || step.perform(&[]))?;
        if report.failed() && !step.is_test() {
            break;
        }
    }
    Ok(())
}

/// Builds once, then runs the selected tests for the requested number of rounds.
fn run_rounds(selection: &Selection, report: &mut Report) -> Result<()> {
    run_steps(&[Step::Build], report)?;
    if report.failed() {
        return Ok(());
    }
    let _load = selection.load.then(Load::on_every_core);
    let mut steps = selection.steps.clone();
    for round in 1..=selection.rounds {
        if selection.rounds > 1 {
            println!("\n==== round {round} of {} ====", selection.rounds);
        }
        let mut empty = Vec::new();
        for step in &steps {
            record(step.name(), round, report, || {
                let ran = step.perform(&selection.names)?;
                if ran.tests.is_empty() && ran.failure.is_none() {
                    empty.push(*step);
                }
                Ok(ran)
            })?;
        }
        // Steps without a matching test are left out of the next rounds.
        steps.retain(|step| !empty.contains(step));
        if steps.is_empty() {
            let nothing = || bail!("no test has a name that contains `{}`", selection.names.join("` or `"));
            return record("selection", round, report, nothing);
        }
    }
    Ok(())
}

/// Runs one step, adds its result to the report, and saves the output of failed tests.
fn record(
    step: &'static str,
    round: u32,
    report: &mut Report,
    perform: impl FnOnce() -> Result<Ran>,
) -> Result<()> {
    println!("\n== {step} ==");
    let started = Instant::now();
    let ran = perform().unwrap_or_else(|error| Ran { failure: Some(format!("{error:#}")), ..Ran::default() });
    let done = Done { step, took: started.elapsed(), ran };
    println!("== {step} took {:.1} s ==", done.took.as_secs_f64());
    for test in &done.ran.tests {
        if let Some(output) = test.failure() {
            fs::create_dir_all(kept())?;
            fs::write(kept().join(file_name(&test.name, round)), output)?;
        }
    }
    report.add(&done, |test| {
        let file = kept().join(file_name(test, round));
        file.strip_prefix(root()).unwrap_or(&file).display().to_string()
    });
    Ok(())
}

/// Returns the folder for the reports of a run and the output of its failed tests.
pub fn folder() -> PathBuf {
    root().join("target/xtask-test")
}

/// Returns the folder for the output of failed tests, which the next run removes.
fn kept() -> PathBuf {
    folder().join("failed")
}

/// Returns a file name for the output of a test. Names of flows are sentences and may exceed the length of a
/// file name, so they are truncated and made unique with a hash.
fn file_name(test: &str, round: u32) -> String {
    let plain = |char: char| if char.is_alphanumeric() || "._-".contains(char) { char } else { '-' };
    let name: String = test.chars().map(plain).take(60).collect();
    let mut hasher = DefaultHasher::new();
    test.hash(&mut hasher);
    format!("{name}-{:08x}.round-{round}.txt", hasher.finish() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_test_and_round_has_its_own_output_file() {
        let long = "a flow whose name is a sentence, and a long one, with é and / and more than a file name may have";
        let names = [
            file_name(long, 1),
            file_name(long, 2),
            file_name(&format!("{long}, twice"), 1),
            file_name("parlor::it rooms::opens", 1),
            file_name("parlor::it rooms-opens", 1),
        ];
        for (at, name) in names.iter().enumerate() {
            assert!(name.len() < 150 && !name.contains(['/', ' ', ':']), "{name}");
            assert!(!names[..at].contains(name), "{name}");
        }
    }
}
