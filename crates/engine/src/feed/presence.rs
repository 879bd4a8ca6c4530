//! Presence: a user is online while they have a connection that counts as presence or are a member of a presence set,
//! and for a grace period after that.

use super::fanout::{Fanout, FanoutState};
use crate::Hub;
use crate::hub::WeakHub;
use parlor_model::{Refusal, Signal, UserId};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior};

/// Grace period before a disconnected user is published as offline, so that a page reload is not an absence.
const OFFLINE_GRACE: Duration = Duration::from_secs(2);
/// Interval at which the hub looks for connections whose sign-in has expired.
const EXPIRY_SWEEP_INTERVAL: Duration = Duration::from_secs(60);

/// Users without a connection whose grace period is running, in the order of its end.
#[derive(Default)]
pub struct Departures(VecDeque<(UserId, Instant)>);

impl Departures {
    pub fn add(&mut self, user: UserId) {
        self.0.push_back((user, Instant::now() + OFFLINE_GRACE));
    }

    pub fn cancel(&mut self, user: &UserId) {
        self.0.retain(|(departed, _)| departed != user);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn contains(&self, user: &UserId) -> bool {
        self.0.iter().any(|(departed, _)| departed == user)
    }

    pub fn next_deadline(&self) -> Option<Instant> {
        self.0.front().map(|(_, deadline)| *deadline)
    }

    /// Takes the users whose grace period has ended.
    pub fn take_due(&mut self, now: Instant) -> Vec<UserId> {
        let due = self.0.partition_point(|(_, deadline)| *deadline <= now);
        self.0.drain(..due).map(|(user, _)| user).collect()
    }
}

/// Publishes users as offline after their grace period, and ends expired connections once a minute.
pub async fn run_loop(weak: WeakHub) {
    let mut sweep = tokio::time::interval_at(Instant::now() + EXPIRY_SWEEP_INTERVAL, EXPIRY_SWEEP_INTERVAL);
    sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let Some(hub) = weak.upgrade().filter(|hub| !hub.is_closing()) else { return };
        let fanout = hub.shared_fanout();
        // The loop must not keep the hub alive while it waits.
        drop(hub);
        let deadline = fanout.state.lock().departures.next_deadline();
        let deadline = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = fanout.departed.notified() => {}
            () = deadline => {
                let Some(hub) = weak.upgrade() else { return };
                let due = fanout.state.lock().departures.take_due(Instant::now());
                for user in due {
                    // If this read fails, only the presence signal is lost.
                    let _ = hub.publish_presence(&user, false).await;
                }
            }
            _ = sweep.tick() => {
                let Some(hub) = weak.upgrade() else { return };
                // If the store is unavailable, the next sweep ends the connections.
                let _ = hub.end_expired_sessions().await;
            }
        }
    }
}

impl Hub {
    /// Publishes a user's presence to all users who share a room with them, and to their own connections, unless
    /// the user has come back or left again during the read.
    pub(super) async fn publish_presence(&self, user: &UserId, online: bool) -> Result<(), Refusal> {
        let id = user.clone();
        let found = self.read_snapshot(move |_, snapshot| Ok((snapshot.user(&id)?, snapshot.peers(&id)?)));
        let (Some(person), mut people) = found.await? else { return Ok(()) };
        people.push(user.clone());
        let signal = Signal::Presence { user: user.clone(), username: person.username, online };
        self.fanout().signal_presence(user, online, &people, &signal);
        Ok(())
    }
}

impl Fanout {
    pub(super) fn signal_presence(&self, user: &UserId, online: bool, people: &[UserId], signal: &Signal) {
        let state = &mut *self.state.lock();
        if state.is_present(user) == online {
            self.send_to_people(state, people, signal);
        }
    }

    /// Wakes the loops of presence, which end when the hub is closing.
    pub fn wake_presence(&self) {
        self.departed.notify_one();
        self.occupants_changed.notify_one();
    }
}

impl FanoutState {
    pub(super) fn is_present(&self, user: &UserId) -> bool {
        let ids = self.by_user.get(user).map(Vec::as_slice).unwrap_or_default();
        ids.iter().any(|id| self.subscribers.get(id).is_some_and(|subscriber| subscriber.present))
            || self.occupants.has_user(user)
    }
}
