//! Entry point of the `parlor` binary. All behaviour is in the library crate next to it.

use std::process::ExitCode;

/// mimalloc instead of the system allocator: the hub allocates messages on one thread and frees them on
/// another, thousands of times per second, and the system allocator contends on its locks for this pattern.
/// Huge pages stay disabled: with them an idle hub would hold two megabytes for every few kilobytes in use.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    parlor::run::run()
}
