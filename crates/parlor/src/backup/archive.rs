//! The file of a backup: a tar that begins with what it is and ends with a list of what is in it.
//!
//! Owns: the form. A file that was cut short has no list, and one that was changed does not match it; either is
//! refused before anything is made of it. Names that would lead elsewhere are refused too.

use super::{DATABASE, UPLOADS};
use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Component, Path};
use tar::{Archive, Builder, EntryType, Header};

const FORMAT: u32 = 1;
const ABOUT: &str = "backup.json";
const LIST: &str = "manifest.json";
/// Far more than a list of every file there could be.
const LONGEST_NOTE: u64 = 1 << 30;

/// The first entry.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BackupHeader {
    format: u32,
    /// The version that made it.
    pub parlor: String,
    pub schema: i64,
    /// The newest event in it.
    pub seq: u64,
    /// In seconds since 1970.
    pub made_at: u64,
}

impl BackupHeader {
    pub fn new(schema: i64, seq: u64, made_at: u64) -> Self {
        Self { format: FORMAT, parlor: env!("CARGO_PKG_VERSION").into(), schema, seq, made_at }
    }
}

/// One line of the last entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestEntry {
    path: String,
    bytes: u64,
    sha256: String,
}

pub struct ArchiveWriter {
    tar: Builder<BufWriter<File>>,
    list: Vec<ManifestEntry>,
}

impl ArchiveWriter {
    pub fn begin(file: File, about: &BackupHeader) -> anyhow::Result<Self> {
        let mut writer = Self { tar: Builder::new(BufWriter::new(file)), list: Vec::new() };
        writer.note(ABOUT, about)?;
        Ok(writer)
    }

    pub fn add(&mut self, path: &str, file: &Path) -> anyhow::Result<()> {
        let reading = || format!("cannot add {}", file.display());
        let content = File::open(file).with_context(reading)?;
        let bytes = content.metadata().with_context(reading)?.len();
        let mut content = Hashing::new(content.take(bytes));
        self.tar.append_data(&mut header(bytes), path, &mut content).with_context(reading)?;
        ensure!(content.bytes == bytes, "{} became shorter while it was read", file.display());
        self.list.push(ManifestEntry { path: path.into(), bytes, sha256: content.digest() });
        Ok(())
    }

    /// Closes the archive; it is on disk afterwards.
    pub fn finish(mut self) -> anyhow::Result<()> {
        let list = std::mem::take(&mut self.list);
        self.note(LIST, &list)?;
        let file = self.tar.into_inner()?.into_inner()?;
        Ok(file.sync_all()?)
    }

    fn note(&mut self, name: &str, content: &impl Serialize) -> anyhow::Result<()> {
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

/// Reads an archive to its end and hands each file in it to where `place` says. Only when it is read to the end is it
/// known to be whole.
pub fn read<Place: Write>(
    file: &Path,
    mut place: impl FnMut(&str) -> anyhow::Result<Place>,
) -> anyhow::Result<(BackupHeader, Vec<ManifestEntry>)> {
    let opened = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
    let mut archive = Archive::new(BufReader::new(opened));
    let mut entries = archive.entries()?;
    let no_backup = || format!("{} is not a backup of Parlor", file.display());
    // Not the reason that the reader of archives gives: it quotes what it found.
    let first = entries.next().and_then(Result::ok).with_context(no_backup)?;
    ensure!(first.path_bytes() == ABOUT.as_bytes(), no_backup());
    let about: BackupHeader = note(first).with_context(no_backup)?;
    ensure!(
        about.format == FORMAT,
        "{} was made by Parlor {} in a form that this version does not know",
        file.display(),
        about.parlor
    );
    let damaged = || format!("{} is damaged", file.display());
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.ok().with_context(damaged)?;
        let path = String::from_utf8(entry.path_bytes().into_owned()).ok().with_context(damaged)?;
        if path == LIST {
            let list: Vec<ManifestEntry> = note(entry).with_context(damaged)?;
            ensure!(list == found, "{}: what is in it is not what its list says", damaged());
            ensure!(found.iter().any(|listed| listed.path == DATABASE), "{}: no database", damaged());
            return Ok((about, found));
        }
        ensure!(is_ours(&path) && entry.header().entry_type().is_file(), "{}: {path:?}", no_backup());
        let mut content = Hashing::new(entry);
        let mut target = place(&path)?;
        let copied = io::copy(&mut content, &mut target).and_then(|_| target.flush());
        ensure!(!content.failed, damaged());
        copied.with_context(|| format!("cannot write {path}"))?;
        let bytes = content.bytes;
        found.push(ManifestEntry { path, bytes, sha256: content.digest() });
    }
    bail!("{}: it ends too early", damaged())
}

fn note<T: for<'a> Deserialize<'a>>(entry: impl Read) -> Option<T> {
    let mut text = String::new();
    entry.take(LONGEST_NOTE).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// Nothing but the database, and files somewhere below the uploads.
fn is_ours(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    let plain = parts.clone().all(|part| matches!(part, Component::Normal(_)));
    path == DATABASE
        || plain && parts.next() == Some(Component::Normal(UPLOADS.as_ref())) && parts.next().is_some()
}

/// Computes the digest of what is read through it.
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

    /// An archive with a database and two uploads, and what is in them.
    fn sample(directory: &TempDir) -> PathBuf {
        let file = directory.path().join("sample.tar");
        let content = directory.path().join("content");
        let mut writer =
            ArchiveWriter::begin(File::create(&file).unwrap(), &BackupHeader::new(1, 7, 0)).unwrap();
        for path in ["parlor.db", "uploads/ab/cdef", "uploads/x"] {
            std::fs::write(&content, format!("what is in {path}")).unwrap();
            writer.add(path, &content).unwrap();
        }
        writer.finish().unwrap();
        file
    }

    fn read_whole(file: &Path) -> anyhow::Result<(BackupHeader, Vec<ManifestEntry>)> {
        read(file, |_| Ok(io::sink()))
    }

    #[test]
    fn what_was_put_in_comes_out() {
        let directory = tempfile::tempdir().unwrap();
        let file = sample(&directory);
        let out = directory.path().join("out");
        let place = |path: &str| Ok(File::create(format!("{}-{}", out.display(), path.replace('/', "-")))?);
        let (about, list) = read(&file, place).unwrap();
        assert_eq!((about.seq, list.len(), list[1].path.as_str()), (7, 3, "uploads/ab/cdef"));
        let found = std::fs::read_to_string(directory.path().join("out-uploads-x")).unwrap();
        assert_eq!(found, "what is in uploads/x");
    }

    #[test]
    fn one_that_was_cut_short_anywhere_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let file = sample(&directory);
        let whole = std::fs::read(&file).unwrap();
        // The end of a tar is two empty blocks, and before them one may be filled up; nothing is missing without.
        for length in (0..whole.len() - 1536).step_by(97) {
            std::fs::write(&file, &whole[..length]).unwrap();
            assert!(read_whole(&file).is_err(), "{length} of {}", whole.len());
        }
    }

    #[test]
    fn one_in_which_a_file_was_changed_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let file = sample(&directory);
        let mut bytes = std::fs::read(&file).unwrap();
        let place = bytes.windows(8).position(|window| window == b"what is ").unwrap();
        bytes[place] ^= 1;
        std::fs::write(&file, bytes).unwrap();
        let error = read_whole(&file).unwrap_err().to_string();
        assert!(error.contains("not what its list says"), "{error}");
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for path in ["../parlor.db", "/parlor.db", "uploads", "uploads/../x", "token.key", "./parlor.db", ""]
        {
            assert!(!is_ours(path), "{path}");
        }
        for path in ["parlor.db", "uploads/x", "uploads/ab/x"] {
            assert!(is_ours(path), "{path}");
        }
    }

    #[test]
    fn a_link_is_no_file() {
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
