//! Development commands, run as `cargo xtask <command>`.
//!
//! Owns: the commands `test`, `bench`, `permissions` and `types`. Never: code that the shipped binary needs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[cfg(feature = "bench")]
mod bench;
mod bench_launch;
mod layers;
mod packages;
mod permissions;
mod test;
#[cfg(test)]
mod tidy;
mod types;
mod web;

const USAGE: &str = "\
Usage: cargo xtask <command>

  test               Install missing packages, check format, lints and layering, then run all tests.
  test --quick       Run the same without installing packages, process tests, Ably tests and flows; use before each commit.
  test [--repeat N] [--load] [STEP or NAME]...
                     Run only tests: N times, and with load on every core. A STEP is one of unit, in-process,
                     web, process, ably, flows; a NAME is a part of a test's name. Default: all tests.
  test real-agents   Download third-party agents and run the tests with them.
  test cuts          Disconnect many chat event streams at random, at full size, in a release build.
  test soak          Run unit and in-process tests with 20 times as many cases in each random test.
  bench [options]    Measure the hub against minimal references, in release builds.
                     `cargo xtask bench --help` lists the options; `bench web` measures the web page,
                     `bench chatmd` measures `parlor watch`.
  permissions        Write `docs/permissions.md` from the permission table in the engine's tests.
  types              Generate the TypeScript types of the web page from the Rust types.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = match arguments.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", arguments.as_slice()),
    };
    let outcome = match command {
        "test" => test::run(rest),
        "permissions" => permissions::run(rest).map(|()| ExitCode::SUCCESS),
        "types" => types::run(rest).map(|()| ExitCode::SUCCESS),
        "bench" => bench_launch::run(rest).map(|()| ExitCode::SUCCESS),
        #[cfg(feature = "bench")]
        _ if bench::is_inner(command) => bench::inner(command, rest).map(|()| ExitCode::SUCCESS),
        "help" | "--help" | "-h" => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => Err(anyhow::anyhow!("there is no command `{command}`\n\n{USAGE}")),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the root of the workspace, independent of the working directory.
fn root() -> PathBuf {
    let manifest_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest_folder.parent().expect("xtask is one folder below the root").to_path_buf()
}

/// Returns the cargo that started this command, so that all steps use the same toolchain.
fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".into())
}
