//! Creates a backup: copies the database, adds the uploads, verifies the archive, then moves it into place.

use super::archive::{self, ArchiveWriter, BackupHeader};
use super::last::LastBackup;
use super::{DATABASE, UPLOADS, and_files, in_megabytes, note, sync_directory};
use crate::admin::{AdminReply, AdminRequest};
use crate::{control, instance};
use anyhow::{Context, bail, ensure};
use parlor_backends::sqlite::backup;
use parlor_model::audit::Action;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Writes a backup of the data directory to `file` and returns the text to print.
pub async fn create(data: &Path, file: &Path) -> anyhow::Result<String> {
    let file = std::path::absolute(file)?;
    ensure!(data.join(DATABASE).exists(), "{} contains no hub data", data.display());
    ensure!(!file.is_dir(), "{} is a directory; choose a file in it", file.display());
    let backup_staging = BackupStaging::open(&file)?;
    let (about, files) = backup_staging.write_archive(data)?;
    let bytes = backup_staging.move_to(&file)?;
    let last = LastBackup { file: file.clone(), at: about.made_at };
    for recorded in [last.note(data), record_in_audit_log(data, about.seq).await] {
        if let Err(error) = recorded {
            // The backup itself succeeded, so this is only a warning.
            eprintln!("{error:#}");
        }
    }
    Ok(format!(
        "Wrote and verified {} ({}): everything up to event {}{}.\n\
         It contains messages, users, and hashes of passwords and keys: keep it as private as the data directory.\n\
         It does not contain sign-ins or the key that signs tokens.\n",
        file.display(),
        in_megabytes(bytes),
        about.seq,
        and_files(files)
    ))
}

/// Records the backup in the audit log, through the running hub or directly in the store.
async fn record_in_audit_log(data: &Path, seq: u64) -> anyhow::Result<()> {
    let request = AdminRequest::NoteBackup { through: seq };
    match control::ask(data, &request).await {
        Ok(Some(AdminReply::Noted)) => return Ok(()),
        Ok(Some(_)) => bail!("the hub could not record the backup in its audit log"),
        Ok(None) => {}
        Err(error) => return Err(error.context("the backup was not recorded in the audit log")),
    }
    let _lock = instance::lock(data)?;
    let recorded = backup::note(&data.join(DATABASE), &note(Action::BackedUp, seq));
    recorded.context("the backup was not recorded in the audit log")
}

/// Staging directory next to the backup file. Its name derives from the file's name, so that the next backup
/// to the same file removes the leftovers of an interrupted backup.
struct BackupStaging {
    path: PathBuf,
    directory: PathBuf,
    _lock: File,
}

impl BackupStaging {
    fn open(file: &Path) -> anyhow::Result<Self> {
        let (Some(directory), Some(name)) = (file.parent(), file.file_name()) else {
            bail!("{} is not a file name", file.display());
        };
        let path = directory.join(format!(".{}.partial", name.to_string_lossy()));
        let opened = || -> io::Result<File> {
            match DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
            OpenOptions::new().create(true).append(true).mode(0o600).open(path.join("lock"))
        };
        let lock = opened().with_context(|| format!("cannot write to {}", directory.display()))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!("another backup to {} is in progress", file.display()),
            Err(TryLockError::Error(error)) => return Err(error).context("cannot lock the backup"),
        }
        let backup_staging = Self { directory: directory.to_owned(), path, _lock: lock };
        for entry in fs::read_dir(&backup_staging.path)? {
            let leftover = entry?;
            if leftover.file_name() != "lock" {
                fs::remove_file(leftover.path())?;
            }
        }
        Ok(backup_staging)
    }

    fn archive(&self) -> PathBuf {
        self.path.join("archive")
    }

    /// Writes and verifies the archive. Returns its header and the number of uploaded files in it.
    fn write_archive(&self, data: &Path) -> anyhow::Result<(BackupHeader, usize)> {
        let database = self.path.join(DATABASE);
        let copied = backup::copy(data, &database)?;
        let made_at = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs();
        let about = BackupHeader::new(copied.schema, copied.head.seq.0, made_at);
        let out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.archive())?;
        let mut writer = ArchiveWriter::begin(out, &about)?;
        writer.add(DATABASE, &database)?;
        fs::remove_file(&database)?;
        // Uploads are copied after the database: a file is stored before the database refers to it, so every
        // file that the copy refers to exists by then.
        let mut uploads = Vec::new();
        collect(&data.join(UPLOADS), UPLOADS, &mut uploads).context("cannot list the uploaded files")?;
        uploads.sort_unstable();
        let mut added = 0;
        for upload in &uploads {
            match writer.add(upload, &data.join(upload)) {
                // The file was deleted since, with the last message that referred to it.
                Err(error) if is_missing(&error) => continue,
                outcome => outcome?,
            }
            added += 1;
        }
        writer.finish()?;
        archive::read(&self.archive(), |_| Ok(io::sink()))
            .context("the verification of the backup failed")?;
        Ok((about, added))
    }

    /// Moves the archive to its final name, syncs the directory, and returns the size in bytes.
    fn move_to(self, file: &Path) -> anyhow::Result<u64> {
        let archive = self.archive();
        let bytes = archive.metadata()?.len();
        fs::rename(&archive, file).with_context(|| format!("cannot write {}", file.display()))?;
        sync_directory(&self.directory)?;
        Ok(bytes)
    }
}

impl Drop for BackupStaging {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn is_missing(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Collects all complete files below a directory, by path relative to the data directory. The directory may
/// not exist.
fn collect(directory: &Path, path: &str, found: &mut Vec<String>) -> io::Result<()> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
        // A name that starts with a dot is an unfinished upload.
        if name.starts_with('.') {
            continue;
        }
        let (kind, path) = (entry.file_type()?, format!("{path}/{name}"));
        if kind.is_dir() {
            collect(&entry.path(), &path, found)?;
        } else if kind.is_file() {
            found.push(path);
        }
    }
    Ok(())
}
