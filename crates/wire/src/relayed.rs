//! Author and addressees of a relayed message, in frames and responses of all protocols.

use parlor_model::Relayed;
use serde::Serialize;
#[cfg(test)]
use ts_rs::TS;
use utoipa::ToSchema;

/// Author and addressees of a message that an account relayed for an author outside the hub, such as a line of
/// chat.md.
#[derive(Debug, Serialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(rename = "Relayed", optional_fields))]
#[schema(as = Relayed)]
pub struct RelayedFrame<'a> {
    /// Name of the author as the outside text gives it.
    pub author: &'a str,
    /// Whether the author is an agent of the account. Otherwise the name is a claim.
    pub verified: bool,
    /// Name of the addressee. Absent if the message addresses the whole room.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub recipient: Option<&'a str>,
    /// Names of those who received a copy.
    pub observers: Vec<&'a str>,
}

impl<'a> From<&'a Relayed> for RelayedFrame<'a> {
    fn from(relayed: &'a Relayed) -> Self {
        Self {
            author: &relayed.author,
            verified: relayed.verified,
            recipient: relayed.recipient.as_deref(),
            observers: relayed.observers.iter().map(|observer| &**observer).collect(),
        }
    }
}
