//! Pairing: the bodies and answers of `/api/pairing`.

use serde::{Deserialize, Serialize};
#[cfg(test)]
use ts_rs::TS;
use utoipa::ToSchema;

/// A code that was made, shown once.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct PairingCode<'a> {
    /// Such as `BCDF-GHJK-LMNP`.
    pub code: &'a str,
    #[schema(format = DateTime)]
    pub expires_at: String,
    /// What to type on the other machine.
    pub command: &'a str,
}

#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct PairingExchange {
    pub code: String,
    /// What the machine is called; the key bears this name.
    pub name: Option<Box<str>>,
}
