//! Pins the bytes of every frame that the hub and Parlor's own clients write: clients depend on the order of
//! fields, on absent versus `null` fields and on number formats.
//!
//! Each file in `fixtures/golden` has one line per frame. A new frame adds a line; a changed line is a change
//! of a protocol.

mod agentim;
mod broker;
mod coverage;
mod events;
mod gateway;
mod page;
mod samples;

use std::path::Path;

/// Compares frames with a file of `fixtures/golden`.
#[track_caller]
fn check(name: &str, frames: &[String]) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/golden").join(name);
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    let actual: String = frames.iter().map(|frame| format!("{frame}\n")).collect();
    if actual != expected {
        let written = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&written, &actual).unwrap();
        panic!("the frames differ from {}; the actual ones are in {}", file.display(), written.display());
    }
}
