//! What agents wait for an answer to, so that whoever joins sees it too.

use parlor_model::{Event, LoggedEvent, RoomId};
use std::collections::HashMap;

/// The open questions of each room, as they were told, the oldest first.
#[derive(Default)]
pub struct OpenApprovals {
    by_room: HashMap<RoomId, Vec<LoggedEvent>>,
}

impl OpenApprovals {
    pub fn learn(&mut self, logged_event: &LoggedEvent) {
        match &logged_event.event {
            // Read from the log later, it may have been decided.
            Event::ApprovalAsked(asked) if asked.decision.is_none() => {
                self.by_room.entry(asked.room.clone()).or_default().push(logged_event.clone());
            }
            Event::ApprovalDecided(decided) => {
                let Some(open) = self.by_room.get_mut(&decided.room) else { return };
                open.retain(|logged_event| match &logged_event.event {
                    Event::ApprovalAsked(asked) => asked.id != decided.id,
                    _ => false,
                });
                if open.is_empty() {
                    self.by_room.remove(&decided.room);
                }
            }
            Event::RoomRemoved { room, .. } => {
                self.by_room.remove(room);
            }
            _ => {}
        }
    }

    pub fn in_room(&self, room: &RoomId) -> &[LoggedEvent] {
        self.by_room.get(room).map(Vec::as_slice).unwrap_or_default()
    }
}
