//! Appends an event without content.

use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::command::AppendNoop;
use parlor_model::{Event, Refusal};

impl Command for AppendNoop {
    type Facts = ();
    type Receipt = ();

    /// Allowed for the hub itself.
    fn permit(&self, caller: &CallerContext, _view: &mut WriterView<'_>) -> Result<(), PermitError> {
        Ok(caller.operator()?)
    }

    fn decide(self, (): (), effects: &mut EffectsBuilder<'_>) -> Result<(), Refusal> {
        effects.publish(Event::Tombstone);
        Ok(())
    }
}
