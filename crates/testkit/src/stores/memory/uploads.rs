//! Uploads and the contents that no upload refers to, in memory.

use super::TablesView;
use super::table::sorted;
use super::tables::Tables;
use parlor_engine::Fault;
use parlor_engine::changes::UploadChange;
use parlor_engine::ports::ReadUploads;
use parlor_model::{BlobDigest, Upload, UploadId, UploadPurpose, UserId};

impl ReadUploads for TablesView {
    fn upload(&mut self, id: &UploadId) -> Result<Option<Upload>, Fault> {
        Ok(self.tables.uploads.get(id).cloned())
    }

    fn uploads_waiting(&mut self, owner: &UserId) -> Result<usize, Fault> {
        let own = self.tables.uploads.rows().filter(|upload| upload.owner == *owner);
        Ok(own.filter(|upload| upload.purpose == UploadPurpose::Unattached).count())
    }

    fn avatars(&mut self, owner: &UserId) -> Result<Vec<Upload>, Fault> {
        let own = self.tables.uploads.rows().filter(|upload| upload.owner == *owner);
        let avatars = own.filter(|upload| upload.purpose == UploadPurpose::Avatar).cloned();
        Ok(sorted(avatars, |upload| (upload.created_at, upload.id.clone())))
    }

    fn released(&mut self, limit: usize) -> Result<Vec<BlobDigest>, Fault> {
        Ok(self.tables.released.iter().take(limit).copied().collect())
    }

    fn refers_to(&mut self, digest: &BlobDigest) -> Result<bool, Fault> {
        Ok(self.tables.uploads.rows().any(|upload| upload.digest == *digest))
    }
}

impl Tables {
    pub fn apply_uploads(&mut self, change: &UploadChange) {
        match change {
            UploadChange::PutUpload(upload) => self.uploads.put(upload.id.clone(), upload.as_ref().clone()),
            UploadChange::Attach { upload, message } => {
                if let Some(upload) = self.uploads.get_mut(upload) {
                    upload.purpose = UploadPurpose::Message(message.clone());
                }
            }
            UploadChange::RemoveUpload(id) => self.remove_uploads(|upload| upload.id == *id),
            UploadChange::ForgetReleased(digests) => self.released.retain(|digest| !digests.contains(digest)),
        }
    }

    pub fn remove_uploads(&mut self, matches: impl Fn(&Upload) -> bool) {
        let removed: Vec<Upload> = self.uploads.rows().filter(|upload| matches(upload)).cloned().collect();
        for upload in &removed {
            self.uploads.remove(&upload.id);
        }
        let digests: Vec<BlobDigest> = removed.iter().map(|upload| upload.digest).collect();
        let needed: Vec<BlobDigest> = self.uploads.rows().map(|upload| upload.digest).collect();
        self.released.extend(digests.into_iter().filter(|digest| !needed.contains(digest)));
    }
}
