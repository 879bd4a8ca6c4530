//! `cargo xtask test real-agents`: the kinds of agents, and a gateway with them, with the programs they are made for.
//!
//! Apart from the other tests because it downloads those programs, into a folder below `target/` that is kept. They
//! talk to a model of ours on loopback and have a home of their own; nobody's account or key is used.

use super::nextest;
use super::outcome::Ran;
use crate::root;
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;

const PACKAGES: &[(&str, &str)] =
    &[("@anthropic-ai/claude-code", "2.1.325"), ("@agentclientprotocol/claude-agent-acp", "0.99.1")];

/// What cargo needs of the environment; nothing else of whoever runs this reaches the programs.
const KEPT: &[&str] = &["PATH", "HOME", "LANG", "TMPDIR", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"];

pub fn run() -> Result<Ran> {
    let folder = root().join("target/real-agents");
    let missing: Vec<String> = PACKAGES
        .iter()
        .filter(|(package, version)| !is_there(&folder, package, version))
        .map(|(package, version)| format!("{package}@{version}"))
        .collect();
    if !missing.is_empty() {
        std::fs::create_dir_all(&folder)?;
        // Without one npm looks for a project in the folders above.
        std::fs::write(folder.join("package.json"), "{ \"private\": true }\n")?;
        println!("npm install {}", missing.join(" "));
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund"]).args(&missing).current_dir(&folder);
        let status = npm.status().context("npm cannot be run; it comes with Node.js")?;
        if !status.success() {
            bail!("`npm install` ended with {status}");
        }
    }
    nextest::build()?;
    let mut tests = nextest::built_tests("long", "test(/(^|::)real::/)");
    let kept = KEPT.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    tests.env_clear().envs(kept).env("XTASK_REAL_AGENTS", &folder);
    nextest::run_and_read(&mut tests, "long")
}

fn is_there(folder: &Path, package: &str, version: &str) -> bool {
    let manifest = std::fs::read_to_string(folder.join("node_modules").join(package).join("package.json"));
    let manifest = manifest.ok().and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok());
    manifest.is_some_and(|manifest| manifest["version"] == version)
}
