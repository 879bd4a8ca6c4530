//! Implements `cargo xtask permissions`: writes `docs/permissions.md` from the permission table of the engine's tests.
//!
//! The test that compares the document with the table writes it if `XTASK_WRITE_PERMISSIONS` is set.

use crate::{cargo, root};
use anyhow::{Result, bail};
use std::process::Command;

pub fn run(arguments: &[String]) -> Result<()> {
    if !arguments.is_empty() {
        bail!("`permissions` takes no arguments");
    }
    let status = Command::new(cargo())
        .args(["test", "--package", "parlor-engine", "--test", "permissions", "the_document"])
        .current_dir(root())
        .env("XTASK_WRITE_PERMISSIONS", "1")
        .status()?;
    if !status.success() {
        bail!("cannot write docs/permissions.md");
    }
    Ok(())
}
