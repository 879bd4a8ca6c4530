//! The shared scheduler and the notifications that wake its loops.

use super::questions::DecisionWaiters;
use super::scheduler::Scheduler;
use crate::feed::Projection;
use parking_lot::{Mutex, MutexGuard};
use parlor_model::{Approval, Event, LoggedEvent, Message, Run};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Notify;

/// The shared scheduler, and the notifications that wake the run driver and the idle prompt loop.
#[derive(Default)]
pub struct SchedulerHandle {
    scheduler: Mutex<Scheduler>,
    pub(super) wake_driver: Notify,
    /// Wakes the idle prompt loop, for example when an agent comes online or a room changes.
    pub(crate) idle: Notify,
    /// Calls of the hub's own tools that wait for a decision.
    pub(super) decisions: DecisionWaiters,
}

impl SchedulerHandle {
    /// Locks the scheduler.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Scheduler> {
        self.scheduler.lock()
    }

    pub fn wake(&self) {
        self.wake_driver.notify_one();
    }

    /// Restores a run that was open when the hub stopped. `trigger` is the message that started it, for its
    /// preview.
    pub fn restore(&self, run: Run, trigger: Option<Arc<Message>>) {
        let (mut scheduler, now) = (self.lock(), Instant::now());
        if let Some(message) = trigger {
            scheduler.apply_event(&Event::MessagePosted { message, deliveries: Arc::new([]) }, now);
        }
        scheduler.apply_event(&Event::RunChanged(Arc::new(run)), now);
    }

    /// Closes an approval that was open when the hub stopped. The decision is sent when its gateway
    /// reconnects; if the store did not accept the expiry at start-up, it is submitted again.
    pub fn close_question(&self, question: Option<Approval>) {
        let Some(question) = question.map(Arc::new) else { return };
        let (mut scheduler, now) = (self.lock(), Instant::now());
        match question.decision {
            Some(_) => scheduler.apply_event(&Event::ApprovalDecided(question), now),
            None => scheduler.close_question(&question, now),
        }
    }
}

/// The scheduler knows an event before any subscriber receives it: the first chunk of a reply must find its run.
impl Projection for SchedulerHandle {
    fn apply(&self, batch: &[LoggedEvent]) {
        let mut scheduler = self.lock();
        let now = Instant::now();
        for logged_event in batch {
            scheduler.apply_event(&logged_event.event, now);
            if let Event::ApprovalDecided(approval) = &logged_event.event {
                self.decisions.decided(approval);
            }
        }
        send_commands(&mut scheduler);
        drop(scheduler);
        self.wake_driver.notify_one();
        if batch.iter().any(|logged_event| matches!(logged_event.event, Event::RoomChanged(_))) {
            self.idle.notify_one();
        }
    }
}

/// Sends the scheduler's commands to their gateways. Called under the scheduler's lock, so that the commands
/// of concurrent steps stay in order.
pub(super) fn send_commands(scheduler: &mut Scheduler) {
    for (host, command) in scheduler.take_commands() {
        host.send(command);
    }
}
