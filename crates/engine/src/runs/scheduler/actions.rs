//! The work that results from the scheduler's state: commands for gateways, and actions for the driver.

use super::super::host::{Host, HostCommand};
use super::{InjectionOffer, RunToFinish, Scheduler};
use parlor_model::{AgentId, ApprovalId, RoomId, RunId};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Work for the driver of the scheduler. Commands for gateways are not among it: agents wait for them, so
/// they are sent as soon as the event that causes them is applied. Backlogs are not either: the driver
/// publishes them under the scheduler's lock.
pub enum Action {
    OfferInjection(InjectionOffer),
    ExpireApproval(ApprovalId),
    FinishRun(RunToFinish),
    /// End a run in the store that was cancelled while it was queued.
    CancelQueuedRun(RunId),
    /// End a queued run as refused: the gateway of its agent does not execute runs in sessions.
    RefuseRun(RunId),
    /// Send the context of a room to the agents in it again.
    SendRoomContext(RoomId),
    /// Publish the status of an agent that became busy or idle.
    PublishStatus(AgentId),
    StartRun(RunId),
}

impl Scheduler {
    /// Takes the work that is due, in the order in which it has to be performed. `grace_period` is the time
    /// after which a run is interrupted whose gateway connection was lost.
    pub fn take_actions(&mut self, grace_period: Duration, now: Instant) -> Vec<Action> {
        let mut actions: Vec<Action> =
            self.take_injection_offers().into_iter().map(Action::OfferInjection).collect();
        actions.extend(self.overdue(now).into_iter().map(Action::ExpireApproval));
        actions.extend(self.take_runs_to_finish(grace_period, now).into_iter().map(Action::FinishRun));
        actions.extend(self.cancelled_before_start.drain(..).map(Action::CancelQueuedRun));
        actions.extend(self.take_unsupported().into_iter().map(Action::RefuseRun));
        let stale = std::mem::take(&mut self.stale_room_contexts);
        actions.extend(stale.into_iter().map(Action::SendRoomContext));
        let changed = std::mem::take(&mut self.changed);
        actions.extend(changed.into_iter().map(Action::PublishStatus));
        actions.extend(self.take_ready(now).into_iter().map(Action::StartRun));
        actions
    }

    /// Takes the commands for gateways, in the order in which they have to be sent. A command for a closed
    /// connection is dropped, except a decision, which is kept until the gateway reconnects.
    pub fn take_commands(&mut self) -> Vec<(Arc<dyn Host>, HostCommand)> {
        let decisions = self.take_decisions().into_iter();
        let mut commands: Vec<_> =
            decisions.filter_map(|(host, approval)| Some((host, HostCommand::decided(&approval)?))).collect();
        for (connection, command) in std::mem::take(&mut self.commands) {
            commands.extend(self.host(connection).map(|host| (host, command)));
        }
        commands
    }
}
