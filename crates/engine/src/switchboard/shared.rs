//! Frames that are made once and go to many.

use super::{Egress, Outbox, Seat, State, ViewerId};
use bytes::{Bytes, BytesMut};
use parlor_model::{Epoch, Logged, RoomId};
use std::collections::HashMap;
use std::sync::Arc;

/// Neighbouring messages of a batch: those of one room go to each viewer as one buffer.
#[derive(Default)]
pub struct Neighbours(HashMap<RoomId, Vec<Logged>>);

impl Neighbours {
    pub fn add(&mut self, logged: Logged) {
        if let Some(room) = logged.event.room() {
            self.0.entry(room.clone()).or_default().push(logged);
        }
    }

    pub fn flush(&mut self, state: &State, epoch: Epoch) {
        for (room, events) in self.0.drain() {
            let mut encoded = Encoded::default();
            state.rooms.each(&room, |seat| {
                let bytes = encoded.by(&seat.egress, |egress| {
                    let mut frames = events.iter().filter_map(|logged| egress.event(logged, epoch));
                    let first = frames.next()?;
                    let Some(second) = frames.next() else { return Some(first) };
                    let mut joined = BytesMut::from(&first[..]);
                    joined.extend_from_slice(&second);
                    frames.for_each(|frame| joined.extend_from_slice(&frame));
                    Some(joined.freeze())
                });
                if let Some(bytes) = bytes {
                    seat.outbox.push(bytes);
                }
            });
        }
    }
}

/// New mail of a batch: each connection that listens gets it as one buffer, or as a few if it is long.
#[derive(Default)]
pub struct Mail(foldhash::HashMap<ViewerId, (Arc<Outbox>, BytesMut)>);

/// How long such a buffer becomes.
const TOGETHER: usize = 64 * 1024;

impl Mail {
    pub fn add(&mut self, seat: &Seat, frame: Bytes) {
        let (outbox, frames) =
            self.0.entry(seat.viewer).or_insert_with(|| (seat.outbox.clone(), BytesMut::new()));
        frames.extend_from_slice(&frame);
        if frames.len() >= TOGETHER {
            outbox.push(frames.split().freeze());
        }
    }

    pub fn flush(&mut self) {
        for (_, (outbox, frames)) in self.0.drain() {
            if !frames.is_empty() {
                outbox.push(frames.freeze());
            }
        }
    }
}

/// What each door makes of one thing, made once. Doors are few, so a list is the fastest map.
#[derive(Default)]
pub struct Encoded(Vec<(Arc<dyn Egress>, Option<Bytes>)>);

impl Encoded {
    pub fn by(
        &mut self,
        egress: &Arc<dyn Egress>,
        encode: impl FnOnce(&dyn Egress) -> Option<Bytes>,
    ) -> Option<Bytes> {
        if let Some((_, bytes)) = self.0.iter().find(|(known, _)| Arc::ptr_eq(known, egress)) {
            return bytes.clone();
        }
        let bytes = encode(&**egress);
        self.0.push((egress.clone(), bytes.clone()));
        bytes
    }
}
