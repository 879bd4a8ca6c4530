//! Decides which uploads a profile may show as its avatar.

use super::EffectsBuilder;
use crate::commands::uploads::avatars;
use parlor_model::Refusal;

/// The avatar of a profile must be an image that the actor uploaded, or the current one.
pub fn is_own_avatar(shown: Option<&str>, effects_builder: &EffectsBuilder) -> Result<(), Refusal> {
    let Some(url) = shown else { return Ok(()) };
    let known = effects_builder.facts.avatars.iter().any(|avatar| avatars::is_at(avatar, url));
    if known || effects_builder.actor()?.avatar_url.as_deref() == shown {
        return Ok(());
    }
    Err(Refusal::invalid("avatarUrl", "must be an image that you uploaded to /api/upload/avatar"))
}

/// Removes the actor's avatar uploads, except the one at the URL in the profile.
pub fn forget_avatars(shown: Option<&str>, effects_builder: &mut EffectsBuilder) {
    avatars::forget_avatars(&effects_builder.facts.avatars, shown, effects_builder);
}

#[cfg(test)]
mod tests {
    use super::super::test_fixtures::{decide_with, facts, user};
    use super::*;
    use crate::decide::Change;
    use crate::facts::AuthContext;
    use parlor_model::command::ProfileChanges;
    use parlor_model::{BlobDigest, Command, File, MediaType, Time, Upload, UploadId, UploadPurpose};
    use std::sync::Arc;

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

    #[test]
    fn a_profile_shows_an_own_avatar_and_the_others_are_removed() {
        let mut facts = facts();
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
