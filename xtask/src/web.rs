//! Runs the npm scripts of the web page: lints, unit tests, tests of the Ably protocol with its client library,
//! flows in a real browser with a real hub, and benchmarks.

use crate::root;
use crate::test::outcome::Ran;
use crate::test::{folder, vitest};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Runs the type check and the linter; takes a few seconds.
pub fn lints() -> Result<()> {
    fetch()?;
    succeed(npm(&["run", "--silent", "check"]))?;
    succeed(npm(&["run", "--silent", "lint"]))
}

pub fn unit_tests(names: &[String]) -> Result<Ran> {
    fetch()?;
    tests(npm(&["test", "--silent", "--"]), names)
}

/// Runs the end-to-end flows, from the setup link to a streamed answer.
pub fn flows(names: &[String]) -> Result<Ran> {
    fetch()?;
    tests(npm(&["run", "--silent", "flows", "--"]), names)
}

/// Runs the unmodified client library of the Ably protocol against a real hub.
pub fn ably(names: &[String]) -> Result<Ran> {
    fetch()?;
    tests(npm(&["run", "--silent", "ably", "--"]), names)
}

/// Measures the performance of the page with this hub binary.
pub fn bench(hub: &Path) -> Result<()> {
    fetch()?;
    let mut bench = npm(&["run", "--silent", "bench"]);
    bench.env("PARLOR_BIN", hub);
    succeed(bench)
}

/// Runs a script that calls vitest, and parses its report.
fn tests(mut script: Command, names: &[String]) -> Result<Ran> {
    let report = folder().join("vitest.json");
    fs::create_dir_all(folder())?;
    // Removes the report of an earlier run.
    let _ = fs::remove_file(&report);
    script.args(["--reporter=default", "--reporter=json"]);
    script.arg(format!("--outputFile.json={}", report.display()));
    if !names.is_empty() {
        script.arg("--testNamePattern").arg(any_of(names));
    }
    let status = status(&mut script)?;
    let tests = match fs::read(&report) {
        Ok(report) => vitest::parse(&report, !names.is_empty())?,
        Err(error) => bail!("vitest ended with {status} and wrote no report: {error}"),
    };
    Ok(Ran::new("vitest", status.success(), tests))
}

/// Returns a JavaScript regular expression that matches any of these texts literally.
fn any_of(names: &[String]) -> String {
    let escaped = names.iter().map(|name| {
        let escape =
            |char: char| if r"\^$.*+?()[]{}|/".contains(char) { vec!['\\', char] } else { vec![char] };
        name.chars().flat_map(escape).collect::<String>()
    });
    escaped.collect::<Vec<_>>().join("|")
}

/// Installs the npm packages if they do not match the lock file. The build of the page usually has installed
/// them, but `node_modules` may have been removed since.
fn fetch() -> Result<()> {
    let web = root().join("web");
    let lock = fs::read(web.join("package-lock.json"))?;
    let fetched = web.join("node_modules/.fetched-for");
    if fs::read(&fetched).is_ok_and(|of| of == lock) {
        return Ok(());
    }
    succeed(npm(&["ci", "--no-audit", "--no-fund"]))?;
    Ok(fs::write(fetched, lock)?)
}

fn npm(arguments: &[&str]) -> Command {
    println!("npm {}", arguments.join(" "));
    let mut npm = Command::new("npm");
    npm.args(arguments).current_dir(root().join("web")).env("PARLOR_BIN", root().join("target/debug/parlor"));
    npm
}

fn succeed(mut npm: Command) -> Result<()> {
    let status = status(&mut npm)?;
    if !status.success() {
        bail!("npm ended with {status}");
    }
    Ok(())
}

fn status(npm: &mut Command) -> Result<std::process::ExitStatus> {
    npm.status().context("cannot run npm; it is part of Node.js")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_names_are_matched_literally() {
        check(&["reloads"], "reloads");
        check(&["who reloads (twice)", "1.5"], r"who reloads \(twice\)|1\.5");
        check(&[r"a\b/c"], r"a\\b\/c");
    }

    #[track_caller]
    fn check(names: &[&str], expected: &str) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(any_of(&names), expected);
    }
}
