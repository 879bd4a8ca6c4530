//! Changes the caller's own profile.

use super::account_changes::{ProfileRooms, change_account};
use crate::Limits;
use crate::commands::Command;
use crate::commands::uploads::avatars::{forget_avatars, is_at};
use crate::effects::EffectsBuilder;
use crate::permission::AuthContext;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::command::{ChangeProfile, UserChanges};
use parlor_model::{Edit, Field, Refusal, Scope, Upload, User};
use std::sync::Arc;

pub struct Facts {
    caller: Arc<AuthContext>,
    /// Rooms of the caller.
    rooms: ProfileRooms,
    /// Avatars that the caller uploaded; empty if the avatar stays.
    avatars: Vec<Upload>,
}

impl Command for ChangeProfile {
    type Facts = Facts;
    type Receipt = Arc<User>;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        if let Some(name) = &self.display_name {
            field_errors.line(Field::DisplayName, name, 100);
        }
        if let Edit::Set(url) = &self.avatar_url {
            field_errors.unless(is_upload(url), Field::Avatar, "must name an upload, such as /uploads/…");
        }
        field_errors.into_result()
    }

    /// Allowed for every user.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let caller = caller.signed_in(Scope::Write)?;
        let rooms = ProfileRooms::load(&caller.user, self.display_name.as_deref(), view)?;
        let avatars = match self.avatar_url.is_keep() {
            true => Vec::new(),
            false => view.store.avatars(&caller.user.id)?,
        };
        Ok(Facts { caller, rooms, avatars })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Arc<User>, Refusal> {
        let mut user = User::clone(&facts.caller.user);
        if !self.avatar_url.is_keep() {
            let url = self.avatar_url.new_value().map(|url| &**url);
            require_own_avatar(url, &user, &facts.avatars)?;
            forget_avatars(&facts.avatars, url, effects);
            user.avatar_url = url.map(Into::into);
        }
        let changes = UserChanges { display_name: self.display_name, ..Default::default() };
        Ok(change_account(user, changes, facts.rooms, effects))
    }
}

/// Requires that the avatar of a profile is an image that the user uploaded, or the current one.
fn require_own_avatar(shown: Option<&str>, user: &User, avatars: &[Upload]) -> Result<(), Refusal> {
    let Some(url) = shown else { return Ok(()) };
    if avatars.iter().any(|avatar| is_at(avatar, url)) || user.avatar_url.as_deref() == shown {
        return Ok(());
    }
    Err(Refusal::invalid(Field::Avatar, "must be an image that you uploaded to /api/upload/avatar"))
}

/// Whether the URL is an upload of this hub. URLs of other hosts would reveal to their owner who views the
/// avatar.
fn is_upload(url: &str) -> bool {
    let plain = |segment: &str| {
        let known = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        !segment.is_empty() && !segment.starts_with('.') && segment.bytes().all(known)
    };
    url.len() <= 200 && url.strip_prefix("/uploads/").is_some_and(|rest| rest.split('/').all(plain))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::{Change, UploadChange};
    use crate::commands::test_fixtures::decide;
    use crate::commands::test_fixtures::user;
    use parlor_model::{BlobDigest, File, MediaType, Time, UploadId, UploadPurpose, UserId};

    fn avatar(id: &str) -> Upload {
        Upload {
            id: UploadId::stored(id),
            owner: UserId::stored("ann"),
            file: File { name: "me.png".into(), media: MediaType::Png, size: 3 },
            digest: BlobDigest([1; 32]),
            created_at: Time(1),
            purpose: UploadPurpose::Avatar,
        }
    }

    /// The avatars that are removed when Ann, whose profile shows `/uploads/b`, shows another one.
    fn removed(shown: Option<&str>, avatars: &[&str]) -> Result<Vec<String>, Refusal> {
        let ann = User { avatar_url: Some("/uploads/b".into()), ..user("ann") };
        let caller = Arc::new(AuthContext { user: ann.into(), scopes: None, grants: Vec::new() });
        let avatars = avatars.iter().map(|id| avatar(id)).collect();
        let avatar_url = shown.map_or(Edit::Clear, |url| Edit::Set(url.into()));
        let change = ChangeProfile { display_name: None, avatar_url };
        let (user, effects) = decide(change, Facts { caller, rooms: ProfileRooms::default(), avatars })?;
        assert_eq!(user.avatar_url.as_deref(), shown);
        let removed = |change: &Change| match change {
            Change::Upload(UploadChange::RemoveUpload(id)) => Some(id.to_string()),
            _ => None,
        };
        Ok(effects.changes.iter().filter_map(removed).collect())
    }

    #[test]
    fn a_profile_shows_an_uploaded_avatar_or_the_current_one() {
        let all = ["a", "b", "c"];
        assert_eq!(removed(Some("/uploads/c/me.png"), &all).unwrap(), ["a", "b"]);
        assert_eq!(removed(None, &all).unwrap(), all);
        for other in ["/uploads/d", "/uploads/x/a", "/uploads/a.png"] {
            assert!(matches!(removed(Some(other), &all), Err(Refusal::Invalid(_))), "{other}");
        }
        assert!(removed(Some("/uploads/b"), &[]).is_ok(), "the current avatar stays valid");
    }
}
