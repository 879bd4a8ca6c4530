//! Rows that commands and queries with a type of their own read from the store, besides those of the caller.

use crate::callers::{CallerKind, lobby, other_user, room, user};
use crate::fixtures::message;
use parlor_engine::decide::Change;
use parlor_model::{
    Destination, Message, MessageId, Path, Pin, Room, RoomRole, Sender, Seq, SiteRole, Time, UserId,
};
use std::sync::Arc;

pub type Stored = fn(CallerKind) -> Vec<Change>;

/// The room and the caller's membership only.
pub const READY: Stored = |_| Vec::new();
pub const NO_ROOM: Stored = |_| vec![Change::RemoveRoom(lobby())];

pub const NO_OTHER_USER: Stored = |_| vec![Change::RemoveUser(other_user())];
pub const OTHER_ADMIN: Stored = |_| vec![Change::PutUser(Arc::new(user(&other_user(), SiteRole::Admin)))];

pub const ADMINS_APPROVE: Stored = |_| {
    let room = Room { approve_role: RoomRole::Admin, ..room() };
    vec![Change::PutRoom(Arc::new(room))]
};

pub const ANOTHERS_MESSAGE: Stored = |_| vec![Change::PutMessage(message(Sender::User(other_user())))];
pub const MESSAGE_CLEARED_AWAY: Stored = |who| {
    let mut changes = ANOTHERS_MESSAGE(who);
    changes.extend(who.own_member().map(|mut own| {
        own.room_preferences.cleared_through = message(Sender::User(other_user())).seq;
        Change::PutMember(Arc::new(own))
    }));
    changes
};
pub const MESSAGE_ON_A_PATH: Stored = |_| {
    let destination = Destination::Path(Path::stored("slack/team"));
    let on_path = Message { destination, ..Message::clone(&message(Sender::Source("bridge".into()))) };
    vec![Change::PutMessage(Arc::new(on_path))]
};
pub const OWN_PIN: Stored = |who| pinned_by(who, who.user().unwrap_or_else(other_user));
pub const ANOTHERS_PIN: Stored = |who| pinned_by(who, other_user());

fn pinned_by(who: CallerKind, by: UserId) -> Vec<Change> {
    let pin = Pin { room: lobby(), message: MessageId::stored("message"), by, seq: Seq(6), at: Time(6) };
    let mut changes = ANOTHERS_MESSAGE(who);
    changes.push(Change::PutPin(pin));
    changes
}
