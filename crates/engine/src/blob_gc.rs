//! Removes the content of files that nothing refers to any more: an ordinary reader behind the writer.
//!
//! Rows go first and files after, so a crash leaves a file too many and never one too few; what it left is
//! found at the next start.

use crate::hub::Hub;
use crate::ports::BlobStore;
use parlor_model::{BlobDigest, Caller, Command, Receipt};
use std::sync::Arc;

/// How many contents are removed before the next are asked for.
const DELETE_BATCH: usize = 256;

/// Runs until it is dropped.
pub async fn run(hub: Hub, blobs: Arc<dyn BlobStore>) {
    for slice in 0..=u8::MAX {
        let (hub, blobs) = (hub.clone(), blobs.clone());
        in_background(move || match blobs.list(slice) {
            Ok(found) => remove(&hub, &*blobs, &found),
            Err(fault) => tracing::warn!(%fault, "files could not be looked through"),
        })
        .await;
    }
    loop {
        hub.files_released().await;
        let take = || hub.execute(&Caller::OPERATOR, Command::TakeUnreferencedBlobs { limit: DELETE_BATCH });
        while let Ok(Receipt::Released(digests)) = take().await
            && !digests.is_empty()
        {
            let (hub, blobs) = (hub.clone(), blobs.clone());
            in_background(move || remove(&hub, &*blobs, &digests)).await;
        }
    }
}

/// Removes those of the contents that nothing refers to. Blocks.
pub fn remove(hub: &Hub, blobs: &dyn BlobStore, digests: &[BlobDigest]) {
    for digest in digests {
        match blobs.remove_unless(digest, &mut || hub.refers_to(digest)) {
            Ok(false) => {}
            Ok(true) => tracing::debug!(%digest, "removed a file that nothing refers to"),
            // It is found again at the next start.
            Err(fault) => tracing::warn!(%fault, %digest, "a file could not be removed"),
        }
    }
}

async fn in_background(work: impl FnOnce() + Send + 'static) {
    // It only ends otherwise if it panicked, and that is in the log.
    let _ = tokio::task::spawn_blocking(work).await;
}
