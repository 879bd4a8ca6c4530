//! Implements `parlor backup FILE` and `parlor restore FILE`.
//!
//! The backup process opens the database itself, as one more reader: the hub does not wait for it, and it
//! works the same while no hub is running. Neither command leaves an incomplete file under a final name.

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

/// Name of the database, in the data directory and in an archive.
const DATABASE: &str = "parlor.db";
/// Name of the directory with uploaded files, in the data directory and in an archive.
const UPLOADS: &str = "uploads";

/// Returns the audit entry for a backup or restore by the operator, up to event `seq`.
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

/// Syncs a directory, so that new and renamed files in it survive a power loss.
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
