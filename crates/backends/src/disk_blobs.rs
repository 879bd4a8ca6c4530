//! Content-addressed blob store on disk: each blob is one file named after its SHA-256 digest (`ab/ab…`).
//!
//! An upload is written to a temporary file, synced, and only then renamed to its final path; the file never
//! changes afterwards. The store's tables, not this module, decide which blobs are still referenced.

use parking_lot::Mutex;
use parlor_engine::ports::{BlobStore, BlobUpload, Content, StoredBlob};
use parlor_engine::{Fault, Severity};
use parlor_model::BlobDigest;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub struct DiskBlobs {
    root: PathBuf,
    received: AtomicU64,
    pinned: PinnedBlobs,
}

/// Pin count of each stored blob that no committed row refers to yet. `remove_unless` holds the lock while it
/// deletes a file, so that a blob cannot be pinned between the check and the deletion.
type PinnedBlobs = Arc<Mutex<HashMap<BlobDigest, usize>>>;

/// Directory of unfinished uploads. Backups skip names that begin with a dot.
const INCOMING: &str = ".incoming";

impl DiskBlobs {
    /// Opens or creates the blob directory. Deletes uploads that were unfinished when the last hub stopped.
    pub fn open(root: &Path) -> io::Result<Self> {
        let incoming = root.join(INCOMING);
        match fs::remove_dir_all(&incoming) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => create_directory(&incoming)?,
        }
        Ok(Self { root: root.to_owned(), received: AtomicU64::new(0), pinned: PinnedBlobs::default() })
    }

    fn directory(&self, first: u8) -> PathBuf {
        self.root.join(format!("{first:02x}"))
    }

    fn path_of(&self, digest: &BlobDigest) -> PathBuf {
        self.directory(digest.0[0]).join(digest.to_string())
    }
}

impl BlobStore for DiskBlobs {
    fn receive(&self) -> Result<Box<dyn BlobUpload>, Fault> {
        let number = self.received.fetch_add(1, Ordering::Relaxed).to_string();
        let path = self.root.join(INCOMING).join(number);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let file = file.on_disk("creating a file")?;
        Ok(Box::new(FileUpload {
            file,
            path: Temporary(path),
            root: self.root.clone(),
            hash: Sha256::new(),
            size: 0,
            pinned: self.pinned.clone(),
        }))
    }

    fn open(&self, digest: &BlobDigest) -> Result<Option<Box<dyn Content>>, Fault> {
        match File::open(self.path_of(digest)) {
            Ok(file) => Ok(Some(Box::new(file))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).on_disk("opening a file"),
        }
    }

    fn list(&self, first: u8) -> Result<Vec<BlobDigest>, Fault> {
        let entries = match fs::read_dir(self.directory(first)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.on_disk("listing files")?,
        };
        let names = entries.map(|entry| Ok(entry?.file_name()));
        let names = names.collect::<io::Result<Vec<_>>>().on_disk("listing files")?;
        // Files whose name is not a digest were not written by the hub: ignore them.
        Ok(names.iter().filter_map(|name| BlobDigest::parse(name.to_str()?)).collect())
    }

    fn remove_unless(
        &self,
        digest: &BlobDigest,
        needed: &mut dyn FnMut() -> Result<bool, Fault>,
    ) -> Result<bool, Fault> {
        let pinned = self.pinned.lock();
        if pinned.contains_key(digest) || needed()? {
            return Ok(false);
        }
        match fs::remove_file(self.path_of(digest)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).on_disk("removing a file"),
            removed => Ok(removed.is_ok()),
        }
    }
}

struct FileUpload {
    file: File,
    path: Temporary,
    root: PathBuf,
    hash: Sha256,
    size: u64,
    pinned: PinnedBlobs,
}

/// Path of a temporary file, deleted on drop unless the file was renamed before.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl BlobUpload for FileUpload {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.hash.update(bytes);
        self.size += bytes.len() as u64;
        self.file.write_all(bytes).on_disk("writing a file")
    }

    fn keep(self: Box<Self>) -> Result<StoredBlob, Fault> {
        let digest = BlobDigest(self.hash.finalize().into());
        let pin = BlobPin::on(digest, self.pinned);
        let name = digest.to_string();
        let rename_into_place = || {
            self.file.sync_all()?;
            let directory = self.root.join(&name[..2]);
            create_directory(&directory)?;
            // The rename may replace a file with the same content: the new file is already synced.
            fs::rename(&self.path.0, directory.join(&name))?;
            File::open(&directory)?.sync_all()?;
            File::open(&self.root)?.sync_all()
        };
        rename_into_place().on_disk("storing a file")?;
        Ok(StoredBlob { digest, size: self.size, hold: Box::new(pin) })
    }
}

struct BlobPin {
    digest: BlobDigest,
    pinned: PinnedBlobs,
}

impl BlobPin {
    fn on(digest: BlobDigest, pinned: PinnedBlobs) -> Self {
        *pinned.lock().entry(digest).or_default() += 1;
        Self { digest, pinned }
    }
}

impl Drop for BlobPin {
    fn drop(&mut self) {
        let mut pinned = self.pinned.lock();
        if let Some(count) = pinned.get_mut(&self.digest) {
            *count -= 1;
            if *count == 0 {
                pinned.remove(&self.digest);
            }
        }
    }
}

fn create_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

trait IoFaultExt<T> {
    fn on_disk(self, context: &'static str) -> Result<T, Fault>;
}

impl<T> IoFaultExt<T> for io::Result<T> {
    fn on_disk(self, context: &'static str) -> Result<T, Fault> {
        // Transient: a file is written once and never reused after an error, so its data is never in doubt.
        self.map_err(|error| Fault::new(context, Severity::Transient, error))
    }
}
