//! Adds an upload of the caller: an attachment of a later message, or an avatar.

use super::avatars::forget_avatars;
use crate::Limits;
use crate::changes::UploadChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::AuthContext;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::command::AddUpload;
use parlor_model::{Field, Refusal, Scope, Upload, UploadId, UploadPurpose};
use std::sync::Arc;

/// Maximum number of a user's uploads that are not attached to a message, so that invisible files cannot fill
/// the disk.
const MAX_UNATTACHED_UPLOADS: usize = 50;

pub struct Facts {
    caller: Arc<AuthContext>,
    existing: Existing,
}

/// The caller's uploads of the same kind.
enum Existing {
    Avatars(Vec<Upload>),
    /// Number of uploads that are not attached to a message.
    Unattached(usize),
}

impl Command for AddUpload {
    type Facts = Facts;
    type Receipt = Arc<Upload>;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        field_errors.line(Field::FileName, &self.file.name, 200);
        field_errors.unless(!self.file.name.contains(['/', '\\']), Field::FileName, "must not be a path");
        field_errors.unless(self.file.size > 0, Field::File, "must not be empty");
        field_errors.into_result()
    }

    /// Allowed for every user.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let caller = caller.signed_in(Scope::Write)?;
        let existing = match self.avatar {
            true => Existing::Avatars(view.store.avatars(&caller.user.id)?),
            false => Existing::Unattached(view.store.uploads_waiting(&caller.user.id)?),
        };
        Ok(Facts { caller, existing })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Arc<Upload>, Refusal> {
        let user = &facts.caller.user;
        let purpose = match facts.existing {
            Existing::Avatars(_) if !self.file.media.is_image() => {
                return Err(Refusal::invalid(Field::File, "must be a JPEG, PNG, GIF or WebP image"));
            }
            Existing::Avatars(avatars) => {
                // The current avatar stays: the profile switches to the new one with a later command.
                forget_avatars(&avatars, user.avatar_url.as_deref(), effects);
                UploadPurpose::Avatar
            }
            Existing::Unattached(count) if count >= MAX_UNATTACHED_UPLOADS => {
                return Err(Refusal::TooManyUploads { limit: MAX_UNATTACHED_UPLOADS });
            }
            Existing::Unattached(_) => UploadPurpose::Unattached,
        };
        let upload = Arc::new(Upload {
            id: UploadId::stored(effects.new_id()),
            owner: user.id.clone(),
            file: self.file,
            digest: self.digest,
            created_at: effects.now,
            purpose,
        });
        effects.change(UploadChange::PutUpload(upload.clone()));
        Ok(upload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::Change;
    use crate::commands::test_fixtures::user;
    use crate::commands::test_fixtures::{auth, decide};
    use crate::effects::Effects;
    use parlor_model::{BlobDigest, File, MediaType, Time, User};

    fn add(media: MediaType, facts: Facts) -> Result<(Arc<Upload>, Effects), Refusal> {
        let avatar = matches!(facts.existing, Existing::Avatars(_));
        let file = File { name: "cat".into(), media, size: 3 };
        decide(AddUpload { file, digest: BlobDigest([1; 32]), avatar }, facts)
    }

    fn avatar(id: &str) -> Upload {
        Upload {
            id: UploadId::stored(id),
            owner: user("ann").id,
            file: File { name: "cat".into(), media: MediaType::Png, size: 3 },
            digest: BlobDigest([1; 32]),
            created_at: Time(1),
            purpose: UploadPurpose::Avatar,
        }
    }

    #[test]
    fn unattached_uploads_are_limited() {
        let waiting = |count| Facts { caller: auth("ann"), existing: Existing::Unattached(count) };
        assert!(add(MediaType::Zip, waiting(MAX_UNATTACHED_UPLOADS - 1)).is_ok());
        let refused = add(MediaType::Zip, waiting(MAX_UNATTACHED_UPLOADS)).map(|(upload, _)| upload);
        assert_eq!(refused, Err(Refusal::TooManyUploads { limit: MAX_UNATTACHED_UPLOADS }));
    }

    #[test]
    fn an_avatar_is_an_image_and_the_current_one_stays_until_the_profile_changes() {
        let user = User { avatar_url: Some("/uploads/b".into()), ..user("ann") };
        let given = || Facts {
            caller: Arc::new(AuthContext { user: user.clone().into(), scopes: None, grants: Vec::new() }),
            existing: Existing::Avatars(["a", "b", "c"].map(avatar).into()),
        };
        assert!(add(MediaType::Pdf, given()).is_err());
        let (_, effects) = add(MediaType::Png, given()).unwrap();
        let removed = effects.changes.iter().filter_map(|change| match change {
            Change::Upload(UploadChange::RemoveUpload(id)) => Some(id.as_str()),
            _ => None,
        });
        assert_eq!(removed.collect::<Vec<_>>(), ["a", "c"]);
    }
}
