//! Stores the usage of a run.

use super::put;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::command::ReportUsage;
use parlor_model::{EntityKind, Refusal, Run};
use std::sync::Arc;

impl Command for ReportUsage {
    type Facts = Run;
    type Receipt = Arc<Run>;

    /// Only the hub itself reports usage, on behalf of the agent's gateway.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Run, PermitError> {
        caller.operator()?;
        Ok(view.store.run(&self.run)?.ok_or(Refusal::NotFound(EntityKind::Run))?)
    }

    fn decide(self, run: Run, effects: &mut EffectsBuilder<'_>) -> Result<Arc<Run>, Refusal> {
        if run.has_ended() && run.usage == self.usage {
            return Ok(Arc::new(run));
        }
        Ok(put(Run { usage: self.usage, ..run }, effects))
    }
}
