//! Response bodies for avatars and download links.

use crate::files::{self, FileFrame};
use crate::time::iso;
use parlor_model::{Time, Upload, UploadId};
use serde::Serialize;
#[cfg(test)]
use ts_rs::TS;
use utoipa::ToSchema;

/// Uploaded avatar of the caller.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Avatar<'a> {
    #[serde(flatten)]
    pub file: FileFrame<'a>,
    /// Equal to `url`; the name that user profiles use.
    pub avatar_url: String,
}

impl<'a> From<&'a Upload> for Avatar<'a> {
    fn from(upload: &'a Upload) -> Self {
        Self { file: FileFrame::of(&upload.id, &upload.file), avatar_url: files::url(&upload.id) }
    }
}

/// Signed URL that gives access to one file, without authentication, until it expires.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Link {
    pub url: String,
    #[schema(format = DateTime)]
    pub expires_at: String,
}

impl Link {
    pub fn new(id: &UploadId, signature: &str, expires: Time) -> Self {
        Self { url: format!("{}?sig={signature}", files::url(id)), expires_at: iso(expires) }
    }
}
