//! Format of a backup file: a tar archive that starts with a header and ends with a manifest.
//!
//! Owns: the format. A truncated file has no manifest, and a modified file does not match its manifest; both
//! are rejected before the data is used. Paths outside the data directory are rejected too.

use super::{DATABASE, UPLOADS};
use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Component, Path};
use tar::{Archive, Builder, EntryType, Header};

const FORMAT: u32 = 1;
const HEADER: &str = "backup.json";
const MANIFEST: &str = "manifest.json";
/// Maximum bytes of the header or the manifest; far more than a manifest of any hub needs.
const MAX_METADATA_BYTES: u64 = 1 << 30;

/// First entry of the archive.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BackupHeader {
    format: u32,
    /// Version of Parlor that wrote the backup.
    pub parlor: String,
    pub schema: i64,
    /// Sequence number of the newest event in the backup.
    pub seq: u64,
    /// Unix time of the backup, in seconds.
    pub made_at: u64,
}

impl BackupHeader {
    pub fn new(schema: i64, seq: u64, made_at: u64) -> Self {
        Self { format: FORMAT, parlor: env!("CARGO_PKG_VERSION").into(), schema, seq, made_at }
    }
}

/// A file of the archive, as listed in the manifest, which is the last entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestEntry {
    path: String,
    bytes: u64,
    sha256: String,
}

pub struct ArchiveWriter {
    tar: Builder<BufWriter<File>>,
    manifest: Vec<ManifestEntry>,
}

impl ArchiveWriter {
    pub fn begin(file: File, about: &BackupHeader) -> anyhow::Result<Self> {
        let mut writer = Self { tar: Builder::new(BufWriter::new(file)), manifest: Vec::new() };
        writer.append_json(HEADER, about)?;
        Ok(writer)
    }

    pub fn add(&mut self, path: &str, file: &Path) -> anyhow::Result<()> {
        let reading = || format!("cannot add {}", file.display());
        let content = File::open(file).with_context(reading)?;
        let bytes = content.metadata().with_context(reading)?.len();
        let mut content = Hashing::new(content.take(bytes));
        self.tar.append_data(&mut header(bytes), path, &mut content).with_context(reading)?;
        ensure!(content.bytes == bytes, "{} was truncated while it was read", file.display());
        self.manifest.push(ManifestEntry { path: path.into(), bytes, sha256: content.digest() });
        Ok(())
    }

    /// Writes the manifest, closes the archive and syncs it to disk.
    pub fn finish(mut self) -> anyhow::Result<()> {
        let manifest = std::mem::take(&mut self.manifest);
        self.append_json(MANIFEST, &manifest)?;
        let file = self.tar.into_inner()?.into_inner()?;
        Ok(file.sync_all()?)
    }

    fn append_json(&mut self, name: &str, content: &impl Serialize) -> anyhow::Result<()> {
        let bytes = serde_json::to_vec_pretty(content)?;
        Ok(self.tar.append_data(&mut header(bytes.len() as u64), name, &*bytes)?)
    }
}

fn header(bytes: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_size(bytes);
    header.set_mode(0o600);
    header.set_entry_type(EntryType::Regular);
    header
}

/// Reads an archive to its end and copies each file in it to the writer that `open_target` returns for its
/// path. Only an `Ok` result means that the archive is complete and intact.
pub fn read<Target: Write>(
    file: &Path,
    mut open_target: impl FnMut(&str) -> anyhow::Result<Target>,
) -> anyhow::Result<(BackupHeader, Vec<ManifestEntry>)> {
    let opened = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
    let mut archive = Archive::new(BufReader::new(opened));
    let mut entries = archive.entries()?;
    let not_a_backup = || format!("{} is not a backup of Parlor", file.display());
    // The error of the tar reader is discarded, because it quotes the contents of the file.
    let first = entries.next().and_then(Result::ok).with_context(not_a_backup)?;
    ensure!(first.path_bytes() == HEADER.as_bytes(), not_a_backup());
    let about: BackupHeader = read_json(first).with_context(not_a_backup)?;
    ensure!(
        about.format == FORMAT,
        "{} was written by Parlor {} in a format that this version does not support",
        file.display(),
        about.parlor
    );
    let damaged = || format!("{} is damaged", file.display());
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.ok().with_context(damaged)?;
        let path = String::from_utf8(entry.path_bytes().into_owned()).ok().with_context(damaged)?;
        if path == MANIFEST {
            let manifest: Vec<ManifestEntry> = read_json(entry).with_context(damaged)?;
            ensure!(manifest == found, "{}: its contents do not match its manifest", damaged());
            ensure!(found.iter().any(|listed| listed.path == DATABASE), "{}: no database", damaged());
            return Ok((about, found));
        }
        ensure!(is_expected(&path) && entry.header().entry_type().is_file(), "{}: {path:?}", not_a_backup());
        let mut content = Hashing::new(entry);
        let mut target = open_target(&path)?;
        let copied = io::copy(&mut content, &mut target).and_then(|_| target.flush());
        ensure!(!content.failed, damaged());
        copied.with_context(|| format!("cannot write {path}"))?;
        let bytes = content.bytes;
        found.push(ManifestEntry { path, bytes, sha256: content.digest() });
    }
    bail!("{}: it is truncated", damaged())
}

fn read_json<T: for<'a> Deserialize<'a>>(entry: impl Read) -> Option<T> {
    let mut text = String::new();
    entry.take(MAX_METADATA_BYTES).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// Returns whether the path may occur in a backup: the database, or a file below the uploads directory.
fn is_expected(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    let plain = parts.clone().all(|part| matches!(part, Component::Normal(_)));
    path == DATABASE
        || plain && parts.next() == Some(Component::Normal(UPLOADS.as_ref())) && parts.next().is_some()
}

/// A reader that computes size and SHA-256 digest of the data read through it.
struct Hashing<R> {
    inner: R,
    hash: Sha256,
    bytes: u64,
    failed: bool,
}

impl<R> Hashing<R> {
    fn new(inner: R) -> Self {
        Self { inner, hash: Sha256::new(), bytes: 0, failed: false }
    }

    fn digest(self) -> String {
        self.hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer).inspect_err(|_| self.failed = true)?;
        self.hash.update(&buffer[..read]);
        self.bytes += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use tempfile::TempDir;

    /// Writes an archive with a database and two uploads.
    fn sample(directory: &TempDir) -> PathBuf {
        let file = directory.path().join("sample.tar");
        let content = directory.path().join("content");
        let mut writer =
            ArchiveWriter::begin(File::create(&file).unwrap(), &BackupHeader::new(1, 7, 0)).unwrap();
        for path in ["parlor.db", "uploads/ab/cdef", "uploads/x"] {
            std::fs::write(&content, format!("content of {path}")).unwrap();
            writer.add(path, &content).unwrap();
        }
        writer.finish().unwrap();
        file
    }

    fn read_whole(file: &Path) -> anyhow::Result<(BackupHeader, Vec<ManifestEntry>)> {
        read(file, |_| Ok(io::sink()))
    }

    #[test]
    fn reading_an_archive_returns_the_files_that_were_added() {
        let directory = tempfile::tempdir().unwrap();
        let file = sample(&directory);
        let out = directory.path().join("out");
        let create = |path: &str| Ok(File::create(format!("{}-{}", out.display(), path.replace('/', "-")))?);
        let (about, files) = read(&file, create).unwrap();
        assert_eq!((about.seq, files.len(), files[1].path.as_str()), (7, 3, "uploads/ab/cdef"));
        let found = std::fs::read_to_string(directory.path().join("out-uploads-x")).unwrap();
        assert_eq!(found, "content of uploads/x");
    }

    #[test]
    fn a_truncated_archive_is_rejected() {
        let directory = tempfile::tempdir().unwrap();
        let file = sample(&directory);
        let whole = std::fs::read(&file).unwrap();
        // The last 1536 bytes are not cut: a tar archive ends with two empty blocks and up to one block of
        // padding, and without them no data is missing.
        for length in (0..whole.len() - 1536).step_by(97) {
            std::fs::write(&file, &whole[..length]).unwrap();
            assert!(read_whole(&file).is_err(), "{length} of {}", whole.len());
        }
    }

    #[test]
    fn an_archive_with_a_modified_file_is_rejected() {
        let directory = tempfile::tempdir().unwrap();
        let file = sample(&directory);
        let mut bytes = std::fs::read(&file).unwrap();
        let position = bytes.windows(8).position(|window| window == b"content ").unwrap();
        bytes[position] ^= 1;
        std::fs::write(&file, bytes).unwrap();
        let error = read_whole(&file).unwrap_err().to_string();
        assert!(error.contains("do not match its manifest"), "{error}");
    }

    #[test]
    fn paths_outside_the_data_directory_are_rejected() {
        for path in ["../parlor.db", "/parlor.db", "uploads", "uploads/../x", "token.key", "./parlor.db", ""]
        {
            assert!(!is_expected(path), "{path}");
        }
        for path in ["parlor.db", "uploads/x", "uploads/ab/x"] {
            assert!(is_expected(path), "{path}");
        }
    }

    #[test]
    fn an_archive_with_a_symbolic_link_is_rejected() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("evil.tar");
        let mut writer =
            ArchiveWriter::begin(File::create(&file).unwrap(), &BackupHeader::new(1, 0, 0)).unwrap();
        let mut link = header(0);
        link.set_entry_type(EntryType::Symlink);
        writer.tar.append_link(&mut link, "uploads/x", "/etc/passwd").unwrap();
        writer.finish().unwrap();
        assert!(read_whole(&file).unwrap_err().to_string().contains("not a backup"));
        std::fs::write(&file, "something else altogether\n".repeat(100)).unwrap();
        assert!(read_whole(&file).unwrap_err().to_string().contains("not a backup"));
    }
}
