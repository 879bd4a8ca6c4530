//! Bodies for the second factor, which AgentIM calls TOTP.

use super::SignedIn;
use serde::{Deserialize, Serialize};
#[cfg(test)]
use ts_rs::TS;
use utoipa::ToSchema;

#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct TotpLogin {
    pub totp_token: String,
    /// Six-digit code or a backup code.
    pub code: String,
}

#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
pub struct TotpCode {
    pub code: String,
}

#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
pub struct PasswordProof {
    pub password: String,
}

/// Response to a correct password: a sign-in, or a request for the second factor.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(untagged)]
pub enum LoginAnswer<'a> {
    SignedIn(SignedIn<'a>),
    TotpRequired(TotpRequired<'a>),
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct TotpRequired<'a> {
    /// Always true.
    pub totp_required: bool,
    /// Token for `verify-totp` only, valid for five minutes.
    pub totp_token: &'a str,
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
pub struct TotpSetup<'a> {
    /// Secret in base 32, for manual entry.
    pub secret: &'a str,
    /// `otpauth` URI for a QR code.
    pub uri: &'a str,
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct BackupCodes {
    /// Backup codes, each valid for one sign-in. Returned only in this response.
    pub backup_codes: Vec<String>,
}

impl<'a> From<SignedIn<'a>> for LoginAnswer<'a> {
    fn from(signed_in: SignedIn<'a>) -> Self {
        Self::SignedIn(signed_in)
    }
}
