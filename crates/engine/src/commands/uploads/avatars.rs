//! Avatars: uploads that a profile shows.

use crate::changes::UploadChange;
use crate::effects::EffectsBuilder;
use parlor_model::Upload;

/// Whether an upload is the file at this URL.
pub fn is_at(upload: &Upload, url: &str) -> bool {
    url.split('/').nth(2) == Some(upload.id.as_str())
}

/// Removes these avatar uploads, except the one at the URL in the profile.
pub fn forget_avatars(avatars: &[Upload], shown: Option<&str>, effects: &mut EffectsBuilder<'_>) {
    for avatar in avatars {
        let is_shown = shown.is_some_and(|url| is_at(avatar, url));
        if !is_shown {
            effects.change(UploadChange::RemoveUpload(avatar.id.clone()));
        }
    }
}
