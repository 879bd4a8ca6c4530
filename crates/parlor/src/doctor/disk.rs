//! Directories, file systems, the database.

use super::{Finding, fail, ok, warn};
use crate::settings::Settings;
use parlor_backends::sqlite::OpenError;
use parlor_backends::sqlite::backup::CopySummary;
use rustix::fs::{Access, access, statvfs};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const MEGABYTE: u64 = 1_000_000;
/// A hub goes on with less, but not for long.
const FEW: u64 = 1000 * MEGABYTE;
const TOO_FEW: u64 = 100 * MEGABYTE;

pub fn data_directory(settings: &Settings) -> Option<Finding> {
    let (data, shown) = (&settings.data, settings.data.display());
    let about = match data.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Some(ok("data", format!("{shown} does not exist yet; the first start makes it.")));
        }
        Err(error) => {
            let fix = format!("See who may enter it: namei -l {shown}");
            return Some(fail("data", format!("{shown} cannot be looked at: {error}."), fix));
        }
        Ok(about) => about,
    };
    if !about.is_dir() {
        return Some(fail(
            "data",
            format!("{shown} is no directory."),
            "Name another with --data, or move it away.",
        ));
    }
    let me = rustix::process::geteuid();
    if about.uid() != me.as_raw() && !me.is_root() {
        let fix = format!("Run this as user {}, or give it to the one who runs the hub.", about.uid());
        return Some(fail("data", format!("{shown} belongs to user {}, not to you.", about.uid()), fix));
    }
    if access(data, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        return Some(fail("data", format!("{shown} cannot be written."), format!("chmod u+rwx {shown}")));
    }
    if about.mode() & 0o077 != 0 {
        let says = format!("{shown} is open to others on this machine (mode {:o}).", about.mode() & 0o777);
        return Some(warn("data", says, format!("chmod 700 {shown}")));
    }
    Some(ok("data", format!("{shown} is private and can be written.")))
}

pub fn file_system(settings: &Settings) -> Vec<Finding> {
    // Before the first start it is that of the nearest directory that exists.
    let Ok(data) = std::path::absolute(&settings.data) else { return Vec::new() };
    let Some(there) = data.ancestors().find(|path| path.exists()) else { return Vec::new() };
    [kind(there), space(there)].into_iter().flatten().collect()
}

fn space(directory: &Path) -> Option<Finding> {
    let about = statvfs(directory).ok()?;
    let free = about.f_bavail * about.f_frsize;
    let says = format!("{:.1} GB are free.", free as f64 / 1e9);
    let fix = "Make room, or move the data; message_retention_days lets old messages go.";
    Some(match free {
        free if free < TOO_FEW => fail("space", says, fix),
        free if free < FEW => warn("space", says, fix),
        _ => ok("space", says),
    })
}

/// Where a file system is no place for a database. Only Linux tells.
#[cfg(target_os = "linux")]
fn kind(directory: &Path) -> Option<Finding> {
    let kind = rustix::fs::statfs(directory).ok()?.f_type as u32;
    let network = "Keep the data on a disk of this machine, and backups on the other.";
    Some(match kind {
        0x6969 | 0xff53_4d42 | 0xfe53_4d42 | 0x517b | 0x0102_1997 | 0x00c3_6400 => fail(
            "file system",
            "It is a network file system, on which locks and syncs cannot be relied on.",
            network,
        ),
        0x0102_1994 | 0x8584_58f6 => warn(
            "file system",
            "It lies in memory: a reboot takes everything.",
            "Choose a directory on a disk with --data.",
        ),
        0x794c_7630 => warn(
            "file system",
            "It is a container's own layer, which goes with the container.",
            "Mount a volume at the data directory.",
        ),
        0x6573_5546 => warn(
            "file system",
            "It is served by a program (FUSE), and is as safe as that is.",
            "Keep the data on a disk of this machine if you are not sure.",
        ),
        _ => ok("file system", "It is one of this machine."),
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
                "It is sound: schema {}, {:.1} MB, up to event {}.",
                about.schema,
                size as f64 / 1e6,
                about.head.seq.0
            ),
        ),
        Err(OpenError::Empty) => ok("database", "There is nothing in it yet."),
        Err(error @ OpenError::Newer { .. }) => {
            fail("database", format!("{error}."), "Install the version that wrote it, or a newer one.")
        }
        Err(error @ OpenError::Damaged(_)) => fail(
            "database",
            format!("{error}."),
            "Stop the hub, keep a copy of the directory, and restore the last backup: parlor restore FILE --replace",
        ),
        Err(error) => fail("database", format!("{error}."), format!("See who may read {}.", file.display())),
    })
}

pub fn log_file(settings: &Settings) -> Option<Finding> {
    let file = settings.log_file.as_deref()?;
    let shown = file.display();
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let target = if file.exists() { file } else { directory };
    Some(match access(target, Access::WRITE_OK) {
        Ok(()) => ok("log", format!("{shown} can be written.")),
        Err(error) => {
            let fix = "Make its directory, and let the user who runs the hub write there.";
            fail("log", format!("{shown} cannot be written: {error}."), fix)
        }
    })
}
