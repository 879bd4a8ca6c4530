//! What every keeper of files must do.

use parlor_backends::disk_blobs::DiskBlobs;
use parlor_backends::memory::MemoryBlobs;
use parlor_engine::ports::{BlobStore, StoredBlob};
use parlor_model::BlobDigest;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::mpsc;

fn each(test: impl Fn(&dyn BlobStore)) {
    test(&MemoryBlobs::default());
    let directory = tempfile::tempdir().unwrap();
    test(&DiskBlobs::open(directory.path()).unwrap());
}

fn keep(blobs: &dyn BlobStore, pieces: &[&[u8]]) -> StoredBlob {
    let mut incoming = blobs.receive().unwrap();
    pieces.iter().for_each(|piece| incoming.write(piece).unwrap());
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
fn what_came_in_is_found_under_its_digest_and_read_from_anywhere() {
    each(|blobs| {
        let kept = keep(blobs, &[b"hel", b"", b"lo"]);
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
fn the_same_content_is_kept_once() {
    each(|blobs| {
        let (one, other) = (keep(blobs, &[b"hello"]), keep(blobs, &[b"hell", b"o"]));
        assert_eq!(one.digest, other.digest);
        assert_eq!(all(blobs), [one.digest]);
    });
}

#[test]
fn a_file_that_is_not_kept_leaves_nothing() {
    each(|blobs| {
        let mut incoming = blobs.receive().unwrap();
        incoming.write(b"half of it").unwrap();
        drop(incoming);
        assert_eq!(all(blobs), []);
    });
}

#[test]
fn nothing_is_removed_that_is_needed_or_about_to_be() {
    each(|blobs| {
        let (one, other) = (keep(blobs, &[b"hello"]), keep(blobs, &[b"hello"]));
        let digest = one.digest;
        let mut never_asked = || panic!("what is held is needed without asking");
        assert!(!blobs.remove_unless(&digest, &mut never_asked).unwrap());
        drop(one);
        assert!(!blobs.remove_unless(&digest, &mut never_asked).unwrap());
        drop(other);
        assert!(!blobs.remove_unless(&digest, &mut || Ok(true)).unwrap());
        assert!(content(blobs, &digest).is_some());
        assert!(blobs.remove_unless(&digest, &mut || Ok(false)).unwrap());
        assert_eq!(content(blobs, &digest), None);
        assert!(!blobs.remove_unless(&digest, &mut || Ok(false)).unwrap(), "it was gone already");
    });
}

#[test]
fn the_same_content_kept_while_it_is_removed_is_there_afterwards() {
    each(|blobs| {
        let digest = keep(blobs, &[b"hello"]).digest;
        let (asked, when_asked) = mpsc::channel();
        std::thread::scope(|scope| {
            let keeping = scope.spawn(move || {
                when_asked.recv().unwrap();
                keep(blobs, &[b"hello"])
            });
            let mut not_needed = || {
                asked.send(()).unwrap();
                Ok(false)
            };
            blobs.remove_unless(&digest, &mut not_needed).unwrap();
            let _kept = keeping.join().unwrap();
            assert!(content(blobs, &digest).is_some());
        });
    });
}

#[test]
fn files_lie_in_a_directory_of_their_own_for_nobody_else_to_read() {
    let directory = tempfile::tempdir().unwrap();
    let blobs = DiskBlobs::open(directory.path()).unwrap();
    let _kept = keep(&blobs, &[b"hello"]);
    let place = directory.path().join("2c").join(HELLO);
    assert_eq!(files(directory.path()), std::slice::from_ref(&place));
    assert_eq!(place.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(directory.path().join("2c").metadata().unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn what_was_coming_in_when_the_hub_was_killed_is_gone_after_the_next_start() {
    let directory = tempfile::tempdir().unwrap();
    let blobs = DiskBlobs::open(directory.path()).unwrap();
    let mut incoming = blobs.receive().unwrap();
    incoming.write(b"half of it").unwrap();
    // Never dropped, as after a SIGKILL.
    std::mem::forget(incoming);
    let kept = keep(&blobs, &[b"hello"]);
    assert_eq!(files(directory.path()).len(), 2);
    let again = DiskBlobs::open(directory.path()).unwrap();
    assert_eq!(files(directory.path()).len(), 1);
    assert_eq!(all(&again), [kept.digest]);
}
