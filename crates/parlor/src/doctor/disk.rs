//! Checks of the data directory, its file system, the database and the log file for `parlor doctor`.

use super::{Finding, fail, ok, warn};
use crate::settings::Settings;
use parlor_backends::sqlite::OpenError;
use parlor_backends::sqlite::backup::CopySummary;
use rustix::fs::{Access, access, statvfs};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const MEGABYTE: u64 = 1_000_000;
/// Free bytes below which the check warns: the hub still works, but the disk will be full soon.
const LOW_SPACE_BYTES: u64 = 1000 * MEGABYTE;
/// Free bytes below which the check fails.
const MIN_SPACE_BYTES: u64 = 100 * MEGABYTE;

pub fn data_directory(settings: &Settings) -> Option<Finding> {
    let (data, shown) = (&settings.data, settings.data.display());
    let about = match data.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Some(ok("data", format!("{shown} does not exist yet; the first start creates it.")));
        }
        Err(error) => {
            let fix = format!("Check the permissions along the path: namei -l {shown}");
            return Some(fail("data", format!("{shown} cannot be examined: {error}."), fix));
        }
        Ok(about) => about,
    };
    if !about.is_dir() {
        return Some(fail(
            "data",
            format!("{shown} is not a directory."),
            "Choose a directory with --data, or move the file.",
        ));
    }
    let me = rustix::process::geteuid();
    if about.uid() != me.as_raw() && !me.is_root() {
        let fix =
            format!("Run this command as user {}, or chown the directory to the hub's user.", about.uid());
        let message = format!("{shown} belongs to user {}, not to the current user.", about.uid());
        return Some(fail("data", message, fix));
    }
    if access(data, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        return Some(fail("data", format!("{shown} is not writable."), format!("chmod u+rwx {shown}")));
    }
    if about.mode() & 0o077 != 0 {
        let mode = about.mode() & 0o777;
        let message = format!("Other users of this machine can access {shown} (mode {mode:o}).");
        return Some(warn("data", message, format!("chmod 700 {shown}")));
    }
    Some(ok("data", format!("{shown} is private and writable.")))
}

pub fn file_system(settings: &Settings) -> Vec<Finding> {
    // Before the first start, the data directory does not exist: check its nearest existing ancestor.
    let Ok(data) = std::path::absolute(&settings.data) else { return Vec::new() };
    let Some(existing) = data.ancestors().find(|path| path.exists()) else { return Vec::new() };
    [kind(existing), space(existing)].into_iter().flatten().collect()
}

fn space(directory: &Path) -> Option<Finding> {
    let about = statvfs(directory).ok()?;
    let free = about.f_bavail * about.f_frsize;
    let message = format!("{:.1} GB are free.", free as f64 / 1e9);
    let fix = "Free disk space, or move the data; message_retention_days deletes old messages.";
    Some(match free {
        free if free < MIN_SPACE_BYTES => fail("space", message, fix),
        free if free < LOW_SPACE_BYTES => warn("space", message, fix),
        _ => ok("space", message),
    })
}

/// Checks whether the type of the file system is safe for a database. Only Linux reports the type.
#[cfg(target_os = "linux")]
fn kind(directory: &Path) -> Option<Finding> {
    let kind = rustix::fs::statfs(directory).ok()?.f_type as u32;
    let network = "Store the data on a local disk, and backups on the network file system.";
    Some(match kind {
        0x6969 | 0xff53_4d42 | 0xfe53_4d42 | 0x517b | 0x0102_1997 | 0x00c3_6400 => fail(
            "file system",
            "The data is on a network file system, where locks and syncs are unreliable.",
            network,
        ),
        0x0102_1994 | 0x8584_58f6 => warn(
            "file system",
            "The data is on a file system in memory: a reboot deletes it.",
            "Choose a directory on a disk with --data.",
        ),
        0x794c_7630 => warn(
            "file system",
            "The data is in the container's own layer, which is deleted with the container.",
            "Mount a volume at the data directory.",
        ),
        0x6573_5546 => warn(
            "file system",
            "The data is on a FUSE file system; its safety depends on the program that serves it.",
            "Store the data on a local disk if in doubt.",
        ),
        _ => ok("file system", "The data is on a local file system."),
    })
}

#[cfg(not(target_os = "linux"))]
fn kind(_: &Path) -> Option<Finding> {
    None
}

pub fn database(settings: &Settings, found: &Result<CopySummary, OpenError>) -> Option<Finding> {
    let file = settings.data.join("parlor.db");
    let bytes = |file: &Path| file.metadata().map(|about| about.len());
    let size = bytes(&file).ok()? + bytes(&file.with_extension("db-wal")).unwrap_or(0);
    Some(match found {
        Ok(about) => ok(
            "database",
            format!(
                "The database is intact: schema {}, {:.1} MB, up to event {}.",
                about.schema,
                size as f64 / 1e6,
                about.head.seq.0
            ),
        ),
        Err(OpenError::Empty) => ok("database", "The database is still empty."),
        Err(error @ OpenError::Newer { .. }) => {
            fail("database", format!("{error}."), "Install the version that wrote it, or a newer one.")
        }
        Err(error @ OpenError::Damaged(_)) => fail(
            "database",
            format!("{error}."),
            "Stop the hub, copy the data directory, and restore the last backup: parlor restore FILE --replace",
        ),
        Err(error) => {
            fail("database", format!("{error}."), format!("Check the permissions of {}.", file.display()))
        }
    })
}

pub fn log_file(settings: &Settings) -> Option<Finding> {
    let file = settings.log_file.as_deref()?;
    let shown = file.display();
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let target = if file.exists() { file } else { directory };
    Some(match access(target, Access::WRITE_OK) {
        Ok(()) => ok("log", format!("{shown} is writable.")),
        Err(error) => {
            let fix = "Create its directory, and make it writable for the user that runs the hub.";
            fail("log", format!("{shown} is not writable: {error}."), fix)
        }
    })
}
