//! Garbage collector for blobs: removes file contents that no upload refers to.
//!
//! Rows are removed before files, so a crash can leave an unreferenced file but never a dangling reference.
//! The scan at the next start finds such files.

use crate::hub::Hub;
use crate::ports::BlobStore;
use parlor_model::command::TakeUnreferencedBlobs;
use parlor_model::{BlobDigest, Caller};
use std::sync::Arc;
use tokio::sync::watch;

/// Maximum number of contents removed per command.
const DELETE_BATCH: usize = 256;

/// Runs until `stop` is true or its sender is dropped. Work on the disk that has begun is completed first.
pub async fn run(hub: Hub, blobs: Arc<dyn BlobStore>, mut stop: watch::Receiver<bool>) {
    for slice in 0..=u8::MAX {
        if *stop.borrow() {
            return;
        }
        let (hub, blobs) = (hub.clone(), blobs.clone());
        in_background(move || match blobs.list(slice) {
            Ok(found) => remove(&hub, &*blobs, &found),
            Err(fault) => tracing::warn!(%fault, "stored files could not be listed"),
        })
        .await;
    }
    loop {
        tokio::select! {
            () = hub.files_released() => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
        let take = || hub.execute(&Caller::OPERATOR, TakeUnreferencedBlobs { limit: DELETE_BATCH });
        while !*stop.borrow()
            && let Ok(digests) = take().await
            && !digests.is_empty()
        {
            let (hub, blobs) = (hub.clone(), blobs.clone());
            in_background(move || remove(&hub, &*blobs, &digests)).await;
        }
    }
}

/// Removes those of the contents that no upload refers to. Blocks.
pub fn remove(hub: &Hub, blobs: &dyn BlobStore, digests: &[BlobDigest]) {
    for digest in digests {
        match blobs.remove_unless(digest, &mut || hub.refers_to(digest)) {
            Ok(false) => {}
            Ok(true) => tracing::debug!(%digest, "removed an unreferenced file"),
            // The scan at the next start finds it again.
            Err(fault) => tracing::warn!(%fault, %digest, "an unreferenced file could not be removed"),
        }
    }
}

async fn in_background(work: impl FnOnce() + Send + 'static) {
    // The task fails only by a panic, which is logged elsewhere.
    let _ = tokio::task::spawn_blocking(work).await;
}
