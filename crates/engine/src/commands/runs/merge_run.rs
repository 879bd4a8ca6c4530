//! Merges a queued run into an active one. The merged run is published as ended.

use super::put;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::command::MergeRun;
use parlor_model::{EntityKind, Refusal, Run};
use std::sync::Arc;

pub struct Facts {
    run: Run,
    into: Run,
}

impl Command for MergeRun {
    type Facts = Facts;
    type Receipt = Arc<Run>;

    /// Only the hub itself merges runs.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        caller.operator()?;
        let not_found = Refusal::NotFound(EntityKind::Run);
        let into = view.store.run(&self.into)?.ok_or(not_found.clone())?;
        Ok(Facts { run: view.store.run(&self.run)?.ok_or(not_found)?, into })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Arc<Run>, Refusal> {
        let merged = facts.run.joined(&facts.into, effects.now);
        Ok(put(merged.map_err(|_| Refusal::AlreadyExists(EntityKind::Run))?, effects))
    }
}
