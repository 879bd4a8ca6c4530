//! The shared lanes and heartbeats, and the notification that wakes their driver.

use super::heartbeats::Heartbeats;
use super::lanes::Lanes;
use crate::feed::Projection;
use parking_lot::{Mutex, MutexGuard};
use parlor_model::{AgentId, Event, LoggedEvent, Run, SessionId, SessionRef};
use std::time::Instant;
use tokio::sync::Notify;

#[derive(Default)]
pub struct TurnsHandle {
    state: Mutex<State>,
    pub(super) wake_driver: Notify,
}

#[derive(Default)]
pub struct State {
    pub lanes: Lanes,
    pub heartbeats: Heartbeats,
}

impl TurnsHandle {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub fn wake(&self) {
        self.wake_driver.notify_one();
    }

    /// Restores a run that was open when the hub stopped.
    pub fn restore(&self, run: &Run) {
        self.lock().lanes.run_changed(run, Instant::now());
    }

    /// The agent came online.
    pub fn agent_online(&self, agent: &AgentId) {
        self.lock().lanes.agent_online(agent, Instant::now());
        self.wake();
    }
}

/// The lanes know a message before any subscriber receives it.
impl Projection for TurnsHandle {
    fn apply(&self, batch: &[LoggedEvent]) {
        let mut state = self.lock();
        let now = Instant::now();
        let mut is_changed = false;
        for logged_event in batch {
            is_changed |= apply_event(&mut state.lanes, &logged_event.event, now);
        }
        drop(state);
        if is_changed {
            self.wake();
        }
    }
}

/// Returns whether the event concerns the lanes.
fn apply_event(lanes: &mut Lanes, event: &Event, now: Instant) -> bool {
    match event {
        Event::MessagePosted { deliveries, .. } | Event::MailResent { deliveries, .. } => {
            for copy in deliveries.iter() {
                let session = match &copy.mailbox.session {
                    Some(session) => session.clone(),
                    None if copy.handled_by.is_empty() => SessionId::main(),
                    None => continue,
                };
                lanes.arrived(&SessionRef { agent: copy.mailbox.agent.clone(), session }, now);
            }
            !deliveries.is_empty()
        }
        Event::RunChanged(run) => {
            lanes.run_changed(run, now);
            run.session().is_some()
        }
        Event::AgentRemoved { agent, .. } => {
            lanes.agent_removed(agent);
            true
        }
        Event::RoomRemoved { room, .. } => {
            lanes.room_removed(room, now);
            true
        }
        _ => false,
    }
}
