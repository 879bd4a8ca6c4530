//! Commands on uploads.

use crate::{BlobDigest, File};
use serde::{Deserialize, Serialize};

/// Adds an upload of the caller. Its content is stored before the command is submitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddUpload {
    pub file: File,
    pub digest: BlobDigest,
    /// Whether the file is the caller's avatar and not a message attachment.
    pub avatar: bool,
}

/// Takes up to `limit` digests of unreferenced file contents. Each digest is returned once; the caller
/// then deletes the content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakeUnreferencedBlobs {
    pub limit: usize,
}
