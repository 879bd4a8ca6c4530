//! Implements `cargo xtask types`: generates the TypeScript types of the web page from the Rust types.
//!
//! The conversion exists only in the tests of `parlor-wire`, so that it is not shipped. The test that
//! compares the generated file with the types writes it if `XTASK_WRITE_TYPES` is set.

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
        bail!("cannot write the types");
    }
    Ok(())
}
