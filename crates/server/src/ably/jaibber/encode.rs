//! Frames of project channels, from the events and signals of rooms.

use parlor_engine::feed::Names;
use parlor_model::{Epoch, LoggedEvent, Signal, SignalStamp};
use parlor_wire::ably::frames::Format;

/// Encodes an event of a room; `None` if Jaibber has no message for it.
pub fn event(_: &LoggedEvent, _: Epoch, _: &Names, _: Format) -> Option<Vec<u8>> {
    None
}

/// Encodes a signal of a room; `None` if Jaibber has no message for it.
pub fn signal(_: &Signal, _: SignalStamp, _: Format) -> Option<Vec<u8>> {
    None
}
