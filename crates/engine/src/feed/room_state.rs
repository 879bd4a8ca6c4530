//! State that a late joiner receives: open approvals, and the backlogs of agents in rooms.

use super::viewers::Viewers;
use parlor_model::{AgentId, Event, LoggedEvent, RoomId, Signal};
use std::collections::HashMap;

#[derive(Default)]
pub struct RoomState {
    /// The published request events of the open approvals, oldest first.
    approvals: HashMap<Viewers, Vec<LoggedEvent>>,
    /// The signals with the non-empty backlogs of each room, as published last.
    backlogs: HashMap<RoomId, Vec<Signal>>,
}

impl RoomState {
    pub fn apply_event(&mut self, logged_event: &LoggedEvent) {
        match &logged_event.event {
            // An event that is read from the log late may already be decided.
            Event::ApprovalAsked(approval) if approval.decision.is_none() => {
                if let Some(viewers) = Viewers::of(approval.place.scope()) {
                    self.approvals.entry(viewers).or_default().push(logged_event.clone());
                }
            }
            Event::ApprovalDecided(decided) => {
                let Some(viewers) = Viewers::of(decided.place.scope()) else { return };
                let Some(open) = self.approvals.get_mut(&viewers) else { return };
                open.retain(|logged_event| match &logged_event.event {
                    Event::ApprovalAsked(approval) => approval.id != decided.id,
                    _ => false,
                });
                if open.is_empty() {
                    self.approvals.remove(&viewers);
                }
            }
            Event::RoomRemoved { room, .. } => {
                self.approvals.retain(|viewers, _| !viewers.are_in(room));
                self.backlogs.remove(room);
            }
            Event::AgentRemoved { agent, .. } => self.backlogs.retain(|_, backlogs| {
                backlogs.retain(|signal| !is_backlog_of(signal, agent));
                !backlogs.is_empty()
            }),
            _ => {}
        }
    }

    /// Replaces the backlog of an agent in a room.
    pub fn apply_backlog(&mut self, backlog: &Signal) {
        let Signal::Queue { room, agent, items, .. } = backlog else { return };
        let backlogs = self.backlogs.entry(room.clone()).or_default();
        backlogs.retain(|signal| !is_backlog_of(signal, agent));
        if !items.is_empty() {
            backlogs.push(backlog.clone());
        }
        if backlogs.is_empty() {
            self.backlogs.remove(room);
        }
    }

    pub fn open_approvals(&self, viewers: &Viewers) -> &[LoggedEvent] {
        self.approvals.get(viewers).map(Vec::as_slice).unwrap_or_default()
    }

    pub fn backlogs(&self, room: &RoomId) -> &[Signal] {
        self.backlogs.get(room).map(Vec::as_slice).unwrap_or_default()
    }
}

fn is_backlog_of(signal: &Signal, agent: &AgentId) -> bool {
    matches!(signal, Signal::Queue { agent: of, .. } if of == agent)
}
