//! News that may be lost: no `Seq`, not in the log, dropped first when a reader falls behind.

use crate::{RoomId, UserId};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signal {
    Typing { room: RoomId, user: UserId, username: Box<str> },
    Presence { user: UserId, username: Box<str>, online: bool },
}
