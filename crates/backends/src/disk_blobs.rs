//! Files on the disk, each under the digest of its content: `ab/ab…`, so that the same content is one file.
//!
//! A file comes in under a name of its own, is brought to the disk, and only then gets its place; it never
//! changes afterwards. Which of them are needed the store knows.

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
    held: PinnedBlobs,
}

/// The contents that somebody is about to refer to, and how many are. Locked while a file is removed, too.
type PinnedBlobs = Arc<Mutex<HashMap<BlobDigest, usize>>>;

/// Where files are while they come in; a backup passes by what begins with a dot.
const INCOMING: &str = ".incoming";

impl DiskBlobs {
    /// Opens, or makes, the directory. What was coming in when the last hub ended is gone.
    pub fn open(root: &Path) -> io::Result<Self> {
        let incoming = root.join(INCOMING);
        match fs::remove_dir_all(&incoming) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => make_directory(&incoming)?,
        }
        Ok(Self { root: root.to_owned(), received: AtomicU64::new(0), held: PinnedBlobs::default() })
    }

    fn directory(&self, first: u8) -> PathBuf {
        self.root.join(format!("{first:02x}"))
    }

    fn place(&self, digest: &BlobDigest) -> PathBuf {
        self.directory(digest.0[0]).join(digest.to_string())
    }
}

impl BlobStore for DiskBlobs {
    fn receive(&self) -> Result<Box<dyn BlobUpload>, Fault> {
        let number = self.received.fetch_add(1, Ordering::Relaxed).to_string();
        let path = self.root.join(INCOMING).join(number);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let file = file.on_disk("making a file")?;
        Ok(Box::new(FileUpload {
            file,
            path: Temporary(path),
            root: self.root.clone(),
            hash: Sha256::new(),
            size: 0,
            held: self.held.clone(),
        }))
    }

    fn open(&self, digest: &BlobDigest) -> Result<Option<Box<dyn Content>>, Fault> {
        match File::open(self.place(digest)) {
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
        // Anything else that somebody put there is theirs.
        Ok(names.iter().filter_map(|name| BlobDigest::parse(name.to_str()?)).collect())
    }

    fn remove_unless(
        &self,
        digest: &BlobDigest,
        needed: &mut dyn FnMut() -> Result<bool, Fault>,
    ) -> Result<bool, Fault> {
        let held = self.held.lock();
        if held.contains_key(digest) || needed()? {
            return Ok(false);
        }
        match fs::remove_file(self.place(digest)) {
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
    held: PinnedBlobs,
}

/// Removes the file, if it is still under this name.
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
        let hold = BlobPin::on(digest, self.held);
        let name = digest.to_string();
        let place = || {
            self.file.sync_all()?;
            let directory = self.root.join(&name[..2]);
            make_directory(&directory)?;
            // One with the same content may be there: this one has just been brought to the disk.
            fs::rename(&self.path.0, directory.join(&name))?;
            File::open(&directory)?.sync_all()?;
            File::open(&self.root)?.sync_all()
        };
        place().on_disk("keeping a file")?;
        Ok(StoredBlob { digest, size: self.size, hold: Box::new(hold) })
    }
}

struct BlobPin {
    digest: BlobDigest,
    held: PinnedBlobs,
}

impl BlobPin {
    fn on(digest: BlobDigest, held: PinnedBlobs) -> Self {
        *held.lock().entry(digest).or_default() += 1;
        Self { digest, held }
    }
}

impl Drop for BlobPin {
    fn drop(&mut self) {
        let mut held = self.held.lock();
        if let Some(count) = held.get_mut(&self.digest) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.digest);
            }
        }
    }
}

fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

trait IoFaultExt<T> {
    fn on_disk(self, context: &'static str) -> Result<T, Fault>;
}

impl<T> IoFaultExt<T> for io::Result<T> {
    fn on_disk(self, context: &'static str) -> Result<T, Fault> {
        // Each file is written once and never again, so nothing that failed is ever believed later.
        self.map_err(|error| Fault::new(context, Severity::Transient, error))
    }
}
