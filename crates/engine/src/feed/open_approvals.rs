//! Open approvals by room, so that late joiners receive them too.

use parlor_model::{Event, LoggedEvent, RoomId};
use std::collections::HashMap;

/// The published request events of each room's open approvals, oldest first.
#[derive(Default)]
pub struct OpenApprovals {
    by_room: HashMap<RoomId, Vec<LoggedEvent>>,
}

impl OpenApprovals {
    pub fn apply_event(&mut self, logged_event: &LoggedEvent) {
        match &logged_event.event {
            // An event that is read from the log late may already be decided.
            Event::ApprovalAsked(approval) if approval.decision.is_none() => {
                self.by_room.entry(approval.room.clone()).or_default().push(logged_event.clone());
            }
            Event::ApprovalDecided(decided) => {
                let Some(open) = self.by_room.get_mut(&decided.room) else { return };
                open.retain(|logged_event| match &logged_event.event {
                    Event::ApprovalAsked(approval) => approval.id != decided.id,
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
