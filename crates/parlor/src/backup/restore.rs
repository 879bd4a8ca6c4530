//! Starts over from a backup.

use super::{DATABASE, UPLOADS, and_files, archive, note, sync_directory};
use crate::instance;
use anyhow::{Context, bail};
use parlor_backends::sqlite::backup;
use parlor_model::audit::Action;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Where everything is made before anything is replaced. A start clears away what a killed restore left.
pub const STAGING_DIRECTORY: &str = ".restore";
/// What was there before, kept until the next restore.
const BEFORE: &str = "parlor.db.before-restore";

/// Puts what `file` holds into the data directory. Until the last step, which is one rename, the old data is whole;
/// after it the new is.
pub fn restore(data: &Path, file: &Path, replace: bool) -> anyhow::Result<String> {
    instance::make_directory(data)?;
    let _lock = instance::lock(data)?;
    let database = data.join(DATABASE);
    let exists = database.exists();
    if exists && !replace {
        bail!(
            "there is data in {} already; choose another directory with --data, or replace it with --replace",
            data.display()
        );
    }
    let stage = RestoreStaging::open(data)?;
    let (about, list) = archive::read(file, |path| stage.file(path))?;
    let made = stage.path.join(DATABASE);
    backup::assign_new_epoch(&made)
        .with_context(|| format!("the database in {} cannot be used", file.display()))?;
    backup::note(&made, &note(Action::Restored, about.seq))?;
    stage.move_uploads(data).context("cannot move the uploaded files")?;
    if exists {
        put_away(data, &database).context("cannot put the old data away")?;
    }
    fs::rename(&made, &database).context("cannot put the database in its place")?;
    sync_directory(data)?;
    Ok(format!(
        "{} is in {} now: everything up to event {}{}.\n\
         Everybody signs in again, and clients load what they show anew. API keys that were revoked and people who were\n\
         removed since then are back: see parlor admin token list and parlor admin user list.\n{}",
        file.display(),
        data.display(),
        about.seq,
        and_files(list.len() - 1),
        if exists { format!("What was there before is in {BEFORE}.\n") } else { String::new() }
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
            .with_context(|| format!("cannot write into {}", data.display()))?;
        Ok(Self { path })
    }

    fn file(&self, path: &str) -> anyhow::Result<Synced> {
        let file = self.path.join(path);
        let made = || {
            DirBuilder::new().recursive(true).mode(0o700).create(file.parent().unwrap_or(&self.path))?;
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file)
        };
        Ok(Synced(made().with_context(|| format!("cannot write {}", file.display()))?))
    }

    /// Files named by what is in them do no harm to those that are there.
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

fn clear(stage: &Path) -> io::Result<()> {
    match fs::remove_dir_all(stage) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// On disk once it is written.
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

/// Leaves the old database whole under its name, also under another, and nothing beside it: its write-ahead log
/// would be taken for the new one's.
fn put_away(data: &Path, database: &Path) -> anyhow::Result<()> {
    if let Err(error) = backup::checkpoint_into_file(database) {
        // A damaged database is a reason to restore, not one to refuse it.
        eprintln!("The old database could not be closed tidily: {error}");
    }
    for companion in ["parlor.db-wal", "parlor.db-shm", "parlor.db-journal"] {
        remove(&data.join(companion))?;
    }
    let before = data.join(BEFORE);
    remove(&before)?;
    if fs::hard_link(database, &before).is_err() {
        fs::copy(database, &before)?;
    }
    Ok(sync_directory(data)?)
}

fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
