//! Contract of the blob stores.

use parlor_backends::disk_blobs::DiskBlobs;
use parlor_engine::ports::{BlobStore, StoredBlob};
use parlor_model::BlobDigest;
use parlor_testkit::stores::MemoryBlobs;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::mpsc;

fn each(test: impl Fn(&dyn BlobStore)) {
    test(&MemoryBlobs::default());
    let directory = tempfile::tempdir().unwrap();
    test(&DiskBlobs::open(directory.path()).unwrap());
}

fn store(blobs: &dyn BlobStore, chunks: &[&[u8]]) -> StoredBlob {
    let mut incoming = blobs.receive().unwrap();
    chunks.iter().for_each(|chunk| incoming.write(chunk).unwrap());
    incoming.keep().unwrap()
}

fn content(blobs: &dyn BlobStore, digest: &BlobDigest) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    blobs.open(digest).unwrap()?.read_to_end(&mut bytes).unwrap();
    Some(bytes)
}

fn all(blobs: &dyn BlobStore) -> Vec<BlobDigest> {
    (0..=u8::MAX).flat_map(|first| blobs.list(first).unwrap()).collect()
}

fn files(directory: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

const HELLO: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

#[test]
fn a_stored_blob_is_found_by_its_digest_and_is_seekable() {
    each(|blobs| {
        let kept = store(blobs, &[b"hel", b"", b"lo"]);
        assert_eq!((kept.digest.to_string().as_str(), kept.size), (HELLO, 5));
        assert_eq!(content(blobs, &kept.digest).as_deref(), Some(&b"hello"[..]));
        let mut open = blobs.open(&kept.digest).unwrap().unwrap();
        open.seek(SeekFrom::Start(3)).unwrap();
        let mut rest = String::new();
        open.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "lo");
        assert_eq!(content(blobs, &BlobDigest([0; 32])), None);
    });
}

#[test]
fn the_same_content_is_stored_once() {
    each(|blobs| {
        let (first, second) = (store(blobs, &[b"hello"]), store(blobs, &[b"hell", b"o"]));
        assert_eq!(first.digest, second.digest);
        assert_eq!(all(blobs), [first.digest]);
    });
}

#[test]
fn a_dropped_upload_leaves_no_file() {
    each(|blobs| {
        let mut incoming = blobs.receive().unwrap();
        incoming.write(b"half of it").unwrap();
        drop(incoming);
        assert_eq!(all(blobs), []);
    });
}

#[test]
fn referenced_and_pinned_blobs_are_not_removed() {
    each(|blobs| {
        let (first, second) = (store(blobs, &[b"hello"]), store(blobs, &[b"hello"]));
        let digest = first.digest;
        let mut never_called = || panic!("a pinned blob is kept without asking the caller");
        assert!(!blobs.remove_unless(&digest, &mut never_called).unwrap());
        drop(first);
        assert!(!blobs.remove_unless(&digest, &mut never_called).unwrap());
        drop(second);
        assert!(!blobs.remove_unless(&digest, &mut || Ok(true)).unwrap());
        assert!(content(blobs, &digest).is_some());
        assert!(blobs.remove_unless(&digest, &mut || Ok(false)).unwrap());
        assert_eq!(content(blobs, &digest), None);
        assert!(!blobs.remove_unless(&digest, &mut || Ok(false)).unwrap(), "it was already removed");
    });
}

#[test]
fn content_stored_during_its_removal_exists_afterwards() {
    each(|blobs| {
        let digest = store(blobs, &[b"hello"]).digest;
        let (started, when_started) = mpsc::channel();
        std::thread::scope(|scope| {
            let storing = scope.spawn(move || {
                when_started.recv().unwrap();
                store(blobs, &[b"hello"])
            });
            let mut not_needed = || {
                started.send(()).unwrap();
                Ok(false)
            };
            blobs.remove_unless(&digest, &mut not_needed).unwrap();
            let _kept = storing.join().unwrap();
            assert!(content(blobs, &digest).is_some());
        });
    });
}

#[test]
fn blob_files_are_readable_by_their_owner_only() {
    let directory = tempfile::tempdir().unwrap();
    let blobs = DiskBlobs::open(directory.path()).unwrap();
    let _kept = store(&blobs, &[b"hello"]);
    let path = directory.path().join("2c").join(HELLO);
    assert_eq!(files(directory.path()), std::slice::from_ref(&path));
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(directory.path().join("2c").metadata().unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn unfinished_uploads_are_deleted_at_the_next_start() {
    let directory = tempfile::tempdir().unwrap();
    let blobs = DiskBlobs::open(directory.path()).unwrap();
    let mut incoming = blobs.receive().unwrap();
    incoming.write(b"half of it").unwrap();
    // Skip `drop`, as if the process was killed.
    std::mem::forget(incoming);
    let kept = store(&blobs, &[b"hello"]);
    assert_eq!(files(directory.path()).len(), 2);
    let again = DiskBlobs::open(directory.path()).unwrap();
    assert_eq!(files(directory.path()).len(), 1);
    assert_eq!(all(&again), [kept.digest]);
}
