//! Author and addressees of a relayed message, in frames and responses of all protocols.

use parlor_model::Relayed;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
#[cfg(test)]
use ts_rs::TS;
use utoipa::ToSchema;

/// Author and addressees of a message that an account relayed for an author outside the hub, such as a line of
/// chat.md.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(rename = "Relayed", optional_fields))]
#[schema(as = Relayed)]
pub struct RelayedFrame<'a> {
    /// Name of the author as the outside text gives it.
    #[serde(borrow)]
    pub author: Cow<'a, str>,
    /// Whether the author is an agent of the account. Otherwise the name is a claim.
    pub verified: bool,
    /// Name of the addressee. Absent if the message addresses the whole room.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub recipient: Option<Cow<'a, str>>,
    /// Names of those who received a copy.
    #[serde(borrow)]
    pub observers: Vec<Cow<'a, str>>,
}

impl<'a> From<&'a Relayed> for RelayedFrame<'a> {
    fn from(relayed: &'a Relayed) -> Self {
        Self {
            author: (&*relayed.author).into(),
            verified: relayed.verified,
            recipient: relayed.recipient.as_deref().map(Into::into),
            observers: relayed.observers.iter().map(|observer| (&**observer).into()).collect(),
        }
    }
}
