//! Implements `cargo xtask test cuts`: chat event streams that are disconnected at random, at full size.
//!
//! It is separate from the other tests because of its size: a debug build is too slow for four million
//! events.

use super::nextest::run_and_read;
use super::outcome::Ran;
use crate::{cargo, root};
use anyhow::Result;
use std::process::Command;

pub fn run() -> Result<Ran> {
    let mut nextest = Command::new(cargo());
    nextest
        .args(["nextest", "run", "--release", "--package", "parlor", "--profile", "long", "--no-capture"])
        .arg("streams_cut")
        .current_dir(root());
    run_and_read(&mut nextest, "long")
}
