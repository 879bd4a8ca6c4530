//! How much of everything the hub lets others have, for admins.

use serde::Serialize;
#[cfg(test)]
use ts_rs::TS;
use utoipa::ToSchema;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "lowercase")]
pub enum LimitKind {
    /// What agents may spend.
    Budget,
    /// How often something may be done.
    Rate,
    /// How many connections there may be.
    Connection,
    /// How large something may be.
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
    /// The name of the setting that decides about it.
    pub key: &'static str,
    pub kind: LimitKind,
    pub unit: LimitUnit,
    /// `null` where there is none.
    #[schema(required)]
    pub value: Option<u64>,
    /// What is limited, in the words of the settings.
    pub about: String,
}
