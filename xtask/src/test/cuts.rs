//! `cargo xtask test cuts`: streams of chat events that are cut at random, at full size.
//!
//! Apart from the other tests because of its size: four million events, for which a hub that is not optimised is too
//! slow.

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
