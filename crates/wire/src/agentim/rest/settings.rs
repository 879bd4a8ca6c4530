//! Bodies for settings that site admins change while the hub runs.

use super::given;
use parlor_model::{HubSettings, SettingChanges};
use serde::{Deserialize, Serialize};
#[cfg(test)]
use ts_rs::TS;
use utoipa::ToSchema;

/// Changes to runtime settings. `null` restores the value from start-up; an absent field stays unchanged.
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
            name: new.hub_name.into(),
            invitations: new.invitations.into(),
            lockout_failures: new.lockout_failures.into(),
            lockout_seconds: new.lockout_seconds.into(),
        }
    }
}

#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(deny_unknown_fields)]
pub struct ChangedSettings {
    pub changes: NewSettings,
}

/// Current values of the runtime settings.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Settings<'a> {
    /// Display name of the hub, also shown by authenticator apps.
    pub hub_name: &'a str,
    /// Whether invitations can be created and used.
    pub invitations: bool,
    /// Number of consecutive wrong passwords or codes that locks an account.
    pub lockout_failures: u32,
    /// Duration of an account lock, in seconds.
    pub lockout_seconds: u64,
}

impl<'a> Settings<'a> {
    /// `failures` and `seconds` are the values from start-up.
    pub fn new(settings: &'a HubSettings, failures: u32, seconds: u64) -> Self {
        Self {
            hub_name: settings.name(),
            invitations: settings.invites(),
            lockout_failures: settings.lockout_failures.unwrap_or(failures),
            lockout_seconds: settings.lockout_seconds.map_or(seconds, u64::from),
        }
    }
}
