//! Finds the external programs that tests and benchmarks need, and installs the Debian packages of missing
//! ones.
//!
//! Owns: the tables of packages. A missing package fails a test run, so that no test is skipped unnoticed; a
//! benchmark reports a missing program itself.

use anyhow::{Result, bail};
use std::path::PathBuf;
use std::process::{Command, Stdio};

pub struct Package {
    /// Name of the executable in `PATH`.
    program: &'static str,
    /// Debian package that contains it; `None` if it must be installed manually.
    debian: Option<&'static str>,
    needed_for: &'static str,
    /// Whether it exists only on Linux; on other systems, the tests that need it are skipped.
    only_linux: bool,
}

pub const FOR_TESTS: &[Package] = &[
    Package {
        program: "fusermount3",
        debian: Some("fuse3"),
        needed_for: "the tests that drop unsynced data below the store",
        only_linux: true,
    },
    CHROMIUM,
    // The Debian package may be too old for the page, so Node.js must be installed manually.
    Package { program: "npm", debian: None, needed_for: "the web page: install Node.js", only_linux: false },
];

pub const FOR_WEB: &[Package] = &[CHROMIUM];

pub const FOR_BENCH: &[Package] = &[Package {
    program: "nats-server",
    debian: Some("nats-server"),
    needed_for: "the measurements of routing, which compare with NATS",
    only_linux: false,
}];

const CHROMIUM: Package = Package {
    program: "chromium",
    debian: Some("chromium"),
    needed_for: "the tests and measurements that open the page in a browser",
    only_linux: false,
};

/// Installs missing packages, and fails if a program is still missing.
pub fn require(packages: &[Package]) -> Result<()> {
    let missing = install_missing(packages);
    if missing.is_empty() {
        return Ok(());
    }
    let lines = missing.iter().map(|package| format!("\n  {} for {}", package.program, package.needed_for));
    bail!("these programs are missing and cannot be installed:{}", lines.collect::<String>());
}

/// Installs missing packages, prints each step, and returns the packages that are still missing.
pub fn install_missing(packages: &[Package]) -> Vec<&Package> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let is_missing = |package: &&Package| {
        let has_it = |folder: &PathBuf| folder.join(package.program).is_file();
        (!package.only_linux || cfg!(target_os = "linux")) && !folders.iter().any(has_it)
    };
    let mut missing: Vec<&Package> = packages.iter().filter(is_missing).collect();
    if missing.is_empty() {
        println!("All required programs are installed.");
        return missing;
    }
    for package in &missing {
        println!("Missing: {}, for {}.", package.program, package.needed_for);
    }
    if !succeeds(Command::new("dpkg").arg("--version")) {
        println!("This is not a Debian system: install the missing programs manually.");
        return missing;
    }
    let names: Vec<&str> = missing.iter().filter_map(|package| package.debian).collect();
    if !names.is_empty() && !apt_get(&["update"]) {
        println!("`apt-get update` failed; trying with the existing package lists.");
    }
    // One call per package, so that an unavailable package does not prevent the others.
    for name in names {
        if !apt_get(&["install", "-y", "--no-install-recommends", name]) {
            println!("`apt-get install {name}` failed.");
        }
    }
    missing.retain(is_missing);
    missing
}

/// Prints the versions of programs that test results may depend on.
pub fn print_versions() {
    for program in ["rustc", "node", "chromium"] {
        let output = Command::new(program).arg("--version").stderr(Stdio::null()).output();
        match output {
            Ok(output) if output.status.success() => {
                println!("{program}: {}", String::from_utf8_lossy(&output.stdout).trim());
            }
            _ => println!("{program}: missing"),
        }
    }
}

fn apt_get(arguments: &[&str]) -> bool {
    let mut command = if is_root() {
        Command::new("apt-get")
    } else {
        // `-n` fails instead of prompting: a password prompt without a terminal would block the run.
        let mut command = Command::new("sudo");
        command.args(["-n", "apt-get"]);
        command
    };
    succeeds(command.arg("-q").args(arguments).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null()))
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// Runs a command and returns whether it succeeded. Its output is printed only if it failed.
fn succeeds(command: &mut Command) -> bool {
    match command.output() {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            eprint!("{}", String::from_utf8_lossy(&output.stderr));
            false
        }
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOWHERE: Package =
        Package { program: "no-such-program", debian: None, needed_for: "this test", only_linux: false };

    #[test]
    fn a_program_that_cannot_be_installed_fails_the_run() {
        let error = require(&[NOWHERE]).unwrap_err().to_string();
        assert!(error.ends_with("\n  no-such-program for this test"), "{error}");
    }
}
