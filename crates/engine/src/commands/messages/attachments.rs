//! Uploads that a new message attaches.

use crate::Fault;
use crate::changes::UploadChange;
use crate::effects::EffectsBuilder;
use crate::ports::Lookup;
use parlor_model::{Attachment, Field, Message, Refusal, Upload, UploadId, UploadPurpose, UserId};
use std::collections::HashSet;
use std::sync::Arc;

/// The named uploads that exist.
pub fn load_attachable(
    requested: &[Box<str>],
    store: &mut (impl Lookup + ?Sized),
) -> Result<Vec<Upload>, Fault> {
    let mut uploads = Vec::new();
    for id in requested.iter().filter_map(|id| UploadId::parse(id).ok()) {
        uploads.extend(store.upload(&id)?);
    }
    Ok(uploads)
}

/// The attachments of a message: unattached uploads of its sender. Uploads of other users, attached ones and
/// missing ones yield the same refusal.
pub fn require_attachable(
    requested: &[Box<str>],
    uploads: &[Upload],
    sender: &UserId,
) -> Result<Vec<Attachment>, Refusal> {
    let mut named = HashSet::new();
    let attached = requested.iter().map(|requested| {
        if !named.insert(requested) {
            return Err(Refusal::invalid(Field::Attachments, "names an upload twice"));
        }
        let found = uploads.iter().find(|upload| upload.id.as_str() == &**requested);
        let own =
            found.filter(|upload| upload.owner == *sender && upload.purpose == UploadPurpose::Unattached);
        own.map(|upload| Attachment { id: upload.id.clone(), file: upload.file.clone() })
            .ok_or(Refusal::invalid(Field::Attachments, "no such upload"))
    });
    attached.collect()
}

/// The uploads that are attached to a message.
pub fn load_attached(message: &Message, store: &mut (impl Lookup + ?Sized)) -> Result<Vec<Upload>, Fault> {
    let mut uploads = Vec::new();
    for attachment in &message.attachments {
        uploads.extend(store.upload(&attachment.id)?);
    }
    Ok(uploads)
}

/// Copies the uploads of a forwarded message for the user who forwards it: the copies survive the deletion of
/// the original.
pub fn copy_attachments(
    uploads: &[Upload],
    owner: &UserId,
    effects: &mut EffectsBuilder<'_>,
) -> Vec<Attachment> {
    let copied = uploads.iter().map(|original| {
        let copy = Upload {
            id: UploadId::stored(effects.new_id()),
            owner: owner.clone(),
            file: original.file.clone(),
            digest: original.digest,
            created_at: effects.now,
            purpose: UploadPurpose::Unattached,
        };
        let attachment = Attachment { id: copy.id.clone(), file: copy.file.clone() };
        effects.change(UploadChange::PutUpload(Arc::new(copy)));
        attachment
    });
    copied.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_model::{BlobDigest, File, MediaType, MessageId, Time};

    fn upload(id: &str, owner: &str, purpose: UploadPurpose) -> Upload {
        Upload {
            id: UploadId::stored(id),
            owner: UserId::stored(owner),
            file: File { name: "cat".into(), media: MediaType::Png, size: 3 },
            digest: BlobDigest([1; 32]),
            created_at: Time(1),
            purpose,
        }
    }

    #[track_caller]
    fn check(requested: &[&str], expected: Result<usize, &'static str>) {
        let uploads = [
            upload("mine", "ann", UploadPurpose::Unattached),
            upload("other", "ann", UploadPurpose::Unattached),
            upload("bound", "ann", UploadPurpose::Message(MessageId::stored("m"))),
            upload("face", "ann", UploadPurpose::Avatar),
            upload("bobs", "bob", UploadPurpose::Unattached),
        ];
        let requested: Vec<Box<str>> = requested.iter().map(|id| (*id).into()).collect();
        let attached = require_attachable(&requested, &uploads, &UserId::stored("ann"));
        let expected = expected.map_err(|rule| Refusal::invalid(Field::Attachments, rule));
        assert_eq!(attached.map(|attached| attached.len()), expected, "{requested:?}");
    }

    #[test]
    fn only_own_unattached_uploads_can_be_attached() {
        check(&[], Ok(0));
        check(&["mine", "other"], Ok(2));
        for foreign in ["bound", "face", "bobs", "none", "../mine", ""] {
            check(&["mine", foreign], Err("no such upload"));
        }
        check(&["mine", "mine"], Err("names an upload twice"));
    }
}
