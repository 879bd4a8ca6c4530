//! `cargo xtask bench`: builds what is measured and what measures in release, then hands over.
//!
//! Stands outside the `bench` feature, so that asking for a benchmark is what compiles it.

use crate::{cargo, packages, root, web};
use anyhow::{Result, bail};
use std::process::Command;

const USAGE: &str = "\
Usage: cargo xtask bench [options]
       cargo xtask bench web [--hub FILE]     The page, in Chromium.

  --json FILE      Also write every round's numbers as JSON.
  --strict         Exit with an error when a bar is missed.
  --only NAME      Only the scenario NAME, or all whose names contain it:
                   fan-out-100, fan-out-1000, sse, publish, idle, connect,
                   route-100, route-10000, route-100000, route-100-flood,
                   route-loss, receive, search, sign-ins,
                   chunks, speakers, idle-agents.
  --rounds N       Rounds of each scenario (default 5); medians are reported.
  --seconds S      Length of one timed measurement (default 3).
  --dir DIR        Where the data of hub and references goes (default target/bench-data).
  --hub FILE       Measure this binary instead of a fresh release build.
  --stand-in       Measure a stand-in instead of the hub, to check the benchmark itself.
  --small          Few connections: checks that everything runs; the numbers mean nothing.
";

pub fn run(arguments: &[String]) -> Result<()> {
    if arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
        print!("{USAGE}");
        return Ok(());
    }
    if let [what, options @ ..] = arguments
        && what == "web"
    {
        return run_web(options);
    }
    // Named instead of entered, so that paths among the options keep their meaning.
    let workspace = ["--manifest-path".to_string(), root().join("Cargo.toml").display().to_string()];
    // The hub is built alone: together with xtask it would get the features of both, not those it ships with.
    if !arguments.iter().any(|argument| argument == "--stand-in") {
        packages::install_missing(packages::FOR_BENCH);
    }
    if !arguments.iter().any(|argument| argument == "--hub" || argument == "--stand-in") {
        run_to_end(
            Command::new(cargo()).args(["build", "--release", "--package", "parlor"]).args(&workspace),
        )?;
    }
    // Thousands of connections need as many file descriptors, on both ends; all processes inherit the limit.
    let raise_limit = r#"ulimit -n "$(ulimit -H -n)" && exec "$0" "$@""#;
    run_to_end(
        Command::new("sh")
            .args(["-c", raise_limit, &cargo()])
            .args(["run", "--quiet", "--release", "--package", "xtask", "--features", "bench"])
            .args(&workspace)
            .args(["--", "bench-run"])
            .args(arguments),
    )
}

fn run_web(options: &[String]) -> Result<()> {
    packages::require(packages::FOR_WEB)?;
    let hub = match options {
        [] => {
            run_to_end(
                Command::new(cargo()).args(["build", "--release", "--package", "parlor"]).current_dir(root()),
            )?;
            root().join("target/release/parlor")
        }
        // The measurement runs in another folder.
        [flag, file] if flag == "--hub" => std::path::absolute(file)?,
        _ => bail!("`bench web` knows only `--hub FILE`"),
    };
    web::bench(&hub)
}

fn run_to_end(command: &mut Command) -> Result<()> {
    let status = command.status()?;
    if !status.success() {
        bail!("`{}` ended with {status}", command.get_program().display());
    }
    Ok(())
}
