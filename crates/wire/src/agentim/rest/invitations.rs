//! Invitations: the bodies and answers of `/api/invites`, and of who takes one.

use super::SiteRole;
use crate::time::iso;
use serde::{Deserialize, Serialize};
#[cfg(test)]
use ts_rs::TS;
use utoipa::ToSchema;

#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct NewInvitation {
    #[schema(value_type = Option<SiteRole>)]
    #[cfg_attr(test, ts(as = "Option<SiteRole>"))]
    pub role: Option<Box<str>>,
    /// In seconds from now; a week if neither this nor a time is given, at most a year.
    pub expires_in: Option<u64>,
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
    /// How many can take it: 1 if left out.
    pub uses: Option<u32>,
    /// For whom it is.
    pub note: Option<Box<str>>,
}

#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Registration {
    #[serde(alias = "invite")]
    pub token: String,
    pub username: Box<str>,
    pub password: String,
    pub display_name: Option<Box<str>>,
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Invitation<'a> {
    pub id: &'a str,
    pub role: SiteRole,
    #[schema(required)]
    pub note: Option<&'a str>,
    pub uses: u32,
    pub uses_left: u32,
    /// `null` if whoever runs the hub made it.
    #[schema(required)]
    pub created_by_id: Option<&'a str>,
    #[schema(format = DateTime)]
    pub created_at: String,
    #[schema(format = DateTime)]
    pub expires_at: String,
}

impl<'a> From<&'a parlor_model::Invitation> for Invitation<'a> {
    fn from(invitation: &'a parlor_model::Invitation) -> Self {
        Self {
            id: invitation.id.as_str(),
            role: invitation.role.into(),
            note: invitation.note.as_deref(),
            uses: invitation.uses,
            uses_left: invitation.uses_left,
            created_by_id: invitation.created_by.as_ref().map(|user| user.as_str()),
            created_at: iso(invitation.created_at),
            expires_at: iso(invitation.expires_at),
        }
    }
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
pub struct CreatedInvitation<'a> {
    #[serde(flatten)]
    pub about: Invitation<'a>,
    /// The secret, shown this once.
    pub token: &'a str,
    /// The page on which it is taken; the secret comes after the `#`, which browsers keep to themselves.
    pub url: &'a str,
}
