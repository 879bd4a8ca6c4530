//! Installs the Debian packages that tests and benchmarks need and that are missing.
//!
//! Owns: the tables of packages. A package that cannot be installed stops nothing here: what needs it says so
//! itself, and everything else still runs.

use std::process::{Command, Stdio};

pub struct Package {
    name: &'static str,
    needed_for: &'static str,
}

pub const FOR_TESTS: &[Package] = &[
    Package { name: "fuse3", needed_for: "the tests that drop unsynced data below the store" },
    Package { name: "chromium", needed_for: "the tests that open the page in a browser" },
];

pub const FOR_WEB: &[Package] =
    &[Package { name: "chromium", needed_for: "the measurements of the page, which are made in a browser" }];

pub const FOR_BENCH: &[Package] =
    &[Package { name: "nats-server", needed_for: "the measurements of routing, which compare with NATS" }];

/// Installs what is missing and says what it did.
pub fn install_missing(packages: &[Package]) {
    if !succeeds(Command::new("dpkg").arg("--version")) {
        println!("This is not a Debian system: install these yourself if anything misses them:");
        packages.iter().for_each(|package| println!("  {} for {}", package.name, package.needed_for));
        return;
    }
    let missing: Vec<&Package> = packages.iter().filter(|package| !is_installed(package.name)).collect();
    if missing.is_empty() {
        println!("All packages are there.");
        return;
    }
    for package in &missing {
        println!("Missing: {}, for {}.", package.name, package.needed_for);
    }
    if !apt_get(&["update"]) {
        println!("`apt-get update` failed; trying with the package lists that are there.");
    }
    // One by one: a package that is not to be had must not take the others with it.
    for package in missing {
        if !apt_get(&["install", "-y", "--no-install-recommends", package.name]) {
            println!("Could not install {}; {} will say so.", package.name, package.needed_for);
        }
    }
}

fn is_installed(name: &str) -> bool {
    let status = Command::new("dpkg").args(["-s", name]).stderr(Stdio::null()).output();
    // `dpkg -s` also succeeds for a removed package whose configuration is left.
    status.is_ok_and(|output| {
        output.status.success() && says_installed(&String::from_utf8_lossy(&output.stdout))
    })
}

fn says_installed(status: &str) -> bool {
    status.lines().any(|line| line.starts_with("Status:") && line.ends_with(" ok installed"))
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

    #[test]
    fn a_removed_package_with_leftover_configuration_counts_as_missing() {
        check("Package: fuse3\nStatus: install ok installed\n", true);
        check("Package: fuse3\nStatus: deinstall ok config-files\n", false);
        check("Package: fuse3\nStatus: hold ok installed\n", true);
        check("", false);
    }

    #[track_caller]
    fn check(status: &str, installed: bool) {
        assert_eq!(says_installed(status), installed);
    }
}
