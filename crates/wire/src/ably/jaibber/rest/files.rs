//! Attachments of a project, and the registration of an uploaded file.

use crate::ably::jaibber::FileEntry;
use parlor_model::{Attachment, RoomId, Upload, UploadId, UploadPurpose};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Body of `POST /api/projects/{id}/attachments`. The hub determines name, type and size from its upload.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = NewJaibberAttachment)]
pub struct NewAttachment {
    /// URL of an upload of this hub: `/uploads/{id}`, with or without origin and file name.
    #[schema(example = "/uploads/unknown")]
    pub blob_url: Box<str>,
}

impl NewAttachment {
    pub fn upload(&self) -> Option<UploadId> {
        let (_, rest) = self.blob_url.split_once("/uploads/")?;
        let id = rest.split(['/', '?', '#']).next()?;
        UploadId::parse(id).ok()
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = JaibberAttachment)]
#[serde(rename_all = "camelCase")]
pub struct ProjectFile {
    #[serde(flatten)]
    pub file: FileEntry,
    pub project_id: String,
    #[schema(required)]
    pub message_id: Option<String>,
}

impl ProjectFile {
    pub fn of_message(file: &Attachment, message: &parlor_model::Message, room: &RoomId) -> Self {
        Self {
            file: file.into(),
            project_id: room.as_str().into(),
            message_id: Some(message.id.as_str().into()),
        }
    }

    pub fn of_upload(upload: &Upload, room: &RoomId) -> Self {
        let message_id = match &upload.purpose {
            UploadPurpose::Message(message) => Some(message.as_str().into()),
            UploadPurpose::Unattached | UploadPurpose::Avatar => None,
        };
        let file = FileEntry::from(&Attachment { id: upload.id.clone(), file: upload.file.clone() });
        Self { file, project_id: room.as_str().into(), message_id }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_of_an_upload_names_it() {
        let check = |url: &str, expected: Option<&str>| {
            let upload = NewAttachment { blob_url: url.into() }.upload();
            assert_eq!(upload.as_ref().map(UploadId::as_str), expected, "{url}");
        };
        check("/uploads/f1", Some("f1"));
        check("https://hub.example/uploads/f1/cat.png?x=1", Some("f1"));
        check("https://blob.example/f1", None);
        check("/uploads/", None);
    }
}
