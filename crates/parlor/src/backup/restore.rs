//! Restores a data directory from a backup.

use super::{DATABASE, UPLOADS, and_files, archive, note, sync_directory};
use crate::instance;
use anyhow::{Context, bail};
use parlor_backends::sqlite::backup;
use parlor_model::audit::Action;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Staging directory for the restored files. Start-up removes it if a restore was interrupted.
pub const STAGING_DIRECTORY: &str = ".restore";
/// Copy of the previous database, kept until the next restore.
const PREVIOUS_DATABASE: &str = "parlor.db.before-restore";

/// Restores the backup `file` to the data directory. The last step is one atomic rename: before it, the old
/// data is intact; after it, the restored data is.
pub fn restore(data: &Path, file: &Path, replace: bool) -> anyhow::Result<String> {
    instance::make_directory(data)?;
    let _lock = instance::lock(data)?;
    let database = data.join(DATABASE);
    let exists = database.exists();
    if exists && !replace {
        bail!(
            "{} already contains data; choose another directory with --data, or replace the data with --replace",
            data.display()
        );
    }
    let staging = RestoreStaging::open(data)?;
    let (about, files) = archive::read(file, |path| staging.file(path))?;
    let staged = staging.path.join(DATABASE);
    backup::assign_new_epoch(&staged)
        .with_context(|| format!("the database in {} is not usable", file.display()))?;
    backup::note(&staged, &note(Action::Restored, about.seq))?;
    staging.move_uploads(data).context("cannot move the uploaded files")?;
    if exists {
        preserve_database(data, &database).context("cannot preserve the old data")?;
    }
    fs::rename(&staged, &database).context("cannot move the database into place")?;
    sync_directory(data)?;
    Ok(format!(
        "Restored {} to {}: everything up to event {}{}.\n\
         All users must sign in again, and clients reload their data. API keys that were revoked and users that were\n\
         removed after the backup are active again: check parlor admin token list and parlor admin user list.\n{}",
        file.display(),
        data.display(),
        about.seq,
        and_files(files.len() - 1),
        if exists { format!("The previous database is in {PREVIOUS_DATABASE}.\n") } else { String::new() }
    ))
}

struct RestoreStaging {
    path: PathBuf,
}

impl RestoreStaging {
    fn open(data: &Path) -> anyhow::Result<Self> {
        let path = data.join(STAGING_DIRECTORY);
        clear(&path)
            .and_then(|()| DirBuilder::new().mode(0o700).create(&path))
            .with_context(|| format!("cannot write to {}", data.display()))?;
        Ok(Self { path })
    }

    fn file(&self, path: &str) -> anyhow::Result<Synced> {
        let file = self.path.join(path);
        let create = || {
            DirBuilder::new().recursive(true).mode(0o700).create(file.parent().unwrap_or(&self.path))?;
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file)
        };
        Ok(Synced(create().with_context(|| format!("cannot write {}", file.display()))?))
    }

    /// Moves the uploads into the data directory. Files are named by their content hash, so overwriting is
    /// harmless.
    fn move_uploads(&self, data: &Path) -> io::Result<()> {
        let staged = self.path.join(UPLOADS);
        if staged.exists() { merge(&staged, &data.join(UPLOADS)) } else { Ok(()) }
    }
}

impl Drop for RestoreStaging {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn clear(staging: &Path) -> io::Result<()> {
    match fs::remove_dir_all(staging) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// A file that is synced to disk when it is flushed.
struct Synced(fs::File);

impl io::Write for Synced {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.sync_all()
    }
}

fn merge(from: &Path, into: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(into)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = into.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => merge(&entry.path(), &target)?,
            false => fs::rename(entry.path(), target)?,
        }
    }
    sync_directory(into)
}

/// Preserves the old database as `PREVIOUS_DATABASE`, and removes its companion files: SQLite would apply the
/// old write-ahead log to the restored database. The old database itself stays in place.
fn preserve_database(data: &Path, database: &Path) -> anyhow::Result<()> {
    if let Err(error) = backup::checkpoint_into_file(database) {
        // The restore continues: a damaged database is a common reason for it.
        eprintln!("Cannot close the old database cleanly: {error}");
    }
    for companion in ["parlor.db-wal", "parlor.db-shm", "parlor.db-journal"] {
        remove(&data.join(companion))?;
    }
    let previous = data.join(PREVIOUS_DATABASE);
    remove(&previous)?;
    if fs::hard_link(database, &previous).is_err() {
        fs::copy(database, &previous)?;
    }
    Ok(sync_directory(data)?)
}

fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
