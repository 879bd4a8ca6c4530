//! Queries about uploads.

use crate::UploadId;
use serde::{Deserialize, Serialize};

/// An uploaded file that the caller may read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetUpload {
    pub id: UploadId,
}

/// Checks whether the caller may upload files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MayUpload;
