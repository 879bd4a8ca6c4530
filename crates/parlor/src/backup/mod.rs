//! `parlor backup FILE` and `parlor restore FILE`.
//!
//! A backup is made by a process of its own that reads the database beside the hub, as the hub's readers do: nothing
//! waits for it, and it works the same when no hub runs. Neither command leaves a half-made file under a true name.

mod archive;
mod create;
mod last;
mod restore;

pub use create::create;
pub use last::LastBackup;
pub use restore::{STAGING_DIRECTORY, restore};

use parlor_engine::audit;
use parlor_engine::local::SystemClock;
use parlor_engine::ports::Clock;
use parlor_model::Seq;
use parlor_model::audit::{Action, Actor, NewAuditEntry};
use std::fs::File;
use std::io;
use std::path::Path;

/// What a directory of data holds, by its names in it and in an archive.
const DATABASE: &str = "parlor.db";
const UPLOADS: &str = "uploads";

/// What whoever runs the hub did, for its audit log.
fn note(action: Action, seq: u64) -> NewAuditEntry {
    let detail = Some(audit::up_to(Seq(seq)).into());
    NewAuditEntry {
        at: SystemClock.now(),
        actor: Actor::Operator,
        action,
        subject: None,
        detail,
        address: None,
    }
}

/// Until the directory is on the disk, neither are the names in it.
fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

fn in_megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

fn and_files(count: usize) -> String {
    match count {
        0 => String::new(),
        1 => " and 1 uploaded file".into(),
        count => format!(" and {count} uploaded files"),
    }
}
