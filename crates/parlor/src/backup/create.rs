//! Makes a backup.

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

/// Copies what the data directory holds into `file`, and says what is in it.
pub async fn create(data: &Path, file: &Path) -> anyhow::Result<String> {
    let file = std::path::absolute(file)?;
    ensure!(data.join(DATABASE).exists(), "there is no data of a hub in {}", data.display());
    ensure!(!file.is_dir(), "{} is a directory; name a file in it", file.display());
    let backup_staging = BackupStaging::open(&file)?;
    let (about, files) = backup_staging.make(data)?;
    let bytes = backup_staging.move_to(&file)?;
    let last = LastBackup { file: file.clone(), at: about.made_at };
    for noted in [last.note(data), have_noted(data, about.seq).await] {
        if let Err(error) = noted {
            // The backup is there all the same.
            eprintln!("{error:#}");
        }
    }
    Ok(format!(
        "Wrote {} ({}) and read it back: everything up to event {}{}.\n\
         It holds messages, people, and the hashes of passwords and keys, so keep it as private as the data directory.\n\
         It does not hold who is signed in, or the key that signs tokens.\n",
        file.display(),
        in_megabytes(bytes),
        about.seq,
        and_files(files)
    ))
}

/// By the hub that runs, or in its place.
async fn have_noted(data: &Path, seq: u64) -> anyhow::Result<()> {
    let request = AdminRequest::NoteBackup { through: seq };
    match control::ask(data, &request).await {
        Ok(Some(AdminReply::Noted)) => return Ok(()),
        Ok(Some(_)) => bail!("the hub could not note the backup in its audit log"),
        Ok(None) => {}
        Err(error) => return Err(error.context("the backup was not noted in the audit log")),
    }
    let _lock = instance::lock(data)?;
    let noted = backup::note(&data.join(DATABASE), &note(Action::BackedUp, seq));
    noted.context("the backup was not noted in the audit log")
}

/// A directory beside the file, of its own name, so that the next backup clears away what a killed one left.
struct BackupStaging {
    path: PathBuf,
    directory: PathBuf,
    _lock: File,
}

impl BackupStaging {
    fn open(file: &Path) -> anyhow::Result<Self> {
        let (Some(directory), Some(name)) = (file.parent(), file.file_name()) else {
            bail!("{} is no name for a file", file.display());
        };
        let path = directory.join(format!(".{}.partial", name.to_string_lossy()));
        let opened = || -> io::Result<File> {
            match DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
            OpenOptions::new().create(true).append(true).mode(0o600).open(path.join("lock"))
        };
        let lock = opened().with_context(|| format!("cannot write into {}", directory.display()))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!("another backup to {} is under way", file.display()),
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

    /// Gives what it is, and how many uploaded files are in it.
    fn make(&self, data: &Path) -> anyhow::Result<(BackupHeader, usize)> {
        let database = self.path.join(DATABASE);
        let copied = backup::copy(data, &database)?;
        let made_at = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs();
        let about = BackupHeader::new(copied.schema, copied.head.seq.0, made_at);
        let out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.archive())?;
        let mut writer = ArchiveWriter::begin(out, &about)?;
        writer.add(DATABASE, &database)?;
        fs::remove_file(&database)?;
        // After the database: what it speaks of was there before it.
        let mut uploads = Vec::new();
        collect(&data.join(UPLOADS), UPLOADS, &mut uploads).context("cannot list the uploaded files")?;
        uploads.sort_unstable();
        let mut added = 0;
        for upload in &uploads {
            match writer.add(upload, &data.join(upload)) {
                // Removed since, with the last message that it was on.
                Err(error) if is_missing(&error) => continue,
                outcome => outcome?,
            }
            added += 1;
        }
        writer.finish()?;
        archive::read(&self.archive(), |_| Ok(io::sink())).context("the backup could not be read back")?;
        Ok((about, added))
    }

    /// Gives the new file its name, which is on disk then, and how large it is.
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

/// Every finished file below a directory that may not exist, by its path from the data directory.
fn collect(directory: &Path, path: &str, found: &mut Vec<String>) -> io::Result<()> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
        // What begins with a dot is on its way.
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
