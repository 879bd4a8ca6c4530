//! Bodies of `/api/pairing`.

use serde::{Deserialize, Serialize};
#[cfg(test)]
use ts_rs::TS;
use utoipa::ToSchema;

/// A new pairing code. Returned only in this response.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct PairingCode<'a> {
    /// Pairing code, such as `BCDF-GHJK-LMNP`.
    pub code: &'a str,
    #[schema(format = DateTime)]
    pub expires_at: String,
    /// Command to run on the other machine.
    pub command: &'a str,
}

#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct PairingExchange {
    pub code: String,
    /// Name of the machine, used as the name of the API key.
    pub name: Option<Box<str>>,
}
