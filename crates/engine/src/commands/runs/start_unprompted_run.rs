//! Starts a run for an agent that sends a reply without a trigger.

use super::posting_agent::PostingAgent;
use super::{StandingChain, put, unprompted_run};
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

    /// Allowed for the hub itself, on behalf of an agent that is a member of the room. Not allowed if the last run of
    /// the agent there was refused to another agent: its client would answer without the run.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<PostingAgent, PermitError> {
        let sender = PostingAgent::require(caller, &self.agent, &self.room, view)?;
        if let StandingChain::Refused = StandingChain::load(&self.agent, &self.room, view)? {
            return Err(Refusal::Forbidden.into());
        }
        Ok(sender)
    }

    fn decide(self, facts: PostingAgent, effects: &mut EffectsBuilder<'_>) -> Result<Arc<Run>, Refusal> {
        if facts.room.is_frozen() {
            return Err(Refusal::NotFound(EntityKind::Room));
        }
        let run = unprompted_run(&self.agent, &self.room, effects);
        Ok(put(run, effects))
    }
}
