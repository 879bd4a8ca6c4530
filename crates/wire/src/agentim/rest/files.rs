//! What is answered about files, besides what frames tell too.

use crate::files::{self, FileFrame};
use crate::time::iso;
use parlor_model::{Time, Upload, UploadId};
use serde::Serialize;
#[cfg(test)]
use ts_rs::TS;
use utoipa::ToSchema;

/// A picture of oneself.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Avatar<'a> {
    #[serde(flatten)]
    pub file: FileFrame<'a>,
    /// The same as `url`, under the name that profiles have for it.
    pub avatar_url: String,
}

impl<'a> From<&'a Upload> for Avatar<'a> {
    fn from(upload: &'a Upload) -> Self {
        Self { file: FileFrame::of(&upload.id, &upload.file), avatar_url: files::url(&upload.id) }
    }
}

/// An address that opens one file for a moment, for whoever has it.
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
