//! The bodies and answers about second factors, in AgentIM's words: TOTP.

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
    /// Six digits, or a backup code.
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

/// What a right password gives: a sign-in, or the question for a code.
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
    /// For `verify-totp` and nothing else, for five minutes.
    pub totp_token: &'a str,
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
pub struct TotpSetup<'a> {
    /// In base 32, for typing.
    pub secret: &'a str,
    /// For a QR code.
    pub uri: &'a str,
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct BackupCodes {
    /// Each good for one sign-in, shown this once.
    pub backup_codes: Vec<String>,
}

impl<'a> From<SignedIn<'a>> for LoginAnswer<'a> {
    fn from(signed_in: SignedIn<'a>) -> Self {
        Self::SignedIn(signed_in)
    }
}
