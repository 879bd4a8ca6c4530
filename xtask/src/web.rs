//! The web page: its lints, its unit tests, its flows through a real browser and a real hub, and its measurements.

use crate::root;
use crate::test::outcome::Ran;
use crate::test::{folder, vitest};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Types and rules, in a few seconds.
pub fn lints() -> Result<()> {
    fetch()?;
    succeed(npm(&["run", "--silent", "check"]))?;
    succeed(npm(&["run", "--silent", "lint"]))
}

pub fn unit_tests(names: &[String]) -> Result<Ran> {
    fetch()?;
    tests(npm(&["test", "--silent", "--"]), names)
}

/// From the setup link to a streamed answer, with everything between and what must never happen.
pub fn flows(names: &[String]) -> Result<Ran> {
    fetch()?;
    tests(npm(&["run", "--silent", "flows", "--"]), names)
}

/// How quick the page is, with this hub.
pub fn bench(hub: &Path) -> Result<()> {
    fetch()?;
    let mut bench = npm(&["run", "--silent", "bench"]);
    bench.env("PARLOR_BIN", hub);
    succeed(bench)
}

/// Runs a script that calls vitest, and reads what vitest reports.
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

/// A regular expression of JavaScript that finds each of these texts.
fn any_of(names: &[String]) -> String {
    let escaped = names.iter().map(|name| {
        let escape =
            |char: char| if r"\^$.*+?()[]{}|/".contains(char) { vec!['\\', char] } else { vec![char] };
        name.chars().flat_map(escape).collect::<String>()
    });
    escaped.collect::<Vec<_>>().join("|")
}

/// What the page needs was fetched when it was built, unless cargo found it built already, and somebody removed it.
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
    npm.status().context("npm cannot be run; it comes with Node.js")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_flows_are_searched_as_they_are_written() {
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
