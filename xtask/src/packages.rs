//! Programs of others that tests and benchmarks need: finds them, and installs the Debian packages of missing ones.
//!
//! Owns: the tables of packages. A package that cannot be had fails a run of tests, so that no test is left out
//! unnoticed; a benchmark says itself what it misses.

use anyhow::{Result, bail};
use std::path::PathBuf;
use std::process::{Command, Stdio};

pub struct Package {
    /// The name of the executable in `PATH`.
    program: &'static str,
    /// The package of Debian that has it; without one, it is not ours to install.
    debian: Option<&'static str>,
    needed_for: &'static str,
    /// Only Linux has it; elsewhere the tests that need it say that they are skipped.
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
    // Debian's may be older than the page needs, so whoever builds the page chooses one.
    Package { program: "npm", debian: None, needed_for: "the page: install Node.js", only_linux: false },
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

/// Installs what is missing, and fails if something still is.
pub fn require(packages: &[Package]) -> Result<()> {
    let missing = install_missing(packages);
    if missing.is_empty() {
        return Ok(());
    }
    let lines = missing.iter().map(|package| format!("\n  {} for {}", package.program, package.needed_for));
    bail!("these programs are missing, and could not be installed:{}", lines.collect::<String>());
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
        println!("All programs of others are there.");
        return missing;
    }
    for package in &missing {
        println!("Missing: {}, for {}.", package.program, package.needed_for);
    }
    if !succeeds(Command::new("dpkg").arg("--version")) {
        println!("This is not a Debian system: install them yourself.");
        return missing;
    }
    let names: Vec<&str> = missing.iter().filter_map(|package| package.debian).collect();
    if !names.is_empty() && !apt_get(&["update"]) {
        println!("`apt-get update` failed; trying with the package lists that are there.");
    }
    // One by one: a package that is not to be had must not take the others with it.
    for name in names {
        if !apt_get(&["install", "-y", "--no-install-recommends", name]) {
            println!("`apt-get install {name}` failed.");
        }
    }
    missing.retain(is_missing);
    missing
}

/// Tests may depend on these versions, and a log should say with which it was made.
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
        // Without a terminal to ask on, a password prompt would hang the run.
        let mut command = Command::new("sudo");
        command.args(["-n", "apt-get"]);
        command
    };
    succeeds(command.arg("-q").args(arguments).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null()))
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// Output of a package manager is long and rarely wanted, so it is shown only when the command failed.
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
    fn a_program_that_cannot_be_had_fails_the_run() {
        let error = require(&[NOWHERE]).unwrap_err().to_string();
        assert!(error.ends_with("\n  no-such-program for this test"), "{error}");
    }
}
