//! Response body with the limits of the hub, for site admins.

use serde::Serialize;
#[cfg(test)]
use ts_rs::TS;
use utoipa::ToSchema;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "lowercase")]
pub enum LimitKind {
    /// Budget of agents.
    Budget,
    /// Maximum number of operations in a period.
    Rate,
    /// Maximum number of connections.
    Connection,
    /// Maximum size.
    Size,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "lowercase")]
pub enum LimitUnit {
    Count,
    Bytes,
    Seconds,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
pub struct Limit {
    /// Name of the setting that defines the limit.
    pub key: &'static str,
    pub kind: LimitKind,
    pub unit: LimitUnit,
    /// `null` if there is no limit.
    #[schema(required)]
    pub value: Option<u64>,
    /// Description of the setting.
    pub about: String,
}
