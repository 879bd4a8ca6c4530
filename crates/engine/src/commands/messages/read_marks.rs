//! Read marks: the newest message that a user has read in a room.

use crate::changes::RoomChange;
use crate::effects::EffectsBuilder;
use parlor_model::{Event, RoomId, Seq, User};

/// Marks the messages of a room up to and including `through` as read by a user.
pub fn mark_read(room: RoomId, reader: &User, through: Seq, effects: &mut EffectsBuilder<'_>) {
    let (user, username, at) = (reader.id.clone(), reader.username.clone(), effects.now);
    effects.change(RoomChange::MarkRead { room: room.clone(), user: user.clone(), through, at });
    effects.publish(Event::RoomRead { room, user, username, at });
}
