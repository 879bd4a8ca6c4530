//! Implements `cargo xtask test real-agents`: tests the agent kinds and the gateway with the real third-party
//! programs.
//!
//! It is separate from the other tests because it downloads these programs, to a folder below `target/`. They
//! use a stub model endpoint on loopback and a temporary home directory; no account or key is needed.

use super::nextest;
use super::outcome::Ran;
use crate::root;
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;

const PACKAGES: &[(&str, &str)] =
    &[("@anthropic-ai/claude-code", "2.1.325"), ("@agentclientprotocol/claude-agent-acp", "0.99.1")];

/// Environment variables that are passed on, because cargo needs them. All others are hidden from the
/// programs.
const PASSED_VARIABLES: &[&str] =
    &["PATH", "HOME", "LANG", "TMPDIR", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"];

pub fn run() -> Result<Ran> {
    let folder = root().join("target/real-agents");
    let missing: Vec<String> = PACKAGES
        .iter()
        .filter(|(package, version)| !is_installed(&folder, package, version))
        .map(|(package, version)| format!("{package}@{version}"))
        .collect();
    if !missing.is_empty() {
        std::fs::create_dir_all(&folder)?;
        // Without a package.json, npm would use a project in a parent folder.
        std::fs::write(folder.join("package.json"), "{ \"private\": true }\n")?;
        println!("npm install {}", missing.join(" "));
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund"]).args(&missing).current_dir(&folder);
        let status = npm.status().context("cannot run npm; it is part of Node.js")?;
        if !status.success() {
            bail!("`npm install` ended with {status}");
        }
    }
    nextest::build()?;
    let mut tests = nextest::built_tests("long", "test(/(^|::)real::/)");
    let passed = PASSED_VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    tests.env_clear().envs(passed).env("XTASK_REAL_AGENTS", &folder);
    nextest::run_and_read(&mut tests, "long")
}

fn is_installed(folder: &Path, package: &str, version: &str) -> bool {
    let manifest = std::fs::read_to_string(folder.join("node_modules").join(package).join("package.json"));
    let manifest = manifest.ok().and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok());
    manifest.is_some_and(|manifest| manifest["version"] == version)
}
