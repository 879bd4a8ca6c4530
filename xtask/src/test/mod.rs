//! `cargo xtask test`: everything that must hold before a change is done.
//!
//! Owns: the order of a run. A step that is no test ends the run when it fails; after a failed test the others are run
//! all the same. The last line of the output is the verdict, `N passed, N failed`.

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
    // Removes the output of failed tests that an earlier run kept.
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

/// Builds once, then runs the chosen tests again and again.
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
        // Where no test has one of the names, none will have it in the next round.
        steps.retain(|step| !empty.contains(step));
        if steps.is_empty() {
            let nothing = || bail!("no test has a name that contains `{}`", selection.names.join("` or `"));
            return record("selection", round, report, nothing);
        }
    }
    Ok(())
}

/// Runs one step, reports how it ended, and keeps what failed tests printed.
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

/// The folder for the reports of a run and for the output of its failed tests.
pub fn folder() -> PathBuf {
    root().join("target/xtask-test")
}

/// Where the output of failed tests is kept until the next run.
fn kept() -> PathBuf {
    folder().join("failed")
}

/// Names of flows are sentences, and may be longer than the name of a file.
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
    fn each_test_and_round_keeps_its_output_in_a_file_of_its_own() {
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
