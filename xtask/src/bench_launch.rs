//! Implements `cargo xtask bench`: builds the hub and the benchmark in release mode, then runs the benchmark.
//!
//! It is outside the `bench` feature, so that the benchmark is compiled only when it is requested.

use crate::{cargo, packages, root, web};
use anyhow::{Result, bail};
use std::process::Command;

const USAGE: &str = "\
Usage: cargo xtask bench [options]
       cargo xtask bench web [--hub FILE]     Measure the web page in Chromium.
       cargo xtask bench chatmd [options]     Measure `parlor watch` against `tail -F`.

  --json FILE      Also write the numbers of all rounds as JSON.
  --strict         Exit with an error if a threshold is missed.
  --only NAME      Run only the scenario NAME, or all whose names contain it:
                   fan-out-100, fan-out-1000, sse, publish, idle, connect,
                   route-100, route-10000, route-100000, route-100-flood,
                   route-loss, receive, search, sign-ins,
                   chunks, speakers, idle-agents.
  --rounds N       Number of rounds per scenario (default 5); medians are reported.
  --seconds S      Duration of one timed measurement (default 3).
  --dir DIR        Directory for the data of hub and references (default target/bench-data).
  --hub FILE       Measure this binary instead of a new release build.
  --stand-in       Measure a fake hub, to test the benchmark itself.
  --small          Use few connections, to test that everything runs; the numbers are meaningless.
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
    let (inner, arguments) = match arguments {
        [what, options @ ..] if what == "chatmd" => ("bench-chatmd", options),
        _ => ("bench-run", arguments),
    };
    // The manifest is passed instead of changing the directory, so that relative paths in the options stay
    // valid.
    let workspace = ["--manifest-path".to_string(), root().join("Cargo.toml").display().to_string()];
    // The hub is built separately: built together with xtask, it would get the features of both packages.
    if inner == "bench-run" && !arguments.iter().any(|argument| argument == "--stand-in") {
        packages::install_missing(packages::FOR_BENCH);
    }
    if !arguments.iter().any(|argument| argument == "--hub" || argument == "--stand-in") {
        run_to_end(
            Command::new(cargo()).args(["build", "--release", "--package", "parlor"]).args(&workspace),
        )?;
    }
    // Raise the limit of file descriptors for thousands of connections; all child processes inherit it.
    let raise_limit = r#"ulimit -n "$(ulimit -H -n)" && exec "$0" "$@""#;
    run_to_end(
        Command::new("sh")
            .args(["-c", raise_limit, &cargo()])
            .args(["run", "--quiet", "--release", "--package", "xtask", "--features", "bench"])
            .args(&workspace)
            .args(["--", inner])
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
        // The benchmark runs in another directory, so the path must be absolute.
        [flag, file] if flag == "--hub" => std::path::absolute(file)?,
        _ => bail!("`bench web` accepts only `--hub FILE`"),
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
