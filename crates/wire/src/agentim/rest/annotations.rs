//! Response bodies for threads, pins, bookmarks and room preferences.

use super::{NotificationPref, True};
use crate::agentim::frames::MessageFrame;
use crate::time::iso;
use parlor_model::{Epoch, Position};
use serde::Serialize;
#[cfg(test)]
use ts_rs::TS;
use utoipa::ToSchema;

/// A page of replies to a message, oldest first.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Thread<'a> {
    #[schema(inline)]
    pub ok: True,
    pub data: Vec<MessageFrame<'a>>,
    /// Cursor of the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
pub struct ReplyCount {
    pub count: u64,
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
pub struct Deleted {
    /// Number of deleted messages.
    pub deleted: usize,
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct PinnedMessage<'a> {
    pub message_id: &'a str,
    pub room_id: &'a str,
    pub pinned_by_id: &'a str,
    #[schema(format = DateTime)]
    pub pinned_at: String,
    pub message: MessageFrame<'a>,
}

impl<'a> PinnedMessage<'a> {
    pub fn new(pin: &'a parlor_model::Pin, message: &'a parlor_model::Message) -> Self {
        Self {
            message_id: pin.message.as_str(),
            room_id: pin.room.as_str(),
            pinned_by_id: pin.by.as_str(),
            pinned_at: iso(pin.at),
            message: message.into(),
        }
    }
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Bookmark<'a> {
    /// Id of the bookmark, equal to the id of the message.
    pub id: &'a str,
    pub message_id: &'a str,
    #[schema(format = DateTime)]
    pub created_at: String,
    pub message: MessageFrame<'a>,
}

impl<'a> Bookmark<'a> {
    pub fn new(bookmark: &'a parlor_model::Bookmark, message: &'a parlor_model::Message) -> Self {
        let id = bookmark.message.as_str();
        Self { id, message_id: id, created_at: iso(bookmark.at), message: message.into() }
    }
}

/// A page of the caller's bookmarks, newest first.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Bookmarks<'a> {
    pub items: Vec<Bookmark<'a>>,
    pub has_more: bool,
    /// Cursor of the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub next_cursor: Option<String>,
}

impl<'a> Bookmarks<'a> {
    pub fn new<M: AsRef<parlor_model::Message>>(
        found: &'a [(parlor_model::Bookmark, M)],
        has_more: bool,
        epoch: Epoch,
    ) -> Self {
        let last = found.last().filter(|_| has_more);
        Self {
            items: found
                .iter()
                .map(|(bookmark, message)| Bookmark::new(bookmark, message.as_ref()))
                .collect(),
            has_more,
            next_cursor: last.map(|(last, _)| Position { epoch, seq: last.seq }.to_string()),
        }
    }
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
pub struct Pinned {
    pub pinned: bool,
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
pub struct Archived {
    pub archived: bool,
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Cleared {
    #[schema(format = DateTime)]
    pub cleared_at: String,
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
pub struct Notified {
    pub pref: NotificationPref,
}
