//! The checks of the web page: its types, its unit tests, and its flows through a real browser and a real hub.
//!
//! Without npm the page is not built either, and what concerns it is skipped, which the end of the run tells.

use crate::root;
use crate::test::note_skipped;
use anyhow::{Result, bail};
use std::path::Path;
use std::process::{Command, Stdio};

/// Types and rules, in a few seconds.
pub fn check() -> Result<()> {
    if !has_npm() {
        return note_skipped("the unit tests of the web page: npm is not installed");
    }
    fetch()?;
    npm(&["run", "--silent", "check"])?;
    npm(&["run", "--silent", "lint"])?;
    npm(&["test", "--silent"])
}

/// From the setup link to a streamed answer, with everything between and what must never happen.
pub fn flows() -> Result<()> {
    if !has_npm() {
        return note_skipped("the flows through the web page: npm is not installed");
    }
    if !is_there("chromium") {
        return note_skipped("the flows through the web page: there is no chromium in PATH");
    }
    npm(&["run", "--silent", "flows"])
}

/// How quick the page is, with this hub.
pub fn bench(hub: &Path) -> Result<()> {
    fetch()?;
    npm_with(hub, &["run", "--silent", "bench"])
}

/// What the page needs was fetched when it was built, unless cargo found it built already, and somebody removed it.
fn fetch() -> Result<()> {
    let web = root().join("web");
    let lock = std::fs::read(web.join("package-lock.json"))?;
    let fetched = web.join("node_modules/.fetched-for");
    if std::fs::read(&fetched).is_ok_and(|of| of == lock) {
        return Ok(());
    }
    npm(&["ci", "--no-audit", "--no-fund"])?;
    Ok(std::fs::write(fetched, lock)?)
}

fn npm(arguments: &[&str]) -> Result<()> {
    npm_with(&root().join("target/debug/parlor"), arguments)
}

fn npm_with(hub: &Path, arguments: &[&str]) -> Result<()> {
    println!("npm {}", arguments.join(" "));
    let status = Command::new("npm")
        .args(arguments)
        .current_dir(root().join("web"))
        .env("PARLOR_BIN", hub)
        .status()?;
    if !status.success() {
        bail!("`npm {}` ended with {status}", arguments.join(" "));
    }
    Ok(())
}

fn has_npm() -> bool {
    is_there("npm")
}

fn is_there(program: &str) -> bool {
    let asked = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
}
