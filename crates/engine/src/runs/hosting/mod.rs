//! `Hosting`: the engine's API for gateways and the agents that they host, and for live state of agents that
//! no event records.
//!
//! Owns: the translation between reports of gateways and the scheduler's state. State changes are committed
//! through the write pipeline; nothing here writes to the store directly.

mod approvals;
mod completions;
mod connections;
pub(super) mod injection;
mod relays;
mod replies;
mod reports;
mod resume;
mod room_context;

pub use super::scheduler::ReplySlot;
pub use approvals::ApprovalRequest;
pub use completions::RunCompletion;
pub(super) use completions::drop_text_only_chunks;
pub use relays::GatewayAnswer;
pub use replies::ReplyRef;

use crate::Hub;
use parlor_model::command::StartUnpromptedRun;
use parlor_model::{AgentId, Caller, Chunk, EntityKind, Refusal, RoomId, Run, RunContext, RunId};
use std::time::Instant;

/// A handle of the hub for gateways and the agents that they host.
#[derive(Clone)]
pub struct Hosting {
    pub(super) hub: Hub,
}

impl Hub {
    pub fn hosting(&self) -> Hosting {
        Hosting { hub: self.clone() }
    }
}

impl Hosting {
    /// Tool calls in progress in the running runs of a room.
    pub fn tools_in_use(&self, room: &RoomId) -> Vec<(AgentId, Chunk)> {
        self.hub.fanout().tools_in_use(room)
    }

    /// Whether a run has to wait because its agent is offline or busy.
    pub async fn must_wait(&self, run: &Run) -> bool {
        // If the scheduler cannot catch up, its answer is as of the events that it has applied.
        let _ = self.wait_until_caught_up().await;
        self.hub.scheduler().lock().must_wait(&run.id, &run.agent, Instant::now())
    }

    /// Starts an unprompted run and waits until the scheduler knows it.
    /// Refused in a session, where the agent may not start a run itself.
    pub(super) async fn open_run(&self, agent: &AgentId, context: &RunContext) -> Result<RunId, Refusal> {
        let room = context.room().ok_or(Refusal::NotFound(EntityKind::Room))?;
        let open = StartUnpromptedRun { agent: agent.clone(), room: room.clone() };
        let run = self.hub.execute(&Caller::OPERATOR, open).await?;
        self.wait_until_caught_up().await?;
        Ok(run.id.clone())
    }

    /// Waits until the scheduler has applied all events committed so far. Applying the run from the receipt
    /// would be faster, but wrong if its end has already been applied.
    pub(super) async fn wait_until_caught_up(&self) -> Result<(), Refusal> {
        self.hub.reached(self.hub.committed()).await
    }
}
