//! Removes a task.

use crate::changes::TaskChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError, SeenTask};
use crate::read_view::WriterView;
use parlor_model::command::RemoveTask;
use parlor_model::{Event, Refusal, Scope, Task};

impl Command for RemoveTask {
    type Facts = SeenTask;
    type Receipt = ();

    /// Allowed for the task's creator, its assignee, and room admins.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<SeenTask, PermitError> {
        let seen = view.seen_task(caller, &self.task, Scope::Write)?;
        seen.require_control()?;
        Ok(seen)
    }

    fn decide(self, seen: SeenTask, effects: &mut EffectsBuilder<'_>) -> Result<(), Refusal> {
        let Task { id, room, .. } = seen.task;
        effects.change(TaskChange::RemoveTask(id.clone()));
        effects.publish(Event::TaskRemoved { room, task: id });
        Ok(())
    }
}
