//! `cargo xtask types`: writes what the web takes from the Rust types.
//!
//! The types know their TypeScript in the tests of their crate only, so that nothing of it is shipped; the test
//! that compares the file with them writes it when asked.

use crate::{cargo, root};
use anyhow::{Result, bail};
use std::process::Command;

pub fn run(arguments: &[String]) -> Result<()> {
    if !arguments.is_empty() {
        bail!("`types` takes no arguments");
    }
    std::fs::create_dir_all(root().join("web/src/generated"))?;
    let status = Command::new(cargo())
        .args(["test", "--package", "parlor-wire", "--lib", "typescript"])
        .current_dir(root())
        .env("XTASK_WRITE_TYPES", "1")
        .status()?;
    if !status.success() {
        bail!("the types could not be written");
    }
    Ok(())
}
