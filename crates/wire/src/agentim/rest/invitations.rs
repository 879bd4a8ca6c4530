//! Bodies of `/api/invites`, and of the registration with an invitation.

use super::{SignedIn, SiteRole, True};
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
    /// Validity in seconds, maximum one year. Default if `expiresAt` is absent too: one week.
    pub expires_in: Option<u64>,
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
    /// Number of accounts that can be created with the invitation. Default: 1.
    pub uses: Option<u32>,
    /// Free-text note, such as the name of the invited person.
    pub note: Option<Box<str>>,
}

#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Registration {
    /// Secret of an invitation. May be absent if the hub's registration is open.
    #[serde(alias = "invite")]
    pub token: Option<String>,
    pub username: Box<str>,
    pub password: String,
    pub display_name: Option<Box<str>>,
}

/// Tokens of a new account: a session, and `token` for clients that cannot refresh.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Registered<'a> {
    pub ok: True,
    pub data: SignedIn<'a>,
    /// Access token that lasts as long as the sign-in, at most seven days.
    pub token: &'a str,
    pub user_id: &'a str,
    pub username: &'a str,
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
    /// `null` if the operator created the invitation.
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
    /// The secret. Returned only in this response.
    pub token: &'a str,
    /// URL of the registration page. The secret follows `#`, so that browsers do not send it to the server.
    pub url: &'a str,
}
