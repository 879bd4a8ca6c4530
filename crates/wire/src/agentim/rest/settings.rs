//! What admins change while the hub runs.

use super::given;
use parlor_model::{HubSettings, SettingChanges};
use serde::{Deserialize, Serialize};
#[cfg(test)]
use ts_rs::TS;
use utoipa::ToSchema;

/// `null` takes a change back; absent leaves it.
#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewSettings {
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    #[cfg_attr(test, ts(optional = nullable, as = "Option<String>"))]
    pub hub_name: Option<Option<Box<str>>>,
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<bool>)]
    #[cfg_attr(test, ts(optional = nullable, as = "Option<bool>"))]
    pub invitations: Option<Option<bool>>,
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u32>)]
    #[cfg_attr(test, ts(optional = nullable, as = "Option<u32>"))]
    pub lockout_failures: Option<Option<u32>>,
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u32>)]
    #[cfg_attr(test, ts(optional = nullable, as = "Option<u32>"))]
    pub lockout_seconds: Option<Option<u32>>,
}

impl From<NewSettings> for SettingChanges {
    fn from(new: NewSettings) -> Self {
        Self {
            name: new.hub_name,
            invitations: new.invitations,
            lockout_failures: new.lockout_failures,
            lockout_seconds: new.lockout_seconds,
        }
    }
}

#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(deny_unknown_fields)]
pub struct ChangedSettings {
    pub changes: NewSettings,
}

/// What holds now.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Settings<'a> {
    /// What devices with a second factor show, among others.
    pub hub_name: &'a str,
    /// Whether invitations can be made and taken.
    pub invitations: bool,
    /// So many wrong passwords or codes in a row lock an account.
    pub lockout_failures: u32,
    pub lockout_seconds: u64,
}

impl<'a> Settings<'a> {
    /// `failures` and `seconds` are what the hub was started with.
    pub fn new(settings: &'a HubSettings, failures: u32, seconds: u64) -> Self {
        Self {
            hub_name: settings.name(),
            invitations: settings.invites(),
            lockout_failures: settings.lockout_failures.unwrap_or(failures),
            lockout_seconds: settings.lockout_seconds.map_or(seconds, u64::from),
        }
    }
}
