//! In-memory blob store with the same contract as `DiskBlobs`, for tests.

use parking_lot::Mutex;
use parlor_engine::Fault;
use parlor_engine::ports::{BlobStore, BlobUpload, Content, StoredBlob};
use parlor_model::BlobDigest;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::Cursor;
use std::sync::Arc;

#[derive(Default)]
pub struct MemoryBlobs(Files);

/// Content of each blob and its pin: a blob is pinned while a `StoredBlob` holds a clone of the inner
/// `Arc<()>`.
type Files = Arc<Mutex<BTreeMap<BlobDigest, (Arc<[u8]>, Arc<()>)>>>;

impl BlobStore for MemoryBlobs {
    fn receive(&self) -> Result<Box<dyn BlobUpload>, Fault> {
        Ok(Box::new(MemoryUpload { bytes: Vec::new(), files: self.0.clone() }))
    }

    fn open(&self, digest: &BlobDigest) -> Result<Option<Box<dyn Content>>, Fault> {
        let found = self.0.lock().get(digest).map(|(bytes, _)| bytes.clone());
        Ok(found.map(|bytes| Box::new(Cursor::new(bytes)) as Box<dyn Content>))
    }

    fn list(&self, first: u8) -> Result<Vec<BlobDigest>, Fault> {
        Ok(self.0.lock().keys().filter(|digest| digest.0[0] == first).copied().collect())
    }

    fn remove_unless(
        &self,
        digest: &BlobDigest,
        needed: &mut dyn FnMut() -> Result<bool, Fault>,
    ) -> Result<bool, Fault> {
        let mut files = self.0.lock();
        let held = files.get(digest).is_some_and(|(_, hold)| Arc::strong_count(hold) > 1);
        if held || needed()? {
            return Ok(false);
        }
        Ok(files.remove(digest).is_some())
    }
}

struct MemoryUpload {
    bytes: Vec<u8>,
    files: Files,
}

impl BlobUpload for MemoryUpload {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn keep(self: Box<Self>) -> Result<StoredBlob, Fault> {
        let Self { bytes, files } = *self;
        let (digest, size) = (BlobDigest(Sha256::digest(&bytes).into()), bytes.len() as u64);
        let mut files = files.lock();
        let (_, hold) = files.entry(digest).or_insert_with(|| (bytes.into(), Arc::new(())));
        Ok(StoredBlob { digest, size, hold: Box::new(hold.clone()) })
    }
}
