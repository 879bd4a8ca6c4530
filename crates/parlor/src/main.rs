//! Starts Parlor; everything it does is in the library beside it.

use std::process::ExitCode;

/// Messages are made on one thread and dropped on another, thousands a second; the system's allocator pays
/// for that with its locks. Without huge pages: a hub at rest would keep two megabytes for every few kilobytes.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    parlor::run::run()
}
