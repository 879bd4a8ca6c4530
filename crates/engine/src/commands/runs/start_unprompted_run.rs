//! Starts a run for an agent that sends a reply without a trigger.

use super::posting_agent::PostingAgent;
use super::{put, unprompted_run};
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::command::StartUnpromptedRun;
use parlor_model::{EntityKind, Refusal, Run};
use std::sync::Arc;

impl Command for StartUnpromptedRun {
    type Facts = PostingAgent;
    type Receipt = Arc<Run>;

    /// Allowed for the hub itself, on behalf of an agent that is a member of the room.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<PostingAgent, PermitError> {
        PostingAgent::require(caller, &self.agent, &self.room, view)
    }

    fn decide(self, facts: PostingAgent, effects: &mut EffectsBuilder<'_>) -> Result<Arc<Run>, Refusal> {
        if facts.room.is_frozen() {
            return Err(Refusal::NotFound(EntityKind::Room));
        }
        let run = unprompted_run(&self.agent, &self.room, effects);
        Ok(put(run, effects))
    }
}
