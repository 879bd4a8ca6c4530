//! Decides uploads: stores them, attaches them to messages, and removes avatars and unreferenced blobs.

use super::{Change, Effects, EffectsBuilder};
use parlor_model::command::NewUpload;
use parlor_model::{BlobDigest, Command, File, Receipt, Refusal, Upload, UploadId, UploadPurpose, UserId};
use std::sync::Arc;

/// Maximum number of a user's uploads that are not attached to a message, so that invisible files cannot fill
/// the disk.
pub const MAX_UNATTACHED_UPLOADS: usize = 50;

pub fn decide(command: &Command, effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    match command {
        Command::Upload(new) => add(new, effects_builder),
        Command::TakeUnreferencedBlobs { .. } => {
            let mut effects_builder = effects_builder;
            let released = effects_builder.facts.released.clone();
            if !released.is_empty() {
                effects_builder.change(Change::ForgetReleased(released.clone()));
            }
            effects_builder.done(Receipt::Released(released))
        }
        _ => unreachable!("the dispatcher sends only upload commands here"),
    }
}

fn add(new: &NewUpload, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let owner = effects_builder.actor()?.id.clone();
    if new.avatar {
        if !new.file.media.is_image() {
            return Err(Refusal::invalid("file", "must be a JPEG, PNG, GIF or WebP image"));
        }
        // The current avatar stays: the profile switches to the new one with a later command.
        let shown = effects_builder.actor()?.avatar_url.as_deref();
        forget_avatars(shown, &mut effects_builder);
    } else if effects_builder.facts.uploads_waiting >= MAX_UNATTACHED_UPLOADS {
        return Err(Refusal::TooManyUploads { limit: MAX_UNATTACHED_UPLOADS });
    }
    let purpose = if new.avatar { UploadPurpose::Avatar } else { UploadPurpose::Unattached };
    let upload = put(owner, &new.file, new.digest, purpose, &mut effects_builder);
    effects_builder.done(Receipt::Upload(upload))
}

fn put(
    owner: UserId,
    file: &File,
    digest: BlobDigest,
    purpose: UploadPurpose,
    effects_builder: &mut EffectsBuilder,
) -> Arc<Upload> {
    let upload = Arc::new(Upload {
        id: UploadId::stored(effects_builder.decide_context.ids.next()),
        owner,
        file: file.clone(),
        digest,
        created_at: effects_builder.facts.now,
        purpose,
    });
    effects_builder.change(Change::PutUpload(upload.clone()));
    upload
}

/// The avatar of a profile must be an image that the actor uploaded, or the current one.
pub fn is_own_avatar(shown: Option<&str>, effects_builder: &EffectsBuilder) -> Result<(), Refusal> {
    let Some(url) = shown else { return Ok(()) };
    let known = effects_builder.facts.avatars.iter().any(|avatar| is_at(avatar, url));
    if known || effects_builder.actor()?.avatar_url.as_deref() == shown {
        return Ok(());
    }
    Err(Refusal::invalid("avatarUrl", "must be an image that you uploaded to /api/upload/avatar"))
}

fn is_at(upload: &Upload, url: &str) -> bool {
    url.split('/').nth(2) == Some(upload.id.as_str())
}

/// Removes the actor's avatar uploads, except the one at the URL in the profile.
pub fn forget_avatars(shown: Option<&str>, effects_builder: &mut EffectsBuilder) {
    for avatar in &effects_builder.facts.avatars {
        let is_shown = shown.is_some_and(|url| is_at(avatar, url));
        if !is_shown {
            effects_builder.change(Change::RemoveUpload(avatar.id.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_fixtures::{decide_with, facts, user};
    use super::*;
    use crate::facts::AuthContext;
    use parlor_model::command::ProfileChanges;
    use parlor_model::{MediaType, Time};

    fn file(media: MediaType) -> File {
        File { name: "cat".into(), media, size: 3 }
    }

    fn upload(id: &str, owner: &str, purpose: UploadPurpose) -> Upload {
        Upload {
            id: UploadId::stored(id),
            owner: user(owner).id,
            file: file(MediaType::Png),
            digest: BlobDigest([1; 32]),
            created_at: Time(1),
            purpose,
        }
    }

    fn send(media: MediaType, avatar: bool) -> Command {
        Command::Upload(NewUpload { file: file(media), digest: BlobDigest([1; 32]), avatar })
    }

    #[test]
    fn unattached_uploads_are_limited() {
        let mut facts = facts();
        facts.uploads_waiting = MAX_UNATTACHED_UPLOADS - 1;
        assert!(decide_with(&send(MediaType::Zip, false), &facts).is_ok());
        facts.uploads_waiting = MAX_UNATTACHED_UPLOADS;
        let refused = Err(Refusal::TooManyUploads { limit: MAX_UNATTACHED_UPLOADS });
        assert_eq!(decide_with(&send(MediaType::Zip, false), &facts).map(|plan| plan.receipt), refused);
    }

    #[test]
    fn an_avatar_is_an_image_and_the_current_one_stays_until_the_profile_changes() {
        let mut facts = facts();
        assert!(decide_with(&send(MediaType::Pdf, true), &facts).is_err());
        facts.avatars = ["a", "b", "c"].map(|id| upload(id, "ann", UploadPurpose::Avatar)).into();
        let mut ann = user("ann");
        ann.avatar_url = Some("/uploads/b".into());
        facts.standing = Some(Arc::new(AuthContext { user: ann.into(), scopes: None }));
        let removed = |command: &Command| {
            let removed = |change: &Change| match change {
                Change::RemoveUpload(id) => Some(id.to_string()),
                _ => None,
            };
            decide_with(command, &facts).unwrap().changes.iter().filter_map(removed).collect::<Vec<_>>()
        };
        let show = |url: Option<Option<&str>>| {
            let avatar_url = url.map(|url| url.map(Into::into));
            Command::ChangeProfile(ProfileChanges { display_name: None, avatar_url: avatar_url.into() })
        };
        assert_eq!(removed(&send(MediaType::Png, true)), ["a", "c"]);
        assert_eq!(removed(&show(Some(Some("/uploads/c/me.png")))), ["a", "b"]);
        assert_eq!(removed(&show(Some(None))), ["a", "b", "c"]);
        for other in ["/uploads/d", "/uploads/x/a", "/uploads/a.png"] {
            assert!(
                matches!(decide_with(&show(Some(Some(other))), &facts), Err(Refusal::Invalid(_))),
                "{other}"
            );
        }
        facts.avatars = Vec::new();
        assert!(
            decide_with(&show(Some(Some("/uploads/b"))), &facts).is_ok(),
            "the current avatar stays valid"
        );
    }
}
